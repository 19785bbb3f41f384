"""Fluent sentences from the phrasebook, with the object's place known; a translation back end without a model.

The sentences are gold for whoever looks for inflected objects (``fluent_mlama/locating``): ``prompt + object + tail`` is the
sentence by construction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fluent_mlama.console import UserError
from fluent_mlama.languages import capitalize, language
from fluent_mlama.translating.backend import Answer, Item, text_hash
from fluent_mlama.translating.phrasebook_rows import (
    CHOICE,
    DATA,
    PLACE,
    Entry,
    Form,
    Pattern,
    read_choice,
    read_entries,
    read_patterns,
)

SOURCE = "en"
"""The language that the others are translations of; it has templates and no fluent patterns."""
VOWELS = frozenset("аеєиіїоуюя")
"""Letters after which the second of two alternating words is said."""


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
        self.entries = read_entries(self.path)
        self.pattern_path = folder / f"{lang}_patterns.tsv"
        self.patterns = read_patterns(self.pattern_path)

    def entry(self, uri: str) -> Entry:
        """The row of this entity; none is a ``UserError``."""
        if uri not in self.entries:
            raise UserError(
                f"{self.path}: no row for {uri}; add one (fluent_mlama/data/phrasebook/README.md says how)"
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
        """The fluent pattern filled: the subject's verb form, the object's form; a lacking cell is a ``UserError``."""
        subject, target = self.entry(sub_uri), self.entry(obj_uri)
        pattern = CHOICE.sub(
            lambda found: self._choose(found[1], subject, relation), self.pattern(relation).fluent
        )
        parts: dict[str, str] = {"prompt": "", "tail": ""}
        side, form, position = "prompt", Form("", "", ""), 0
        for found in PLACE.finditer(pattern):
            parts[side] += pattern[position : found.start()]
            position = found.end()
            if found[1] == "X":
                said = (
                    self._form(subject, found[2], relation)
                    if found[2]
                    else Form("", subject.subject or subject.label, "")
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
                f"{self.path}: class '{subject.noun_class}' of {subject.uri} ({subject.english}) is not in the pattern "
                f"of {relation}, which knows {', '.join(words)}"
            )
        return words[subject.noun_class]

    def _form(self, entry: Entry, column: str, relation: str) -> Form:
        if not column:
            return Form("", entry.label, "")
        if column not in entry.forms:
            raise UserError(
                f"{self.path}: {entry.uri} ({entry.english}) lacks the form '{column}' that {relation} needs; fill the cell"
            )
        return entry.forms[column]

    def _space(self, words: str) -> str:
        return " " if words and self.language.spaces else ""

    def _glue(self, before: str) -> str:
        """What stands before the object, with the blank that belongs there (none after an apostrophe or a hyphen)."""
        return before + ("" if before.endswith(("'", "’", "-")) else self._space(before))

    def _join(self, before: str, text: str, after: str) -> str:
        return self._glue(before) + text + self._space(after) + after


def _alternate(before: str, preceding: str) -> str:
    """Of two words for one (``у/в``, Ukrainian alone), the first after a consonant, the second after a vowel."""
    after_consonant, bar, after_vowel = before.partition("/")
    return after_vowel if bar and preceding.rstrip()[-1:].lower() in VOWELS else after_consonant


class PhrasebookTranslator:
    """The phrasebook as a translation back end: facts it knows get a sentence and the object's span, others ``missing``.

    folder: where ``{lang}.tsv`` and ``{lang}_patterns.tsv`` lie.
    """

    name = "phrasebook"
    model = ""
    costly = False

    def __init__(self, folder: Path = DATA / "phrasebook") -> None:
        self._folder = folder
        self._books: dict[str, Phrasebook] = {}

    def check(self, source: str, target: str, relation: str) -> None:
        """Raise a ``UserError`` where there is no phrasebook for this pair or no pattern for the relation."""
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

    def query(self, item: Item) -> str:
        """The fact by its ids; labels do not matter."""
        return f"{item.relation} {item.sub_uri} {item.obj_uri}"

    def translate(self, items: Sequence[Item]) -> Iterator[tuple[Item, Answer]]:
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
