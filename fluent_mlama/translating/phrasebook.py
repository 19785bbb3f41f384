"""Fluent sentences from the phrasebook, with the object's place known: a back end without a model.

The sentences are gold for whoever looks for inflected objects (``fluent_mlama/locating``):
``prompt + object + tail`` is the sentence by construction.

``fluent_mlama/data/facts.tsv`` lists the facts; ``fluent_mlama/data/phrasebook/{lang}.tsv`` has one
row per entity, ``{lang}_patterns.tsv`` one row per relation (``README.md`` there says how to write
them). A cell of a form is ``before|form|after``: ``во|Франции``, ``на|английском|языке``, or the
form alone. Only the middle part is the object; what stands around it is fixed by the object and
written with it. ``у/в|Парижі`` is ``у`` after a consonant and ``в`` after a vowel.

A pattern holds, besides plain words,

* ``[X]`` and ``[Y]``: subject and object, ``[X]`` from the column ``subject`` (else the label);
* ``[X:gen]``, ``[Y:loc]``: the form in the column of that name;
* ``{m:родился|f:родилась}``: the words for the subject's noun class (several: ``{m,n:…|f:…}``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fluent_mlama.console import UserError
from fluent_mlama.data import DATA, PHRASEBOOK
from fluent_mlama.languages import capitalize, language
from fluent_mlama.translating.backend import (
    Answer,
    SourceSentence,
    TranslatorOptions,
    back_end,
    text_hash,
)

SOURCE = "en"
"""The language that the others are translations of; it has templates and no fluent patterns."""
VOWELS = frozenset("аеєиіїоуюя")
"""Letters after which the second of two alternating words is said."""
NOT_NEEDED = "-"
"""A cell that no pattern asks for, marked so that empty cells are exactly those to be filled."""
PLAIN_COLUMNS = ("uri", "english", "used", "label", "class", "subject", "aliases")
"""Columns that are not forms."""

PLACE = re.compile(r"\[([XY])(?::([a-z0-9]+))?\]")
CHOICE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class StarterFact:
    """One line of ``facts.tsv``; held-out facts are for few-shot prompts, in no benchmark file."""

    relation: str
    sub_uri: str
    obj_uri: str
    held_out: bool
    note: str


@dataclass(frozen=True, slots=True)
class Phrase:
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
    forms: Mapping[str, Phrase]
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """How one relation is said: the naive template (mLAMA's kind) and the fluent pattern ("" in
    English, the source).
    """

    template: str
    fluent: str

    def asked(self, place: str) -> set[str]:
        """Phrase columns the fluent pattern asks of X or of Y; "" stands for the plain label."""
        return {form for which, form in PLACE.findall(self.fluent) if which == place}

    def classes(self) -> set[str]:
        """Noun classes of the subject that every choice covers; empty where there is no choice."""
        covered = [set(read_choice(choice)) for choice in CHOICE.findall(self.fluent)]
        return set.intersection(*covered) if covered else set()


def read_phrase(cell: str) -> Phrase:
    """A form cell ``before|form|after``, ``before|form`` or ``form``."""
    parts = [part.strip() for part in cell.split("|")]
    if len(parts) == 1:
        return Phrase("", parts[0], "")
    return Phrase(parts[0], parts[1], parts[2] if len(parts) > 2 else "")


def read_facts(path: Path = DATA / "facts.tsv") -> list[StarterFact]:
    """All facts, in file order."""
    rows = read_cells(path)
    return [
        StarterFact(
            row["relation"], row["sub_uri"], row["obj_uri"], bool(row["held_out"]), row["note"]
        )
        for row in rows
    ]


def read_cells(path: Path) -> list[dict[str, str]]:
    """The rows of a tab-separated file by column; no quoting: a cell is what an editor shows."""
    if not path.is_file():
        raise UserError(
            f"{path}: no such file; fluent_mlama/data/phrasebook/README.md tells how to add a"
            " language"
        )
    lines = path.read_text(encoding="utf-8").splitlines()
    header, *rows = (line.split("\t") for line in lines if line)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise UserError(
                f"{path}, line {number}: {len(row)} cells where the header has {len(header)}; mend"
                " the line"
            )
    return [dict(zip(header, row, strict=True)) for row in rows]


def read_entries(path: Path) -> dict[str, Entry]:
    """The entities of one language by Wikidata id, in file order."""
    entries = {}
    for cells in read_cells(path):
        row = {column: "" if cell == NOT_NEEDED else cell for column, cell in cells.items()}
        filled = {
            column: read_phrase(cell)
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


@dataclass(frozen=True, slots=True)
class Sentence:
    """A fluent sentence and its object: ``prompt + object + tail == sentence``, always."""

    sentence: str
    prompt: str
    object: str
    tail: str
    noun_class: str


class Phrasebook:
    """The phrasebook of one language, read once."""

    def __init__(self, lang: str, folder: Path = PHRASEBOOK) -> None:
        self.language = language(lang)
        self.path = folder / f"{lang}.tsv"
        self.entries = read_entries(self.path)
        self.pattern_path = folder / f"{lang}_patterns.tsv"
        self.patterns = read_patterns(self.pattern_path)

    def entry(self, uri: str) -> Entry:
        """The row of this entity; none is a ``UserError``."""
        if uri not in self.entries:
            raise UserError(
                f"{self.path}: no row for {uri}; add one (fluent_mlama/data/phrasebook/README.md"
                " says how)"
            )
        return self.entries[uri]

    def pattern(self, relation: str) -> Pattern:
        """The row of this relation; none is a ``UserError``."""
        if relation not in self.patterns:
            raise UserError(f"{self.pattern_path}: no row for {relation}; add one")
        return self.patterns[relation]

    def naive(self, relation: str, sub_uri: str, obj_uri: str) -> Sentence:
        """The template filled with the two labels as they stand."""
        entry = self.entry(sub_uri)
        before, after = self.pattern(relation).template.split("[Y]")
        label = self.entry(obj_uri).label
        prompt, tail = before.replace("[X]", entry.label), after.replace("[X]", entry.label)
        return Sentence(prompt + label + tail, prompt, label, tail, entry.noun_class)

    def fluent(self, relation: str, sub_uri: str, obj_uri: str) -> Sentence:
        """The fluent pattern with its forms filled in; a missing cell is a ``UserError``."""
        subject, target = self.entry(sub_uri), self.entry(obj_uri)
        pattern = CHOICE.sub(
            lambda found: self._choose(found[1], subject, relation), self.pattern(relation).fluent
        )
        # Text goes to the prompt until the object's place is reached, then to the tail; the words
        # that the object brings along stay outside its form.
        parts: dict[str, str] = {"prompt": "", "tail": ""}
        side, form, position = "prompt", Phrase("", "", ""), 0
        for found in PLACE.finditer(pattern):
            parts[side] += pattern[position : found.start()]
            position = found.end()
            if found[1] == "X":
                said = (
                    self._form(subject, found[2], relation)
                    if found[2]
                    else Phrase("", subject.subject or subject.label, "")
                )
                parts[side] += self._join(said.before, said.text, said.after)
            else:
                form = self._form(target, found[2] or "", relation)
                parts[side] += self._glue(_alternate(form.before, parts[side]))
                side = "tail"
                parts[side] += self._space(form.after) + form.after
        parts[side] += pattern[position:]
        prompt = capitalize(parts["prompt"], self.language.code)
        return Sentence(
            prompt + form.text + parts["tail"], prompt, form.text, parts["tail"], subject.noun_class
        )

    def _choose(self, choice: str, subject: Entry, relation: str) -> str:
        words = read_choice(choice)
        if subject.noun_class not in words:
            raise UserError(
                f"{self.path}: class '{subject.noun_class}' of {subject.uri} ({subject.english}) is"
                f" not in the pattern of {relation}, which knows {', '.join(words)}"
            )
        return words[subject.noun_class]

    def _form(self, entry: Entry, column: str, relation: str) -> Phrase:
        if not column:
            return Phrase("", entry.label, "")
        if column not in entry.forms:
            raise UserError(
                f"{self.path}: {entry.uri} ({entry.english}) lacks the form '{column}' that"
                f" {relation} needs; fill the cell"
            )
        return entry.forms[column]

    def _space(self, words: str) -> str:
        return " " if words and self.language.spaces else ""

    def _glue(self, before: str) -> str:
        """The words before the object, with a blank unless they end in an apostrophe or hyphen."""
        return before + ("" if before.endswith(("'", "’", "-")) else self._space(before))

    def _join(self, before: str, text: str, after: str) -> str:
        return self._glue(before) + text + self._space(after) + after


def _alternate(before: str, preceding: str) -> str:
    """Of two words (``у/в``, Ukrainian alone), one after a consonant, the other after a vowel."""
    after_consonant, bar, after_vowel = before.partition("/")
    return after_vowel if bar and preceding.rstrip()[-1:].lower() in VOWELS else after_consonant


class PhrasebookTranslator:
    """The phrasebook as a translation back end: facts it knows get a sentence and the object's
    span, others ``missing``.

    folder: where ``{lang}.tsv`` and ``{lang}_patterns.tsv`` lie.
    """

    name = "phrasebook"
    model = ""
    costly = False

    def __init__(self, folder: Path = PHRASEBOOK) -> None:
        self._folder = folder
        self._books: dict[str, Phrasebook] = {}

    def check(self, source: str, target: str, relation: str) -> None:
        """``UserError`` without a phrasebook for the pair or a pattern for the relation."""
        if source != SOURCE:
            raise UserError(f"the phrasebook translates from English only, not from '{source}'")
        if target == SOURCE:
            raise UserError("English is the phrasebook's source: choose another target language")
        self._book(target).pattern(relation)

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        """Identifies the content of the language's two files."""
        book = self._book(target)
        return text_hash(
            *(path.read_text(encoding="utf-8") for path in (book.path, book.pattern_path))
        )

    def query(self, item: SourceSentence) -> str:
        """The fact by its ids; labels do not matter."""
        return f"{item.relation} {item.sub_uri} {item.obj_uri}"

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        """Each item with its fluent sentence, in order."""
        for item in items:
            try:
                said = self._book(item.target).fluent(item.relation, item.sub_uri, item.obj_uri)
            except UserError as error:
                yield item, Answer(None, "missing", detail=str(error))
                continue
            yield (
                item,
                Answer(
                    said.sentence,
                    object_span=(len(said.prompt), len(said.prompt) + len(said.object)),
                ),
            )

    def _book(self, target: str) -> Phrasebook:
        if target not in self._books:
            self._books[target] = Phrasebook(target, self._folder)
        return self._books[target]


@back_end("phrasebook")
def _from_folder(argument: str, options: TranslatorOptions) -> PhrasebookTranslator:
    return PhrasebookTranslator(Path(argument)) if argument else PhrasebookTranslator()
