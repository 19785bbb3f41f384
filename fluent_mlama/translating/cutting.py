"""Checked sentences cut at their objects: by the span that the back end knows, else by the locator's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluent_mlama.locating.locator import Locator
from fluent_mlama.locating.result import Location, Row
from fluent_mlama.records.benchmark import ERROR
from fluent_mlama.translating.checks import Checked


@dataclass(frozen=True, slots=True)
class Cut:
    """The cells of one row of one verbalisation. Where there is no object, prompt and object are ``ERROR`` and status says why."""

    prompt: str
    object_form: str
    tail: str
    status: str

    @property
    def found(self) -> bool:
        return self.object_form != ERROR


def cut_sentences(checked: Sequence[Checked], rows: Sequence[Row], locator: Locator) -> list[Cut]:
    """Cut every usable sentence. checked, rows: one a fact, in the same order; the locator learns from all rows it searches."""
    searched = [
        number for number, one in enumerate(checked) if one.usable and one.object_span is None
    ]
    outcomes = dict(
        zip(searched, locator.locate_all([rows[number] for number in searched]), strict=True)
    )
    cuts = []
    for number, one in enumerate(checked):
        outcome = outcomes.get(number)
        if one.usable and one.object_span is not None:
            outcome = Location(one.text, *one.object_span, method="exact", confidence=1.0)
        if isinstance(outcome, Location):
            cuts.append(
                Cut(
                    outcome.prompt,
                    outcome.object_form,
                    outcome.tail,
                    ";".join(("ok", *one.flags, *outcome.flags)),
                )
            )
        else:
            reason = one.reason if outcome is None else outcome.reason
            cuts.append(Cut(ERROR, ERROR, "", ";".join((reason, *one.flags))))
    return cuts
