"""The phrasebook: labels, inflected forms and sentence patterns that give fluent sentences with known object spans.

``data/facts.tsv`` lists the facts; ``data/phrasebook/{lang}.tsv`` has one row an entity, and
``data/phrasebook/{lang}_patterns.tsv`` one row a relation. How a person writes them is told in
``data/phrasebook/README.md``; this file is the definition that the writer's guide paraphrases.

A cell of a form is ``before|form|after``: ``во|Франции``, ``на|английском|языке``, or the form alone. Only the
middle part is the object; what stands around it is fixed by the object and written with it.

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

from fluent.console import UserError
from fluent.languages import language

DATA = Path(__file__).resolve().parents[2] / "data"
NOT_NEEDED = "-"
"""A cell that no pattern asks for, marked so that empty cells are exactly those to be filled."""
PLAIN_COLUMNS = ("uri", "english", "used", "label", "class", "subject", "aliases")
"""Columns that are not forms."""

_PLACE = re.compile(r"\[([XY])(?::([a-z0-9]+))?\]")
_CHOICE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of ``data/facts.tsv``; a held-out fact is for few-shot prompts and stands in no benchmark file."""

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
        return {form for which, form in _PLACE.findall(self.fluent) if which == place}

    def classes(self) -> set[str]:
        """Noun classes of the subject that every choice of the pattern covers; empty where there is no choice."""
        covered = [set(_read_choice(choice)) for choice in _CHOICE.findall(self.fluent)]
        return set.intersection(*covered) if covered else set()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A fluent sentence and where its object stands: ``prompt + object + tail == sentence``, always."""

    sentence: str
    prompt: str
    object: str
    tail: str
    noun_class: str


class Phrasebook:
    """The phrasebook of one language, read once."""

    def __init__(self, lang: str, folder: Path = DATA / "phrasebook") -> None:
        self.language = language(lang)
        self.path = folder / f"{lang}.tsv"
        self.entries = _read_entries(self.path)
        self.patterns = _read_patterns(folder / f"{lang}_patterns.tsv")

    def entry(self, uri: str) -> Entry:
        """The row of this entity; none is a ``UserError``."""
        if uri not in self.entries:
            raise UserError(f"{self.path}: no row for {uri}; add one (data/phrasebook/README.md says how)")
        return self.entries[uri]

    def pattern(self, relation: str) -> Pattern:
        """The row of this relation; none is a ``UserError``."""
        if relation not in self.patterns:
            raise UserError(f"{self.path.with_name(self.path.stem + '_patterns.tsv')}: no row for {relation}; add one")
        return self.patterns[relation]

    def naive(self, relation: str, sub_uri: str, obj_uri: str) -> Sentence:
        """The template filled with the two labels as they stand."""
        entry = self.entry(sub_uri)
        before, after = self.pattern(relation).template.split("[Y]")
        label = self.entry(obj_uri).label
        prompt, tail = before.replace("[X]", entry.label), after.replace("[X]", entry.label)
        return Sentence(prompt + label + tail, prompt, label, tail, entry.noun_class)

    def fluent(self, relation: str, sub_uri: str, obj_uri: str) -> Sentence:
        """The fluent pattern filled: the subject's verb form, the object's form; a lacking cell is a ``UserError``."""
        subject, target = self.entry(sub_uri), self.entry(obj_uri)
        pattern = _CHOICE.sub(lambda found: self._choose(found[1], subject, relation), self.pattern(relation).fluent)
        parts: dict[str, str] = {"prompt": "", "tail": ""}
        side, form, position = "prompt", Form("", "", ""), 0
        for found in _PLACE.finditer(pattern):
            parts[side] += pattern[position : found.start()]
            position = found.end()
            if found[1] == "X":
                said = self._form(subject, found[2], relation) if found[2] else Form("", subject.subject or subject.label, "")
                parts[side] += self._join(said.before, said.text, said.after)
            else:
                form = self._form(target, found[2] or "", relation)
                parts[side] += self._glue(form.before)
                side = "tail"
                parts[side] += self._space(form.after) + form.after
        parts[side] += pattern[position:]
        prompt = parts["prompt"][:1].upper() + parts["prompt"][1:]
        return Sentence(prompt + form.text + parts["tail"], prompt, form.text, parts["tail"], subject.noun_class)

    def _choose(self, choice: str, subject: Entry, relation: str) -> str:
        words = _read_choice(choice)
        if subject.noun_class not in words:
            raise UserError(
                f"{self.path}: class '{subject.noun_class}' of {subject.uri} ({subject.english}) is not in the pattern "
                f"of {relation}, which knows {', '.join(words)}"
            )
        return words[subject.noun_class]

    def _form(self, entry: Entry, column: str, relation: str) -> Form:
        if not column:
            return Form("", entry.label, "")
        if column not in entry.forms:
            raise UserError(f"{self.path}: {entry.uri} ({entry.english}) lacks the form '{column}' that {relation} needs; fill the cell")
        return entry.forms[column]

    def _space(self, words: str) -> str:
        return " " if words and self.language.spaces else ""

    def _glue(self, before: str) -> str:
        """What stands before the object, with the blank that belongs there (none after an apostrophe or a hyphen)."""
        return before + ("" if before.endswith(("'", "’", "-")) else self._space(before))

    def _join(self, before: str, text: str, after: str) -> str:
        return self._glue(before) + text + self._space(after) + after


def read_form(cell: str) -> Form:
    """A form cell ``before|form|after``, ``before|form`` or ``form``."""
    parts = [part.strip() for part in cell.split("|")]
    if len(parts) == 1:
        return Form("", parts[0], "")
    return Form(parts[0], parts[1], parts[2] if len(parts) > 2 else "")


def read_facts(path: Path = DATA / "facts.tsv") -> list[Fact]:
    """All facts, in file order."""
    rows = read_cells(path)
    return [Fact(row["relation"], row["sub_uri"], row["obj_uri"], bool(row["held_out"]), row["note"]) for row in rows]


def read_cells(path: Path) -> list[dict[str, str]]:
    """The rows of a plain tab-separated file by column name; no quoting, so that a cell is what an editor shows."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; data/phrasebook/README.md tells how to add a language")
    lines = path.read_text(encoding="utf-8").splitlines()
    header, *rows = (line.split("\t") for line in lines if line)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise UserError(f"{path}, line {number}: {len(row)} cells where the header has {len(header)}; mend the line")
    return [dict(zip(header, row, strict=True)) for row in rows]


def _read_entries(path: Path) -> dict[str, Entry]:
    entries = {}
    for cells in read_cells(path):
        row = {column: "" if cell == NOT_NEEDED else cell for column, cell in cells.items()}
        filled = {column: read_form(cell) for column, cell in row.items() if cell and column not in PLAIN_COLUMNS}
        aliases = tuple(alias.strip() for alias in row.get("aliases", "").split(";") if alias.strip())
        entries[row["uri"]] = Entry(row["uri"], row["english"], row["label"], row.get("class", ""), row.get("subject", ""), filled, aliases)
    return entries


def _read_patterns(path: Path) -> dict[str, Pattern]:
    return {row["relation"]: Pattern(row["template"], row.get("fluent", "")) for row in read_cells(path)}


def _read_choice(choice: str) -> dict[str, str]:
    words = {}
    for option in choice.split("|"):
        classes, _, text = option.partition(":")
        words.update({name.strip(): text for name in classes.split(",")})
    return words
