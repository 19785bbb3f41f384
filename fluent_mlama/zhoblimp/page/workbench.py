"""What one browser tab has open: a project, its words and phrases, a paradigm being written.

There is no user interface here. A draft says what each row means now and what it would generate.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from fluent_mlama.console import UserError
from fluent_mlama.zhoblimp.generator import Generated, Generator, referents
from fluent_mlama.zhoblimp.page.projects import NEW, Projects, check_name, paradigm_file
from fluent_mlama.zhoblimp.paradigm import (
    Lexical,
    Paradigm,
    PhraseRule,
    Phrases,
    check_alternative,
    check_paradigm,
    normalised,
    parse_paradigm,
    parse_phrases,
    parse_position,
)
from fluent_mlama.zhoblimp.vocabulary import Vocabulary, parse_vocabulary

VOCABULARY, PHRASES = "vocabulary.tsv", "phrases.json"
_REFERENCE = re.compile(
    r"(?<!\S)((?:mPos|mmPos|gPos|(?:mis)?matchedPosition|goodPosition):)([0-9]{1,9})(?!\S)"
)
MOST_PAIRS = 1000
MOST_ATTEMPTS = 1000


@dataclass
class Draft:
    """The editable fields. good[i] and bad[i] are row i."""

    uid: str = ""
    user: str = ""
    phenomenon: str = ""
    strict: bool = True
    spaces: bool = False
    good: list[str] = field(default_factory=lambda: [""])
    bad: list[str] = field(default_factory=lambda: [""])

    def text(self) -> str:
        """The paradigm file."""
        rules = {"good_rule": self.good, "bad_rule": self.bad}
        names = {"uid": self.uid, "user": self.user, "phenomenon": self.phenomenon}
        return (
            json.dumps(
                {**names, "strict_MP": self.strict, "sep": " " if self.spaces else "", **rules},
                ensure_ascii=False,
                indent=1,
            )
            + "\n"
        )

    def paradigm(self) -> Paradigm:
        """Parsed, or the ``UserError`` that says which row is wrong."""
        return parse_paradigm(
            self.text() if self.uid else Draft(**{**vars(self), "uid": "draft"}).text(),
            self.uid or "draft",
        )


def load_draft(text: str, where: str) -> Draft:
    """A draft from a paradigm file."""
    one = parse_paradigm(text, where)
    return Draft(
        one.uid,
        one.user,
        one.phenomenon,
        one.strict,
        one.separator == " ",
        list(one.good_rules),
        list(one.bad_rules),
    )


def renumbered(rule: str, places: Mapping[int, int | None]) -> str:
    """The rule with its row numbers changed (old -> new); a row that is gone (None) becomes ``?``.

    Numbers that ``places`` lacks stay: rows that are still to be written.
    """

    def place(found: re.Match[str]) -> str:
        new = places.get(int(found[2]), int(found[2]))
        return found[1] + ("?" if new is None else str(new))

    return _REFERENCE.sub(place, rule)


@dataclass(frozen=True)
class Remark:
    """What is to be said under one field."""

    text: str
    is_error: bool = False


def remark_on(
    text: str, index: int, draft: Draft, side: str, vocabulary: Vocabulary, phrases: Phrases
) -> Remark:
    """How many words the rule draws from, or what is wrong with it."""
    try:
        counts = []
        for alternative in parse_position(text, f"row {index}"):
            length, where = len(draft.good), f"row {index}"
            in_good = side == "good"
            check_alternative(alternative, length, vocabulary, phrases, where, in_good=in_good)
            if index in referents(alternative, length):
                raise UserError(f"{where} agrees with itself; name another row (rows count from 0)")
            if isinstance(alternative, Lexical):
                counts.append(_count(alternative, vocabulary))
            elif isinstance(alternative, PhraseRule):
                forms = len(phrases[alternative.name])
                counts.append(f"phrase {alternative.name}, {forms} form{'s' if forms > 1 else ''}")
            elif alternative.words == ("",):
                counts.append("nothing")
            else:
                counts.append(f"literally {' or '.join(alternative.words)}")
    except UserError as error:
        return Remark(str(error), True)
    return Remark(" | ".join(counts) + (f" · {_origin(draft, index)}" if side == "bad" else ""))


def _count(rule: Lexical, vocabulary: Vocabulary) -> str:
    """Words that meet the conditions, and how many of them have no property to agree in."""
    selected = vocabulary.select(rule.conditions)
    able = set()
    for entry in selected:
        shared = [any(map(entry.values, one.properties)) for one in rule.agreements]
        if all(shared):
            able.add(entry.expression)
    words = {entry.expression for entry in selected}
    if able < words:
        lacking = len(words - able)
        return f"{len(words)} words, {lacking} of them without the property to agree in"
    return f"{len(words)} word{'s' if len(words) != 1 else ''}"


def _origin(draft: Draft, index: int) -> str:
    """Where the bad sentence's word comes from."""
    good, bad = [normalised(rule) for rule in draft.good], [normalised(rule) for rule in draft.bad]
    if bad[index] == good[index]:
        return "same word as in the good sentence"
    same = [j for j, rule in enumerate(good) if rule == bad[index]]
    return f"word moved from row {same[0]}" if same and bad[index] else "changed"


