"""mLAMA's line-by-line JSON: triples and templates (the layout is described in ``reader.py``).

Labels and templates are read in NFC, so that one label is one string wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unicodedata import normalize

from fluent_mlama.console import UserError
from fluent_mlama.files import parse_json

MOST = 2**63 - 1
"""The largest whole number that a table can hold."""


@dataclass(frozen=True, slots=True)
class Triple:
    """A fact in one language. URIs and uuid are None where the file has none (GoogleRE subjects
    have Freebase ids).

    lineid: the line of the English original; the same in every language. extras: fields that mLAMA
    1.1 does not define.
    """

    lang: str
    relation: str
    lineid: int
    sub_label: str
    obj_label: str
    sub_uri: str | None = None
    obj_uri: str | None = None
    uuid: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """What joins the languages."""
        return self.relation, self.lineid


@dataclass(frozen=True)
class Facts:
    """The triples of one (language, relation). doubles: later lines that use a lineid again."""

    by_lineid: Mapping[int, Triple]
    doubles: tuple[Triple, ...] = ()

    def other_objects(self, triple: Triple) -> set[str]:
        """Labels of further objects that the same subject has in this relation: right answers too,
        in another line.
        """
        subject = triple.sub_uri or triple.sub_label
        lines = [*self.by_lineid.values(), *self.doubles]
        return {line.obj_label for line in lines if (line.sub_uri or line.sub_label) == subject} - {
            triple.obj_label
        }


def read_facts(data: bytes, where: str, lang: str, relation: str) -> Facts:
    """Parse a relation file. ``UserError`` names the line: not JSON (cut off), a field missing or
    of the wrong kind.
    """
    by_lineid: dict[int, Triple] = {}
    doubles = []
    for line, values in _objects(data, where):
        taken = {
            name: normalize("NFC", _field(values, name, str, line))
            for name in ("sub_label", "obj_label")
        }
        optional = {
            name: _field(values, name, str, line, optional=True)
            for name in ("sub_uri", "obj_uri", "uuid")
        }
        lineid = _field(values, "lineid", int, line)
        known = taken.keys() | optional.keys() | {"lineid"}
        extras = {name: value for name, value in values.items() if name not in known}
        triple = Triple(
            lang=lang, relation=relation, lineid=lineid, **taken, **optional, extras=extras
        )
        if by_lineid.setdefault(lineid, triple) is not triple:
            doubles.append(triple)
    return Facts(by_lineid, tuple(doubles))


def read_templates(data: bytes, where: str) -> dict[str, str]:
    """Parse a templates file: relation -> template. A relation that stands twice with different
    templates is a ``UserError``.
    """
    templates: dict[str, str] = {}
    for line, values in _objects(data, where):
        relation = _field(values, "relation", str, line)
        template = normalize("NFC", _field(values, "template", str, line))
        if templates.setdefault(relation, template) != template:
            raise UserError(
                f"{line}: relation {relation} has a template already: {templates[relation]!r}"
            )
    return templates


def _objects(data: bytes, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where it stands, object) of every line that is not blank."""
    try:
        lines = data.decode("utf-8-sig").split(
            "\n"
        )  # splitlines would also cut at U+2028, which JSON allows in strings
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{where}: line {line} is not UTF-8 (byte 0x{data[error.start]:02x}); get the file "
            "again"
        ) from None
    for number, line_text in enumerate(lines, start=1):
        if not line_text.strip():
            continue
        values = parse_json(line_text, f"{where}: line {number}")
        if not isinstance(values, dict):
            raise UserError(f"{where}: line {number} holds no JSON object")
        yield f"{where}: line {number}", values


def _field(
    values: Mapping[str, Any], name: str, kind: type, line: str, *, optional: bool = False
) -> Any:
    value = values.get(name)
    if value is None and optional:
        return None
    if value is None:
        raise UserError(f"{line}: no field {name!r}")
    if type(value) is not kind:  # bool is an int to isinstance, and 7 is no label
        raise UserError(f"{line}: field {name!r} holds {value!r}, expected {kind.__name__}")
    if isinstance(value, int) and abs(value) > MOST:
        raise UserError(
            f"{line}: field {name!r} holds {str(value)[:10]}…, a number too large to be one"
        )
    return value
