"""The paradigm's own fields and its rows, with what each rule means under it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from nicegui import ui

from fluent_mlama.zhoblimp.page.asking import choose, notice, told
from fluent_mlama.zhoblimp.page.projects import ChangedElsewhere, paradigm_file
from fluent_mlama.zhoblimp.page.workbench import Workbench

SIDES = ("good", "bad")


@dataclass(eq=False)  # two tabs are never the same, whatever they hold
class Editor:
    """Draws the rows anew when their number or order changes; typing changes only the remarks."""

    bench: Workbench
    on_change: Callable[[], None]
    on_files: Callable[[], None]
    remarks: dict[tuple[int, str], ui.label] = field(default_factory=dict)
    fields: dict[tuple[int, str], ui.input] = field(default_factory=dict)

    @ui.refreshable_method
    def fields_of_paradigm(self) -> None:
        """UID, user, phenomenon and the two check boxes."""
        draft = self.bench.draft

        def bind(name: str, label: str, hint: str) -> None:
            box = ui.input(
                label,
                value=getattr(draft, name),
                on_change=lambda event: self._set(name, event.value or ""),
            )
            box.props(f'dense outlined debounce=150 hint="{hint}"').classes("grow basis-40")

        with ui.row().classes("w-full gap-4 items-start"):
            bind("uid", "UID", "names the file, e.g. ba_word_order")
            bind("phenomenon", "Phenomenon", "a group of paradigms")
            bind("user", "User", "optional, part of the file name")
        with ui.row().classes("w-full"):
            ui.checkbox(
                "Strict minimal pair (equal length)",
                value=draft.strict,
                on_change=lambda e: self._set("strict", bool(e.value)),
            )
            ui.checkbox(
                "Words separated by spaces",
                value=draft.spaces,
                on_change=lambda e: self._set("spaces", bool(e.value)),
            )

    @ui.refreshable_method
    def rows(self) -> None:
        """One card a row: number, good rule, bad rule, and the buttons that change the rows."""
        self.remarks.clear()
        self.fields.clear()
        for index in range(len(self.bench.draft.good)):
            with ui.element("div").classes("w-full rule-row"):
                ui.label(str(index)).classes("rule-number").props(f'aria-label="row {index}"')
                for side in SIDES:
                    with ui.element("div").classes("rule-side"):
                        self._field(index, side)
                with ui.row().classes("gap-0 rule-buttons"):
                    self._button("add", f"add a row below row {index}", partial(self._add, index))
                    self._button(
                        "arrow_upward", f"move row {index} up", partial(self._move, index, -1)
                    )
                    self._button(
                        "arrow_downward", f"move row {index} down", partial(self._move, index, 1)
                    )
                    self._button("delete", f"delete row {index}", partial(self._delete, index))
        self.show_remarks()

    def _field(self, index: int, side: str) -> None:
        rules = self.bench.draft.good if side == "good" else self.bench.draft.bad
        box = ui.input(
            f"{side} {index}",
            value=rules[index],
            on_change=lambda event: self._write(index, side, event.value or ""),
        )
        # The field grows with a long rule; a line end in it counts as a blank.
        self.fields[index, side] = box.props(
            "type=textarea autogrow dense outlined debounce=150 spellcheck=false"
        ).classes("w-full")
        self.remarks[index, side] = ui.label().classes("text-xs").props("aria-live=polite")

    @staticmethod
    def _button(icon: str, label: str, action: Callable[[], object]) -> None:
        ui.button(icon=icon, on_click=action).props(
            f'flat round dense size=sm aria-label="{label}"'
        ).tooltip(label)

    def show_remarks(self) -> None:
        """Fill in what each rule means now; an error in one row can come from another."""
        for (index, side), label in self.remarks.items():
            remark = self.bench.remark(index, side)
            label.text = remark.text
            label.classes(
                add="text-negative" if remark.is_error else "text-grey-8",
                remove="text-grey-8" if remark.is_error else "text-negative",
            )

    def redraw(self) -> None:
        """After another paradigm was loaded."""
        self.fields_of_paradigm.refresh()
        self.rows.refresh()
        self.on_change()

    async def save(self) -> None:
        """Save; if that name is taken or was changed elsewhere, ask."""
        with told():
            try:
                file = self.bench.save_paradigm()
            except ChangedElsewhere as conflict:
                answer = await choose(
                    str(conflict), ["Overwrite it", "Load that version", "Go on editing"]
                )
                if answer == "Load that version":
                    self.bench.open_paradigm(
                        paradigm_file(self.bench.draft.uid, self.bench.draft.user)
                    )
                    self.redraw()
                if answer != "Overwrite it":
                    return
                file = self.bench.save_paradigm(overwrite=True)
            complaint = self.bench.complaint()
            notice(
                f"{file} saved"
                + (f", but it cannot generate yet: {complaint}" if complaint else ""),
                bad=bool(complaint),
            )
            self.on_files()

    async def delete(self) -> None:
        """Delete the loaded paradigm after a question; the file is kept in .deleted."""
        if (
            self.bench.file
            and await choose(f"Delete {self.bench.file}?", ["Delete", "Keep it"]) != "Delete"
        ):
            return
        with told():
            self.bench.delete_paradigm()
            notice("deleted; the file is kept in the project's folder .deleted")
            self.redraw()
            self.on_files()

    def undo(self) -> None:
        """Take the last change of rows back."""
        with told():
            self.bench.undo()
            self.redraw()

    def _set(self, name: str, value: object) -> None:
        setattr(self.bench.draft, name, value)
        self.on_change()

    def _write(self, index: int, side: str, value: str) -> None:
        (self.bench.draft.good if side == "good" else self.bench.draft.bad)[index] = value.replace(
            "\n", " "
        )
        self.show_remarks()
        self.on_change()

    async def _add(self, index: int) -> None:
        self.bench.add_row(index)
        await self.rows.refresh()
        self.fields[index + 1, "good"].run_method("focus")
        self.on_change()

    def _move(self, index: int, by: int) -> None:
        self.bench.move_row(index, by)
        self.rows.refresh()
        self.on_change()

    def _delete(self, index: int) -> None:
        with told():
            self.bench.delete_row(index)
            self.rows.refresh()
            self.on_change()
