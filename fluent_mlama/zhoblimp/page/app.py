"""The page: projects and paradigms above, four tabs below.

State lives in the tab (``Workbench``), files on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nicegui import app, ui
from starlette.middleware.trustedhost import TrustedHostMiddleware

from fluent_mlama.zhoblimp.generate import CONTENT
from fluent_mlama.zhoblimp.page.asking import ask, choose, notice, told
from fluent_mlama.zhoblimp.page.editor import Editor
from fluent_mlama.zhoblimp.page.preview import Preview, Score
from fluent_mlama.zhoblimp.page.projects import Projects, check_name
from fluent_mlama.zhoblimp.page.words import PhrasesTab, WordsTab
from fluent_mlama.zhoblimp.page.workbench import Workbench

SOURCES: dict[str, Path | None] = {
    "Chinese words and paradigms": CONTENT / "zh",
    "Russian words and paradigms": CONTENT / "ru",
    "nothing": None,
}
GUIDE = Path(__file__).with_name("guide.md").read_text(encoding="utf-8")
STYLE = """
body { background: #fafafa }
.mono, .rule-side textarea { font-family: ui-monospace, "Noto Sans Mono CJK SC", monospace; }
.rule-row {
  display: grid; grid-template-columns: 1.5rem 1fr 1fr auto; gap: .25rem .5rem; align-items: start;
}
.rule-number { padding-top: .6rem; text-align: right; color: #555 }
.rule-buttons { flex-wrap: nowrap }
.pairs { border-collapse: collapse; font-size: 1rem }
.pairs th, .pairs td {
  text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #ddd;
  vertical-align: top
}
.pairs mark { background: #ffe08a; color: inherit }
.guide table { border-collapse: collapse }
.guide td, .guide th { border: 1px solid #ddd; padding: .2rem .5rem; text-align: left }
.guide > div { overflow-x: auto }
@media (max-width: 700px) {
  .rule-row {
    grid-template-columns: 1.5rem 1fr; border-bottom: 1px solid #ddd; padding-bottom: .5rem
  }
  .rule-side, .rule-buttons { grid-column: 2 } .rule-number { grid-row: 1 }
}
"""
LEAVING = """
window.unsaved = false;
window.addEventListener('beforeunload', event => { if (window.unsaved) event.preventDefault(); });
"""


class Page:
    """One browser tab."""

    def __init__(self, projects: Projects, score: Score) -> None:
        self.projects = projects
        self.bench = Workbench(projects)
        self.editor = Editor(self.bench, self.changed, self.files_changed)
        self.preview = Preview(self.bench, score)
        self.words = WordsTab(self.bench, self.words_changed)
        self.phrases = PhrasesTab(self.bench, self.words_changed)
        self.warned = False

    def build(self) -> None:
        """Draw everything; the first project is opened if there is one."""
        ui.add_css(STYLE)
        ui.add_head_html(f"<script>{LEAVING}</script>")
        ui.colors(primary="#0b5a8a")
        names = self.projects.names()
        if names:
            with told():
                self.bench.open_project(names[0])
        with ui.column().classes("w-full max-w-6xl mx-auto p-2 gap-3"):
            ui.label("Minimal pairs").classes("text-xl").props("role=heading aria-level=1")
            self.header()
            self.tabs()

    @ui.refreshable_method
    def header(self) -> None:
        """Choose, make, copy and delete projects; choose a paradigm."""
        bench = self.bench
        with ui.row().classes("w-full items-center gap-2"):
            projects = (
                ui.select(self.projects.names(), label="Project", value=bench.project or None)
                .props("dense outlined")
                .classes("w-48")
            )
            projects.on_value_change(
                lambda event: self.leave(
                    lambda: bench.open_project(str(event.value)), bool(event.value)
                )
            )
            self.button("New project", self.new_project)
            if bench.project:
                self.button("Copy project", self.copy_project)
                self.button("Delete project", self.delete_project)
        if bench.project:
            with ui.row().classes("w-full items-center gap-2"):
                files = self.projects.paradigms(bench.project)
                chosen = ui.select(
                    files,
                    label="Paradigm",
                    value=bench.file if bench.file in files else None,
                    with_input=True,
                )
                chosen.props("dense outlined").classes("w-80")
                chosen.on_value_change(
                    lambda event: self.leave(
                        lambda: bench.open_paradigm(str(event.value)), bool(event.value)
                    )
                )
                self.button("New paradigm", lambda: self.leave(bench.new_paradigm, True))
                self.state = ui.label().classes("text-sm text-grey-8").props("aria-live=polite")
                self.show_state()

    @ui.refreshable_method
    def tabs(self) -> None:
        """The work, once there is a project."""
        if not self.bench.project:
            ui.label(
                "There is no project yet. Make one with New project: "
                "it begins with words and paradigms to change, or empty."
            )
            with ui.card().classes("w-full guide"):
                ui.markdown(GUIDE)
            return
        with (
            ui.tabs()
            .props("no-caps dense align=left outside-arrows mobile-arrows")
            .classes("w-full") as tabs
        ):
            for name in ("Paradigm", "Vocabulary", "Phrases", "Help"):
                ui.tab(name)
        with (
            ui.tab_panels(tabs, value="Paradigm")
            .classes("w-full bg-transparent")
            .props("keep-alive")
        ):
            with ui.tab_panel("Paradigm").classes("p-0 gap-3"):
                with ui.card().classes("w-full"):
                    self.editor.fields_of_paradigm()
                    self.editor.rows()
                    with ui.row().classes("gap-2"):
                        ui.button("Save paradigm", on_click=self.editor.save).props("no-caps")
                        self.button("Undo row change", self.editor.undo)
                        self.button("Delete paradigm", self.editor.delete)
                with ui.card().classes("w-full"):
                    self.preview.controls()
            with ui.tab_panel("Vocabulary").classes("p-0"), ui.card().classes("w-full"):
                self.words.shown()
            with ui.tab_panel("Phrases").classes("p-0"), ui.card().classes("w-full"):
                self.phrases.shown()
            with ui.tab_panel("Help").classes("p-0"), ui.card().classes("w-full guide"):
                ui.markdown(GUIDE)

    @staticmethod
    def button(text: str, action: Callable[[], object]) -> None:
        """A plain button."""
        ui.button(text, on_click=action).props("no-caps outline")

    async def leave(self, open_other: Callable[[], None], meant: bool) -> None:
        """Open something else, asking first if there is unsaved work."""
        if not meant:
            return
        if (
            self.bench.changed
            and await choose("There is unsaved work. Leave it?", ["Leave it", "Go back"])
            != "Leave it"
        ):
            self.header.refresh()
            return
        before = self.bench.project
        with told():
            open_other()
        self.header.refresh()
        self.preview.clear()
        if self.bench.project == before:
            self.editor.redraw()
        else:
            self.tabs.refresh()
        self.changed()

    async def new_project(self) -> None:
        """Ask for a name and where to begin."""
        fields: list[tuple[str, str | list[str], str]] = [
            ("Name", "", ""),
            ("Begin with", list(SOURCES), next(iter(SOURCES))),
        ]
        values = await ask(
            "New project",
            fields,
            lambda name, _: self.projects.create(check_name(name, "project"), SOURCES[_]),
        )
        if values:
            await self.leave(lambda: self.bench.open_project(values[0]), True)

    async def copy_project(self) -> None:
        """Ask for the copy's name."""
        values = await ask(
            "Copy project",
            [("Name", "", f"{self.bench.project}_copy")],
            lambda name: self.projects.copy(self.bench.project, name),
        )
        if values:
            await self.leave(lambda: self.bench.open_project(values[0]), True)

    async def delete_project(self) -> None:
        """Delete after a question; the folder is kept in .deleted."""
        name = self.bench.project
        if (
            await choose(f"Delete project {name} with all its paradigms?", ["Delete", "Keep it"])
            != "Delete"
        ):
            return
        with told():
            self.projects.delete(name)
            notice(f"project {name} deleted; it is kept in {self.projects.folder}/.deleted")
            self.bench.close_project()
            if self.projects.names():
                self.bench.open_project(self.projects.names()[0])
        self.header.refresh()
        self.tabs.refresh()

    def files_changed(self) -> None:
        """After a paradigm was saved or deleted."""
        self.header.refresh()
        self.changed()

    def words_changed(self) -> None:
        """After words or phrases were edited: every row may mean something else."""
        self.editor.show_remarks()
        self.changed()

    def changed(self) -> None:
        """Show whether there is unsaved work and whether the preview is out of date."""
        self.show_state()
        self.preview.show_age()
        if self.bench.changed != self.warned:
            self.warned = self.bench.changed
            ui.run_javascript(f"window.unsaved = {'true' if self.warned else 'false'}")

    def show_state(self) -> None:
        """What is unsaved."""
        parts = {
            "paradigm": self.bench.paradigm_changed,
            "vocabulary": self.bench.words.changed,
            "phrases": self.bench.rules.changed,
        }
        unsaved = ", ".join(name for name, changed in parts.items() if changed)
        if hasattr(self, "state"):
            self.state.text = f"unsaved: {unsaved}" if unsaved else "all saved"


def serve_page(folder: Path, port: int, score: Score) -> None:
    """Run the page on 127.0.0.1 until it is stopped."""
    projects = Projects(folder)

    @ui.page("/", title="Minimal pairs")
    def page() -> None:
        Page(projects, score).build()

    # DNS rebinding: another site must not reach this page through a name for 127.0.0.1.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    print(
        f"Minimal pairs: http://127.0.0.1:{port}  (projects in {folder}; stop with Ctrl+C)",
        flush=True,
    )
    ui.run(
        host="127.0.0.1",
        port=port,
        show=False,
        reload=False,
        show_welcome_message=False,
        favicon="📝",
        language="en-GB",
    )
