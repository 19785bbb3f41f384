"""What one browser tab has open: a project, its words and phrases, one paradigm. No user interface here."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

from fluent_mlama.console import UserError
from fluent_mlama.zhoblimp.page.draft import Draft, Remark, load_draft, remark_on, renumbered
from fluent_mlama.zhoblimp.page.projects import NEW, Projects, check_name, paradigm_file
from fluent_mlama.zhoblimp.paradigm import check_paradigm
from fluent_mlama.zhoblimp.phrases import Phrases, parse_phrases
from fluent_mlama.zhoblimp.vocabulary import Vocabulary, parse_vocabulary

VOCABULARY, PHRASES = "vocabulary.tsv", "phrases.json"


@dataclass
class Document:
    """A text file that is being edited: its name, its text now and as it was loaded, and the revision it was loaded at."""

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
    """One tab's state. vocabulary and phrases are the last valid versions of the edited texts; a broken text leaves them."""

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
        """Write the paradigm; returns its file name. Another file of that name is only written over if ``overwrite``."""
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
        """Put the old rows in this order (None: an empty one); agreements go on pointing at the same rows."""
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
