"""The words that paradigms are filled with: a TSV with one row a word and one column a property.

    expression  pos  subcat  gender  ...      a cell may hold several values, separated by "/"
    妈妈        NN   person  female           an empty line separates groups and means nothing

A word that stands in several rows is several entries: each row is one reading of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from unicodedata import normalize

from fluent_mlama.console import UserError

Conditions = tuple[tuple[str, frozenset[str]], ...]
"""Property -> accepted values, all of which must be met; a tuple, to be a dictionary key."""


@dataclass(frozen=True, eq=False)
class Entry:
    """One reading of a word: its spelling and, for each filled column, its set of values."""

    expression: str
    properties: Mapping[str, frozenset[str]]
    row: int = 0

    def values(self, name: str) -> frozenset[str]:
        """The values of a property, of which ``expression`` is one; empty where the cell is."""
        return (
            frozenset((self.expression,))
            if name == "expression"
            else self.properties.get(name, frozenset())
        )

    def meets(self, conditions: Conditions) -> bool:
        """Whether every condition shares a value with this entry."""
        return all(self.values(name) & accepted for name, accepted in conditions)


@dataclass
class Vocabulary:
    """All entries in file order, with look-up by conditions (each distinct look-up is made once).

    wordless: rows that have properties but no word (the published vocabulary has one).
    """

    columns: tuple[str, ...]
    entries: tuple[Entry, ...]
    where: str = "vocabulary"
    wordless: tuple[int, ...] = ()
    _selected: dict[Conditions, tuple[Entry, ...]] = field(default_factory=dict, repr=False)
    _literals: dict[str, Entry] = field(default_factory=dict, repr=False)

    def select(self, conditions: Conditions) -> tuple[Entry, ...]:
        """Entries that meet the conditions, in file order.

        Unknown columns are the caller's to check.
        """
        if conditions not in self._selected:
            self._selected[conditions] = tuple(
                entry for entry in self.entries if entry.meets(conditions)
            )
        return self._selected[conditions]

    def literal(self, text: str) -> Entry:
        """A literal string as an entry, with the properties of the word that it spells, if any."""
        if text not in self._literals:
            readings = self._by_expression.get(text, ())
            names = {name for reading in readings for name in reading.properties}
            merged = {
                name: frozenset[str]().union(*(reading.values(name) for reading in readings))
                for name in names
            }
            self._literals[text] = Entry(text, merged)
        return self._literals[text]

    @cached_property
    def _by_expression(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.expression, []).append(entry)
        return found


def parse_vocabulary(text: str, where: str = "vocabulary") -> Vocabulary:
    """Read the TSV.

    A missing ``expression`` column, a doubled column or a ragged row is a ``UserError`` naming the
    row.
    """
    lines = normalize("NFC", text).replace("\r\n", "\n").split("\n")
    columns = tuple(name.strip() for name in lines[0].split("\t"))
    if "expression" not in columns:
        raise UserError(
            f"{where}: row 1 has no column 'expression'; "
            "the first line must name the columns, separated by tabs"
        )
    doubled = sorted({name for name in columns if columns.count(name) > 1})
    if doubled:
        raise UserError(
            f"{where}: row 1 names column '{doubled[0]}' twice; give every column its own name"
        )
    entries, wordless = [], []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) > len(columns):
            raise UserError(
                f"{where}: row {number} has {len(cells)} cells for {len(columns)} columns; "
                "remove the extra tabs"
            )
        named = {name: cell.strip() for name, cell in zip(columns, cells, strict=False)}
        expression = named.pop("expression")
        if not expression:
            wordless.append(number)
            continue
        entries.append(
            Entry(
                expression,
                {name: split_values(cell) for name, cell in named.items() if cell},
                number,
            )
        )
    if not entries:
        raise UserError(f"{where}: no words below the header; add at least one row")
    return Vocabulary(columns, tuple(entries), where, tuple(wordless))


def read_vocabulary(path: Path) -> Vocabulary:
    """``parse_vocabulary`` of a UTF-8 file; a missing or undecodable file is a ``UserError``."""
    return parse_vocabulary(read_utf8(path), path.name)


def read_utf8(path: Path) -> str:
    """A text file as a string; what is wrong with it is said in one line."""
    try:
        return decode_utf8(path.read_bytes(), path.name)
    except FileNotFoundError:
        raise UserError(f"no file at {path}; check the path") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder; name a file") from None


def decode_utf8(data: bytes, where: str) -> str:
    """Bytes as text; a ``UserError`` that names the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{where}: not UTF-8 (byte {error.start}); save the file as UTF-8"
        ) from None


def composed(content: Any) -> Any:
    """What a JSON file holds with all its texts in NFC, as the vocabulary's words are."""
    return json.loads(normalize("NFC", json.dumps(content, ensure_ascii=False)))


def split_values(cell: str) -> frozenset[str]:
    """The values of one cell or condition: ``a/b`` is a or b."""
    return frozenset(value for value in cell.split("/") if value)
