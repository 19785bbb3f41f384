"""Dialogs, and one place where what goes wrong is told to the person."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from nicegui import ui

from fluent_mlama.console import UserError


@contextmanager
def told() -> Iterator[None]:
    """Show a ``UserError`` as a notice; every other exception is a bug and is left to the log."""
    try:
        yield
    except UserError as error:
        notice(str(error), bad=True)


def notice(text: str, *, bad: bool = False) -> None:
    """A short notice at the bottom of the page, which screen readers read out."""
    ui.notify(
        text,
        type="negative" if bad else "positive",
        multi_line=True,
        timeout=8000 if bad else 4000,
        close_button="Close",
    )


async def choose(question: str, answers: Sequence[str]) -> str:
    """Ask; returns the answer, or "" if the dialog was closed.

    The last answer is the harmless one and has the focus.
    """
    with ui.dialog() as dialog, ui.card().classes("max-w-md"):
        ui.label(question)
        with ui.row().classes("w-full justify-end"):
            for answer in answers:
                button = ui.button(
                    answer, on_click=lambda answer=answer: dialog.submit(answer)
                ).props("no-caps outline")
                if answer == answers[-1]:
                    button.props("autofocus")
    answer = await dialog
    dialog.delete()
    return answer or ""


async def ask(
    title: str, fields: Sequence[tuple[str, str | list[str], str]], check: Callable[..., None]
) -> list[str] | None:
    """Ask for values: (label, "" or choices, first value).

    ``check`` raises a ``UserError`` for values that will not do.
    """
    with ui.dialog() as dialog, ui.card().classes("w-80"):
        ui.label(title).classes("text-lg")
        boxes = [
            ui.select(kind, label=label, value=value).classes("w-full")
            if isinstance(kind, list)
            else ui.input(label, value=value).classes("w-full").props("autofocus")
            for label, kind, value in fields
        ]
        complaint = ui.label().classes("text-negative").props("role=alert")

        def submit() -> None:
            values = [str(box.value or "").strip() for box in boxes]
            try:
                check(*values)
            except UserError as error:
                complaint.text = str(error)
            else:
                dialog.submit(values)

        for box in boxes:
            box.on("keydown.enter", submit)
        with ui.row().classes("w-full justify-end"):
            ui.button("Cancel", on_click=dialog.close).props("no-caps flat")
            ui.button("OK", on_click=submit).props("no-caps")
    values: list[str] | None = await dialog
    dialog.delete()
    return values
