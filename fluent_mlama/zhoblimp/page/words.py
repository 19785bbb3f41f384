"""Vocabulary and phrases: edited as text, checked at every keystroke, saved on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nicegui import ui

from fluent_mlama.console import UserError
from fluent_mlama.zhoblimp.page.asking import ask, choose, notice, told
from fluent_mlama.zhoblimp.page.projects import ChangedElsewhere, check_name
from fluent_mlama.zhoblimp.page.workbench import Document, Workbench
from fluent_mlama.zhoblimp.paradigm import Alternative, Lexical, Literals


@dataclass(eq=False)  # two tabs are never the same, whatever they hold
class WordsTab:
    """The vocabulary of the project."""

    bench: Workbench
    on_change: Callable[[], None]

    @ui.refreshable_method
    def shown(self) -> None:
        """File, table with a search field, a form for a new word, and the text itself."""
        bench = self.bench
        with ui.row().classes("w-full items-center gap-4"):
            files = bench.projects.vocabularies(bench.project)
            choice = (
                ui.select(files, label="Vocabulary file", value=bench.words.file)
                .props("dense outlined")
                .classes("w-56")
            )
            choice.on_value_change(lambda event: self._open(str(event.value)))
            ui.button(
                "Save vocabulary",
                on_click=lambda: save(bench, bench.words, self.on_change, self._reloaded),
            ).props("no-caps")
            ui.button("Save vocabulary as", on_click=self._save_as).props("no-caps outline")
        self.table()
        with ui.expansion("Add a word or a property").classes("w-full"):
            self.form()
        self.message = ui.label().classes("text-negative").props("role=alert")
        area = ui.textarea(
            "Vocabulary text (tab-separated)",
            value=bench.words.text,
            on_change=lambda event: self._edit(event.value or ""),
        )
        self.area = area.classes("w-full").props(
            "outlined debounce=300 spellcheck=false input-class='mono' input-style='height: 22rem'"
        )

    @ui.refreshable_method
    def table(self) -> None:
        """All words, searchable in every column."""
        vocabulary = self.bench.vocabulary
        columns = [
            {"name": name, "label": name, "field": name, "sortable": True, "align": "left"}
            for name in ("row", *vocabulary.columns)
        ]
        rows = [
            {
                "row": entry.row,
                **{name: "/".join(sorted(entry.values(name))) for name in vocabulary.columns},
            }
            for entry in vocabulary.entries
        ]
        search = (
            ui.input("Search words and properties")
            .props("dense outlined clearable")
            .classes("w-full max-w-md")
        )
        table = (
            ui.table(rows=rows, columns=columns, row_key="row", pagination=10)
            .classes("w-full")
            .props("dense")
        )
        search.bind_value_to(table, "filter")

    @ui.refreshable_method
    def form(self) -> None:
        """Fields for one more word and one more column (a browser's text field takes no tab)."""
        columns = self.bench.vocabulary.columns
        with ui.row().classes("w-full gap-2"):
            boxes = [ui.input(name).props("dense outlined").classes("w-32") for name in columns]

        def add() -> None:
            with told():
                cells = [str(box.value or "").strip() for box in boxes]
                if not cells[columns.index("expression")]:
                    raise UserError("fill in the column expression: the word itself")
                self.area.value = (
                    self.bench.words.text.rstrip("\n") + "\n" + "\t".join(cells).rstrip("\t") + "\n"
                )
                for box in boxes:
                    box.value = ""

        def add_property() -> None:
            with told():
                name = check_name(str(new.value or "").strip(), "property")
                if name in columns:
                    raise UserError(f"there is a property '{name}' already")
                head, end, rest = self.bench.words.text.partition("\n")
                self.area.value = f"{head}\t{name}{end}{rest}"

        ui.button("Add this word", on_click=add).props("no-caps outline")
        with ui.row().classes("w-full gap-2 items-center mt-2"):
            new = ui.input("New property").props("dense outlined").classes("w-48")
            ui.button("Add this property", on_click=add_property).props("no-caps outline")

    def _edit(self, text: str) -> None:
        columns = self.bench.vocabulary.columns
        self.message.text = self.bench.edit_words(text)
        if not self.message.text:
            self.table.refresh()
            if self.bench.vocabulary.columns != columns:
                self.form.refresh()
        self.on_change()

    def _open(self, file: str) -> None:
        with told():
            self.bench.open_words(file)
            self._reloaded()

    async def _save_as(self) -> None:
        values = await ask(
            "Save vocabulary as", [("File name", "", "my_words.tsv")], _check_file_name
        )
        if values:
            await save(self.bench, self.bench.words, self.on_change, self._reloaded, values[0])
            self.shown.refresh()

    def _reloaded(self) -> None:
        self.shown.refresh()
        self.on_change()


@dataclass(eq=False)  # two tabs are never the same, whatever they hold
class PhrasesTab:
    """The phrases of the project."""

    bench: Workbench
    on_change: Callable[[], None]

    @ui.refreshable_method
    def shown(self) -> None:
        """Each phrase readably, then the JSON text."""
        ui.button(
            "Save phrases",
            on_click=lambda: save(self.bench, self.bench.rules, self.on_change, self._reloaded),
        ).props("no-caps")
        ui.label("How a phrase is written stands in Help, under Words and phrases.").classes(
            "text-sm text-grey-8"
        )
        self.list()
        self.message = ui.label().classes("text-negative").props("role=alert")
        area = ui.textarea(
            "Phrases (JSON)",
            value=self.bench.rules.text,
            on_change=lambda event: self._edit(event.value or ""),
        )
        area.classes("w-full").props(
            "outlined debounce=300 spellcheck=false input-class='mono' input-style='height: 22rem'"
        )

    @ui.refreshable_method
    def list(self) -> None:
        """Name and forms of each phrase."""
        for name, sequences in self.bench.phrases.items():
            ui.label(
                f"{name} = "
                + "  or  ".join(" + ".join(map(spelt, sequence)) for sequence in sequences)
            ).classes("text-sm mono")

    def _edit(self, text: str) -> None:
        self.message.text = self.bench.edit_phrases(text)
        if not self.message.text:
            self.list.refresh()
        self.on_change()

    def _reloaded(self) -> None:
        self.shown.refresh()
        self.on_change()


def spelt(element: Alternative) -> str:
    """An element of a phrase as a rule's text."""
    if isinstance(element, Literals):
        return "/".join(element.words)
    if isinstance(element, Lexical):
        parts = [f"{name}:{'/'.join(sorted(values))}" for name, values in element.conditions]
        parts += [
            f"{'mPos' if one.match else 'mmPos'}:{one.position} {'/'.join(one.properties)}"
            for one in element.agreements
        ]
        return f"[{' '.join(parts)}]"
    return f"phrase:{element.name}"


def _check_file_name(name: str) -> None:
    check_name(name, "file")


async def save(
    bench: Workbench,
    document: Document,
    on_change: Callable[[], None],
    reloaded: Callable[[], None],
    name: str = "",
) -> None:
    """Save words or phrases; if the file was changed elsewhere or the name is taken, ask."""
    with told():
        try:
            bench.save_document(document, name=name)
        except ChangedElsewhere as conflict:
            answers = (
                ["Overwrite it", "Go on editing"]
                if name
                else ["Overwrite it", "Load that version", "Go on editing"]
            )
            answer = await choose(str(conflict), answers)
            if answer == "Load that version":
                bench.reload_document(document)
                reloaded()
            if answer != "Overwrite it":
                return
            bench.save_document(document, name=name, overwrite=True)
        on_change()
        notice(f"{document.file} saved")
