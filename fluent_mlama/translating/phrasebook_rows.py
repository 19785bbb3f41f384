"""The phrasebook's files: what a person writes (``fluent_mlama/data/phrasebook/README.md`` tells how), read as typed rows.

``fluent_mlama/data/facts.tsv`` lists the facts; ``fluent_mlama/data/phrasebook/{lang}.tsv`` has one row an entity, and
``fluent_mlama/data/phrasebook/{lang}_patterns.tsv`` one row a relation.

A cell of a form is ``before|form|after``: ``во|Франции``, ``на|английском|языке``, or the form alone. Only the
middle part is the object; what stands around it is fixed by the object and written with it. ``у/в|Парижі`` is
``у`` after a consonant and ``в`` after a vowel.

A pattern holds, besides plain words,

* ``[X]`` and ``[Y]``: subject and object, ``[X]`` as the column ``subject`` has it (else the label);
* ``[X:gen]``, ``[Y:loc]``: the form in the column of that name;
* ``{m:родился|f:родилась}``: the words for the noun class of the subject (several: ``{m,n:…|f:…}``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fluent_mlama.console import UserError
from fluent_mlama.data import DATA

NOT_NEEDED = "-"
"""A cell that no pattern asks for, marked so that empty cells are exactly those to be filled."""
PLAIN_COLUMNS = ("uri", "english", "used", "label", "class", "subject", "aliases")
"""Columns that are not forms."""

PLACE = re.compile(r"\[([XY])(?::([a-z0-9]+))?\]")
CHOICE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of ``fluent_mlama/data/facts.tsv``; a held-out fact is for few-shot prompts and stands in no benchmark file."""

    relation: str
    sub_uri: str
    obj_uri: str
    held_out: bool
    note: str


@dataclass(frozen=True, slots=True)
class Form:
    """A surface form with the words its entity brings along."""

    before: str
    text: str
    after: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One entity in one language; ``forms`` holds the filled form cells by column name."""

    uri: str
    english: str
    label: str
    noun_class: str
    subject: str
    forms: Mapping[str, Form]
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """How one relation is said: the naive template (mLAMA's kind) and the fluent pattern ("" in English, the source)."""

    template: str
    fluent: str

    def asked(self, place: str) -> set[str]:
        """Form columns the fluent pattern asks of X or of Y; "" stands for the plain label."""
        return {form for which, form in PLACE.findall(self.fluent) if which == place}

    def classes(self) -> set[str]:
        """Noun classes of the subject that every choice of the pattern covers; empty where there is no choice."""
        covered = [set(read_choice(choice)) for choice in CHOICE.findall(self.fluent)]
        return set.intersection(*covered) if covered else set()


def read_form(cell: str) -> Form:
    """A form cell ``before|form|after``, ``before|form`` or ``form``."""
    parts = [part.strip() for part in cell.split("|")]
    if len(parts) == 1:
        return Form("", parts[0], "")
    return Form(parts[0], parts[1], parts[2] if len(parts) > 2 else "")


def read_facts(path: Path = DATA / "facts.tsv") -> list[Fact]:
    """All facts, in file order."""
    rows = read_cells(path)
    return [
        Fact(row["relation"], row["sub_uri"], row["obj_uri"], bool(row["held_out"]), row["note"])
        for row in rows
    ]


def read_cells(path: Path) -> list[dict[str, str]]:
    """The rows of a plain tab-separated file by column name; no quoting, so that a cell is what an editor shows."""
    if not path.is_file():
        raise UserError(
            f"{path}: no such file; fluent_mlama/data/phrasebook/README.md tells how to add a language"
        )
    lines = path.read_text(encoding="utf-8").splitlines()
    header, *rows = (line.split("\t") for line in lines if line)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise UserError(
                f"{path}, line {number}: {len(row)} cells where the header has {len(header)}; mend the line"
            )
    return [dict(zip(header, row, strict=True)) for row in rows]


def read_entries(path: Path) -> dict[str, Entry]:
    """The entities of one language by Wikidata id, in file order."""
    entries = {}
    for cells in read_cells(path):
        row = {column: "" if cell == NOT_NEEDED else cell for column, cell in cells.items()}
        filled = {
            column: read_form(cell)
            for column, cell in row.items()
            if cell and column not in PLAIN_COLUMNS
        }
        aliases = tuple(
            alias.strip() for alias in row.get("aliases", "").split(";") if alias.strip()
        )
        entries[row["uri"]] = Entry(
            row["uri"],
            row["english"],
            row["label"],
            row.get("class", ""),
            row.get("subject", ""),
            filled,
            aliases,
        )
    return entries


def read_patterns(path: Path) -> dict[str, Pattern]:
    """The patterns of one language by relation."""
    return {
        row["relation"]: Pattern(row["template"], row.get("fluent", "")) for row in read_cells(path)
    }


def read_choice(choice: str) -> dict[str, str]:
    """What stands between braces: noun class -> words."""
    words = {}
    for option in choice.split("|"):
        classes, _, text = option.partition(":")
        words.update({name.strip(): text for name in classes.split(",")})
    return words
