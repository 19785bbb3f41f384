"""Plots of accuracy, each as PDF and PNG, in the look of every graph of the project (``fluent_mlama.reporting.plotting``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluent_mlama.linking import Linking
from fluent_mlama.records.names import as_file_name
from fluent_mlama.reporting.plotting import COLOURS, MARKERS, MUTED, logarithmic_x, look, save_stem
from fluent_mlama.zhoblimp.measures import LENGTHS, Result, by_length, by_paradigm, by_phenomenon
from fluent_mlama.zhoblimp.train import tokens_of

CHANCE = 0.5


@look()
def write_plots(
    folder: Path,
    results: Sequence[Result],
    functions: Sequence[Linking],
    sweep: pd.DataFrame,
    human: Mapping[str, float],
) -> None:
    """All plots that the results allow; ``functions``: one of each kind, the first being the headline's."""
    folder.mkdir(parents=True, exist_ok=True)
    headline = next((one for one in functions if one.kind == "slln"), functions[0])
    save_stem(folder / "phenomena", phenomena(results, headline))
    save_stem(folder / "alpha", alpha_curve(sweep))
    for result in results:
        name = as_file_name(result.label, "-")
        save_stem(
            folder / (f"length-{name}" if len(results) > 1 else "length"),
            length_bias(result, functions),
        )
    if sum(tokens_of(result.label.rpartition("@")[2]) is not None for result in results) > 1:
        save_stem(folder / "training", training_curve(results, functions))
    if human:
        save_stem(folder / "human", against_people(results, headline, human))


def phenomena(results: Sequence[Result], function: Linking) -> Figure:
    """Accuracy by phenomenon, a row each, a marker a model."""
    tables = {result.label: by_phenomenon(result, [function])[function.name] for result in results}
    names = sorted({name for table in tables.values() for name in table.index}, reverse=True)
    figure, axes = _canvas((7, 1.2 + 0.3 * len(names)))
    for (label, table), colour, marker in zip(
        tables.items(), cycle(COLOURS), cycle(MARKERS), strict=False
    ):
        rows = [name for name in names if name in table.index]
        axes.plot(
            table[rows],
            [names.index(name) for name in rows],
            marker,
            color=colour,
            label=label,
            alpha=0.9,
        )
    axes.set_yticks(range(len(names)), [name or "(none)" for name in names])
    axes.set_xlim(-0.02, 1.02)
    axes.axvline(CHANCE, color=MUTED, linewidth=1, linestyle="--")
    axes.set_xlabel(f"accuracy ({function.name}); dashed: chance")
    return _finish(figure, axes)


def alpha_curve(sweep: pd.DataFrame) -> Figure:
    """Accuracy of L / n^alpha over alpha: one model also by length class, several models over all pairs."""
    figure, axes = _canvas((6.2, 4))
    models = list(dict.fromkeys(sweep["model"]))
    columns = ("all", *LENGTHS) if len(models) == 1 else ("all",)
    curves = [(model, column) for model in models for column in columns]
    for (model, column), colour, marker in zip(
        curves, cycle(COLOURS), cycle(MARKERS), strict=False
    ):
        rows = sweep[sweep["model"] == model]
        if rows[column].notna().any():
            axes.plot(
                rows["alpha"],
                rows[column],
                marker=marker,
                markersize=4,
                color=colour,
                label=column if len(models) == 1 else model,
            )
    axes.set_xlabel(r"$\alpha$ in $L\,/\,n^{\alpha}$ (0: LP, 1: MeanLP)", parse_math=True)
    axes.set_ylabel("accuracy" + (f", {models[0]}" if len(models) == 1 else ""))
    axes.set_ylim(-0.02, 1.02)
    return _finish(figure, axes)


def length_bias(result: Result, functions: Sequence[Linking]) -> Figure:
    """Accuracy by length class under each function: a level profile means no length bias."""
    table = by_length(result, functions)
    figure, axes = _canvas((max(6.2, 0.8 * len(functions)), 4))
    width = 0.8 / len(LENGTHS)
    for number, (length, colour, hatch) in enumerate(
        zip(LENGTHS, COLOURS, ("", "//", ".."), strict=False)
    ):
        places = [index + (number - 1) * width for index in range(len(functions))]
        heights = table.loc[length, [one.name for one in functions]].to_numpy(dtype=float)
        label = f"{length} ({int((result.frame['length'] == length).sum())})"
        axes.bar(places, heights, width, color=colour, hatch=hatch, edgecolor="white", label=label)
    axes.set_xticks(range(len(functions)), [one.name for one in functions], rotation=30, ha="right")
    axes.axhline(CHANCE, color=MUTED, linewidth=1, linestyle="--")
    axes.set_ylim(0, 1.02)
    axes.set_ylabel(f"accuracy, {result.label}")
    return _finish(figure, axes)


def training_curve(results: Sequence[Result], functions: Sequence[Linking]) -> Figure:
    """Accuracy over the tokens that a model was trained on, a line a linking function (and model, where there are several)."""
    runs: dict[str, list[tuple[int, Result]]] = {}
    for result in results:
        model, _, revision = result.label.rpartition("@")
        tokens = tokens_of(revision)
        if tokens is not None:
            runs.setdefault(model, []).append((tokens, result))
    figure, axes = _canvas((6.2, 4))
    lines = [
        (model, one) for model in runs for one in functions if one.kind in {"lp", "mean", "slln"}
    ]
    for (model, one), colour, marker in zip(lines, cycle(COLOURS), cycle(MARKERS), strict=False):
        points = sorted(
            (tokens, float(result.correct(one).mean())) for tokens, result in runs[model]
        )
        label = one.name if len(runs) == 1 else f"{model}, {one.name}"
        axes.plot(
            *zip(*points, strict=True), marker=marker, markersize=4, color=colour, label=label
        )
    logarithmic_x(axes)
    axes.axhline(CHANCE, color=MUTED, linewidth=1, linestyle="--")
    axes.set_xlabel("training tokens")
    axes.set_ylabel("accuracy" + (f", {next(iter(runs))}" if len(runs) == 1 else ""))
    axes.set_ylim(-0.02, 1.02)
    return _finish(figure, axes)


def against_people(
    results: Sequence[Result], function: Linking, human: Mapping[str, float]
) -> Figure:
    """A point a paradigm: people's accuracy across, the model's up."""
    figure, axes = _canvas((5, 5))
    for result, colour, marker in zip(results, cycle(COLOURS), cycle(MARKERS), strict=False):
        table = by_paradigm(result, [function])[function.name]
        joined = [uid for uid in table.index if uid in human]
        axes.plot(
            [human[uid] for uid in joined],
            table[joined],
            marker,
            markersize=4,
            alpha=0.7,
            color=colour,
            label=result.label,
        )
    axes.set_xlabel("human accuracy")
    axes.set_ylabel(f"model accuracy ({function.name})")
    axes.set_ylim(-0.02, 1.02)
    return _finish(figure, axes)


def _canvas(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size)
    return figure, figure.add_subplot()


def _finish(figure: Figure, axes: Axes) -> Figure:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return figure
