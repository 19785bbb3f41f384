"""English LAMA as published, and template translations mended: what mLAMA is made from (Kassner et al. 2021, section 2).

LAMA: a folder or zip with ``relations.jsonl`` (relation, template) and ``TREx/<relation>.jsonl`` (or the files beside it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fluent_mlama.console import UserError, note
from fluent_mlama.files import Source, open_source, parse_json
from fluent_mlama.reader import is_valid_template
from fluent_mlama.records.facts import read_templates

RELATIONS = "relations.jsonl"
_LETTERS = {"X": "XxХхΧχＸｘ", "Y": "YyУуΥυＹｙ"}
"""Cyrillic, Greek and fullwidth letters that translators put for X and Y."""


@dataclass(frozen=True, slots=True)
class EnglishFact:
    """One line of LAMA; lineid: its place in the file, from 0."""

    lineid: int
    sub_uri: str
    obj_uri: str
    sub_label: str
    obj_label: str
    uuid: str


@dataclass(frozen=True)
class Lama:
    """relation -> template, relation -> facts."""

    templates: dict[str, str]
    facts: dict[str, list[EnglishFact]]


def read_lama(path: Path, relations: Sequence[str] | None = None) -> Lama:
    """LAMA's relations that have a file and a valid template. ``UserError`` names file and line."""
    source = open_source(path)
    folder = source.folder("TREx") if "TREx" in source.folders() else source
    if RELATIONS not in source.names():
        raise UserError(f"{path} has no {RELATIONS}: this is not LAMA's data folder")
    templates = read_templates(source.read(RELATIONS), source.where(RELATIONS))
    wanted = relations or [
        relation for relation in templates if f"{relation}.jsonl" in folder.names()
    ]
    facts: dict[str, list[EnglishFact]] = {}
    for relation in wanted:
        if relation not in templates or not is_valid_template(templates[relation]):
            raise UserError(
                f"{source.where(RELATIONS)}: {relation} has no template with one [X] and one [Y]"
            )
        facts[relation] = list(_facts(folder, f"{relation}.jsonl"))
    if not facts:
        raise UserError(f"{path} holds no relation file (TREx/<relation>.jsonl)")
    return Lama({relation: templates[relation] for relation in facts}, facts)


def _facts(folder: Source, name: str) -> Iterator[EnglishFact]:
    lines = [
        line
        for line in folder.read(name).decode("utf-8-sig", errors="replace").split("\n")
        if line.strip()
    ]
    foreign = 0
    for lineid, line in enumerate(lines):
        where = f"{folder.where(name)}: line {lineid + 1}"
        values = parse_json(line, where)
        if not isinstance(values, dict) or not {
            "sub_uri",
            "obj_uri",
            "sub_label",
            "obj_label",
        } <= set(values):
            raise UserError(
                f"{where} is no LAMA fact with sub_uri, obj_uri, sub_label and obj_label; correct or remove it"
            )
        texts = [values[field] for field in ("sub_uri", "obj_uri", "sub_label", "obj_label")]
        if not all(isinstance(text, str) for text in texts):
            raise UserError(f"{where}: labels and ids must be strings")
        if all(re.fullmatch(r"Q[1-9][0-9]*", uri) for uri in texts[:2]):
            sub_uri, obj_uri, sub_label, obj_label = texts
            yield EnglishFact(
                lineid, sub_uri, obj_uri, sub_label, obj_label, str(values.get("uuid", ""))
            )
        else:
            foreign += 1
    if foreign:
        note(f"{folder.where(name)}: {foreign} facts have no Wikidata ids and are left out")


def mend_template(text: str) -> str | None:
    """The translated template with just one [X] and one [Y], or None where that needs a person.

    Mends other brackets, blanks inside them, small letters and letters of other scripts; nothing is guessed.
    """
    mended = text.strip()
    for letter, variants in _LETTERS.items():
        mended = re.sub(
            rf"[\[［【〔〈{{(（]\s*[{variants}]\s*[\]］】〕〉}})）]", f"[{letter}]", mended
        )
    return mended if is_valid_template(mended) else None
