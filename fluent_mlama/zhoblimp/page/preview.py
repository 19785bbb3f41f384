"""Generated pairs with their differences marked, rejected draws, downloads, and scores."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nicegui import run, ui

from fluent_mlama.console import UserError
from fluent_mlama.zhoblimp.data import PairRow, jsonl_of
from fluent_mlama.zhoblimp.generator import Generated
from fluent_mlama.zhoblimp.measures import Result, linking_functions
from fluent_mlama.zhoblimp.page.asking import notice, told
from fluent_mlama.zhoblimp.page.workbench import Draft, Workbench, differences, generate

Score = Callable[[Sequence[PairRow]], Result]
SHOWN_FUNCTIONS = ("lp", "mean", "slln")


@dataclass(eq=False)  # two tabs are never the same, whatever they hold
class Preview:
    """The pairs of the draft as it was when they were generated."""

    bench: Workbench
    score: Score
    generated: Generated | None = None
    made_from: Draft = field(default_factory=Draft)
    result: Result | None = None

    def controls(self) -> None:
        """How many, with which seed, and the buttons."""
        with ui.row().classes("w-full items-end gap-4"):
            count = (
                ui.number("Pairs", value=10, min=1, max=1000, step=1, format="%d")
                .props("dense outlined")
                .classes("w-24")
            )
            seed = (
                ui.number("Seed", value=0, step=1, format="%d")
                .props("dense outlined")
                .classes("w-24")
            )
            attempts = (
                ui.number("Draws per pair", value=100, min=1, max=1000, step=1, format="%d")
                .props("dense outlined")
                .classes("w-32")
            )

            async def make() -> None:
                with told():
                    numbers = [
                        _whole(box.value, name)
                        for box, name in (
                            (count, "Pairs"),
                            (seed, "Seed"),
                            (attempts, "Draws per pair"),
                        )
                    ]
                    await self._generate(*numbers)

            ui.button("Generate sentences", on_click=make).props("no-caps")
        self.shown()

    def show_age(self) -> None:
        """Say so if the rows were changed after the pairs were made."""
        if self.generated is not None:
            current = self.made_from == self.bench.draft
            self.age.text = (
                ""
                if current
                else "The paradigm was changed since these pairs were made: generate anew."
            )

    def clear(self) -> None:
        """Forget the pairs: another paradigm is open now."""
        self.generated = self.result = None
        self.shown.refresh()

    async def _generate(self, count: int, seed: int, attempts: int) -> None:
        draft = Draft(
            **{
                **vars(self.bench.draft),
                "good": list(self.bench.draft.good),
                "bad": list(self.bench.draft.bad),
            }
        )
        self.generated = await run.io_bound(
            generate, draft, self.bench.vocabulary, self.bench.phrases, count, seed, attempts
        )
        self.made_from, self.result = draft, None
        self.shown.refresh()

    @ui.refreshable_method
    def shown(self) -> None:
        """Summary, table and what can be done with it."""
        if self.generated is None:
            ui.label("Nothing generated yet.").classes("text-grey-8")
            return
        made = self.generated
        self.age = ui.label().classes("text-negative").props("aria-live=polite")
        self.show_age()
        ui.label(f"{len(made.pairs)} pairs in {made.attempts} draws").props("role=status")
        if made.rejected:
            reasons = "; ".join(
                f"{reason}: {count}" for reason, count in made.rejected.most_common()
            )
            ui.label(f"Rejected draws: {reasons}").classes("text-sm text-grey-8")
        if not made.pairs:
            return
        if self.result is not None:
            self._accuracy(self.result)
        with ui.element("div").classes("w-full overflow-x-auto"):
            ui.html(self._table(), sanitize=False)
        with ui.row():
            ui.button("Download JSONL", on_click=lambda: self._download("jsonl")).props(
                "no-caps outline"
            )
            ui.button("Download CSV", on_click=lambda: self._download("csv")).props(
                "no-caps outline"
            )
            self.scoring = ui.button("Score these pairs", on_click=self._score).props(
                "no-caps outline"
            )

    def _table(self) -> str:
        """The pairs as an HTML table, every text escaped."""
        assert self.generated is not None
        wins = None
        if self.result is not None:
            wins = self.result.correct(linking_functions(["slln"])[0])
        lines = [
            "<table class='pairs'><thead><tr><th scope='col'>#</th><th scope='col'>good</th><th "
            "scope='col'>bad</th>"
        ]
        lines.append(
            "<th scope='col'>model</th></tr></thead><tbody>"
            if wins is not None
            else "</tr></thead><tbody>"
        )
        for number, pair in enumerate(self.generated.pairs):
            cells = [
                _marked(side) for side in differences(pair.good, pair.bad, self.made_from.spaces)
            ]
            if wins is not None:
                cells.append("right" if wins[number] else "<b>wrong</b>")
            lines.append(
                f"<tr><td>{number}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
            )
        return "".join(lines) + "</tbody></table>"

    def _accuracy(self, result: Result) -> None:
        figures = "; ".join(
            f"{one.name} {result.correct(one).mean():z.3f}"
            for one in linking_functions(SHOWN_FUNCTIONS)
        )
        counts = result.frame["length"].value_counts().to_dict()
        lengths = ", ".join(f"{length} {count}" for length, count in sorted(counts.items()))
        ui.label(f"Accuracy of {result.label}: {figures}. Tokens: {lengths}.").props(
            "role=status"
        ).classes("font-medium")

    async def _score(self) -> None:
        made = self.generated
        if made is None:
            return
        uid = self.made_from.uid or "draft"
        rows = [
            PairRow(uid, self.made_from.phenomenon, pair.good, pair.bad, number, {})
            for number, pair in enumerate(made.pairs)
        ]
        self.scoring.props("loading")
        notice("scoring; the first time the model has to be loaded, which takes up to a minute")
        try:
            result = await run.io_bound(self.score, rows)
        except UserError as error:
            notice(str(error), bad=True)
            self.scoring.props(remove="loading")
            return
        if made is self.generated:
            self.result = result
            self.shown.refresh()

    def _download(self, kind: str) -> None:
        assert self.generated is not None
        pairs = [(pair.good, pair.bad) for pair in self.generated.pairs]
        name = self.made_from.uid or "draft"
        if kind == "jsonl":
            text = jsonl_of(name, self.made_from.phenomenon, pairs)
        else:
            text = _as_csv(pairs)
        ui.download.content(
            text.encode("utf-8-sig" if kind == "csv" else "utf-8"), f"{name}.{kind}"
        )


def _as_csv(pairs: Sequence[tuple[str, str]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("sentence_good", "sentence_bad"))
    writer.writerows(pairs)
    return stream.getvalue()


def _marked(pieces: Sequence[tuple[str, bool]]) -> str:
    return "".join(
        f"<mark>{html.escape(text)}</mark>" if differs else html.escape(text)
        for text, differs in pieces
    )


def _whole(value: float | None, name: str) -> int:
    if value is None or value != int(value):
        raise UserError(f"{name}: a whole number is needed")
    return int(value)