def generate(
    draft: Draft, vocabulary: Vocabulary, phrases: Phrases, pairs: int, seed: int, attempts: int
) -> Generated:
    """Pairs of the draft, checked first. Numbers out of range are ``UserError``s."""
    if not 1 <= pairs <= MOST_PAIRS or not 1 <= attempts <= MOST_ATTEMPTS:
        raise UserError(
            f"pairs must lie between 1 and {MOST_PAIRS}, attempts per pair between 1 and "
            f"{MOST_ATTEMPTS}"
        )
    paradigm = draft.paradigm()
    check_paradigm(paradigm, vocabulary, phrases)
    return Generator(paradigm, vocabulary, phrases, seed).generate(pairs, attempts)


def differences(
    good: str, bad: str, words: bool
) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both sentences as (piece, differs) in order, compared by word or by character."""
    left, right = (good.split(" "), bad.split(" ")) if words else (list(good), list(bad))
    join = " " if words else ""
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for side, pieces in zip(sides, (left[a:b], right[c:d]), strict=True):
            if pieces and side and words:
                side.append((join, False))
            if pieces:
                side.append((join.join(pieces), kind != "equal"))
    return sides


@dataclass
class Document:
    """A text file that is being edited: its text now, as it was loaded, and its revision then."""

    file: str
    text: str = ""
    saved: str = ""
    revision: str = NEW

    @property
    def changed(self) -> bool:
        """Whether there is something to save."""
        return self.text != self.saved


@dataclass(eq=False)
class Workbench:
    """One tab's state.

    vocabulary and phrases are the last valid versions of the edited texts; a broken text leaves
    them.
    """

    projects: Projects
    project: str = ""
    words: Document = field(default_factory=lambda: Document(VOCABULARY))
    rules: Document = field(default_factory=lambda: Document(PHRASES))
    vocabulary: Vocabulary = field(default_factory=lambda: parse_vocabulary("expression\n-\n"))
    phrases: Phrases = field(default_factory=dict)
    draft: Draft = field(default_factory=Draft)
    file: str = ""
    revision: str = NEW
    saved_text: str = field(default_factory=lambda: Draft().text())
    history: list[Draft] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether the paradigm, the words or the phrases hold unsaved work."""
        return self.paradigm_changed or self.words.changed or self.rules.changed

    @property
    def paradigm_changed(self) -> bool:
        """Whether the paradigm holds unsaved work."""
        return self.draft.text() != self.saved_text

    def open_project(self, name: str) -> None:
        """Load a project's words and phrases and begin a new paradigm."""
        words, rules = self._document(name, VOCABULARY), self._document(name, PHRASES)
        vocabulary, phrases = (
            parse_vocabulary(words.text, VOCABULARY),
            parse_phrases(rules.text, PHRASES),
        )
        self.project, self.words, self.rules, self.vocabulary, self.phrases = (
            name,
            words,
            rules,
            vocabulary,
            phrases,
        )
        self.new_paradigm()

    def close_project(self) -> None:
        """Go back to having nothing open."""
        self.project, self.words, self.rules = "", Document(VOCABULARY), Document(PHRASES)
        self.new_paradigm()

    def new_paradigm(self) -> None:
        """Begin an empty one."""
        self._take(Draft(), "", NEW)

    def open_paradigm(self, file: str) -> None:
        """Load a paradigm of the project."""
        stored = self.projects.read(self.project, file)
        self._take(load_draft(stored.text, file), file, stored.revision)

    def save_paradigm(self, *, overwrite: bool = False) -> str:
        """Write the paradigm; returns its file name.

        Another file of that name is only written over if ``overwrite``.
        """
        if not self.project:
            raise UserError("no project is open; make one first (New project)")
        file = paradigm_file(self.draft.uid, self.draft.user)
        text = self.draft.text()
        load_draft(text, file)
        revision = self.revision if file == self.file else NEW
        if overwrite and file in self.projects.paradigms(self.project):
            revision = self.projects.read(self.project, file).revision
        elif overwrite:
            revision = NEW
        self.revision = self.projects.write(self.project, file, text, revision)
        self.file, self.saved_text = file, text
        return file

    def delete_paradigm(self) -> None:
        """Discard the loaded paradigm's file and begin a new one."""
        if not self.file:
            raise UserError("this paradigm is not saved, so there is nothing to delete")
        self.projects.discard(self.project, self.file, self.revision)
        self.new_paradigm()

    def complaint(self) -> str:
        """What still keeps the paradigm from generating, or nothing."""
        try:
            check_paradigm(self.draft.paradigm(), self.vocabulary, self.phrases)
        except UserError as error:
            return str(error)
        return ""

    def remark(self, index: int, side: str) -> Remark:
        """What is to be said under a field."""
        text = (self.draft.good if side == "good" else self.draft.bad)[index]
        return remark_on(text, index, self.draft, side, self.vocabulary, self.phrases)

    def edit_words(self, text: str) -> str:
        """Take an edited vocabulary over if it is valid; what is wrong with it otherwise."""
        self.words.text = text
        try:
            self.vocabulary = parse_vocabulary(text, self.words.file)
        except UserError as error:
            return str(error)
        return ""

    def edit_phrases(self, text: str) -> str:
        """Take edited phrases over if they are valid; what is wrong with them otherwise."""
        self.rules.text = text
        try:
            self.phrases = parse_phrases(text, self.rules.file)
        except UserError as error:
            return str(error)
        return ""

    def save_document(self, document: Document, *, name: str = "", overwrite: bool = False) -> None:
        """Write words or phrases if they are valid, under another ``name`` if given."""
        if document is self.words:
            parse_vocabulary(document.text, document.file)
        else:
            parse_phrases(document.text, document.file)
        file = check_name(name, "file") if name else document.file
        if document is self.words and not file.endswith(".tsv"):
            file += ".tsv"
        revision = document.revision if file == document.file else NEW
        if overwrite:
            revision = self.projects.read(self.project, file).revision
        document.revision = self.projects.write(self.project, file, document.text, revision)
        document.file, document.saved = file, document.text

    def open_words(self, file: str) -> None:
        """Take another vocabulary of the project."""
        words = self._document(self.project, file)
        self.vocabulary = parse_vocabulary(words.text, file)
        self.words = words

    def reload_document(self, document: Document) -> None:
        """Take what is on disk now."""
        fresh = self._document(self.project, document.file)
        document.text, document.saved, document.revision = fresh.text, fresh.saved, fresh.revision
        if document is self.words:
            self.edit_words(document.text)
        else:
            self.edit_phrases(document.text)

    def add_row(self, below: int) -> None:
        """An empty row below row ``below``."""
        self._rearrange([*range(below + 1), None, *range(below + 1, len(self.draft.good))])

    def delete_row(self, index: int) -> None:
        """Remove a row; one always remains."""
        if len(self.draft.good) == 1:
            raise UserError("the last row cannot be deleted; empty it instead")
        self._rearrange([row for row in range(len(self.draft.good)) if row != index])

    def move_row(self, index: int, by: int) -> None:
        """Exchange a row with the one above (-1) or below (1)."""
        other = index + by
        if not 0 <= other < len(self.draft.good):
            return
        order: list[int | None] = list(range(len(self.draft.good)))
        order[index], order[other] = other, index
        self._rearrange(order)

    def undo(self) -> None:
        """Take the last change of rows back."""
        if not self.history:
            raise UserError("there is no change of rows to take back")
        self.draft = self.history.pop()

    def _rearrange(self, order: Sequence[int | None]) -> None:
        """Put the old rows in this order (None: an empty one); agreements keep their rows."""
        self.history.append(copy.deepcopy(self.draft))
        places: dict[int, int | None] = dict.fromkeys(range(len(self.draft.good)))
        places |= {old: new for new, old in enumerate(order) if old is not None}
        for rules in (self.draft.good, self.draft.bad):
            rules[:] = ["" if old is None else renumbered(rules[old], places) for old in order]

    def _take(self, draft: Draft, file: str, revision: str) -> None:
        self.draft, self.file, self.revision, self.history = draft, file, revision, []
        self.saved_text = draft.text()

    def _document(self, project: str, file: str) -> Document:
        stored = self.projects.read(project, file)
        return Document(file, stored.text, stored.text, stored.revision)
