"""Plots of accuracy, each as PDF and PNG, in the look of every graph of the project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluent_mlama.files import as_file_name
from fluent_mlama.linking import Linking
from fluent_mlama.reporting.plotting import COLOURS, MARKERS, MUTED, logarithmic_x, look, save_stem
from fluent_mlama.zhoblimp.measures import LENGTHS, Result, by_length, by_paradigm, by_phenomenon
from fluent_mlama.zhoblimp.train import tokens_of

CHANCE = 0.5
_HATCHES = ("", "//", "..")
Curve = TypeVar("Curve")


@look()
def write_plots(
    folder: Path,
    results: Sequence[Result],
    functions: Sequence[Linking],
    sweep: pd.DataFrame,
    human: Mapping[str, float],
) -> None:
    """All plots that the results allow; ``functions``: one of each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    headline = next((one for one in functions if one.kind == "slln"), functions[0])
    save_stem(folder / "phenomena", phenomena(results, headline))
    save_stem(folder / "alpha", alpha_curve(sweep))
    for result in results:
        name = f"length-{as_file_name(result.label, '-')}" if len(results) > 1 else "length"
        save_stem(folder / name, length_bias(result, functions))
    if sum(_trained_on(result) is not None for result in results) > 1:
        save_stem(folder / "training", training_curve(results, functions))
    if human:
        save_stem(folder / "human", against_people(results, headline, human))


def phenomena(results: Sequence[Result], function: Linking) -> Figure:
    """Accuracy by phenomenon, one row each, one marker per model."""
    tables = {result.label: by_phenomenon(result, [function])[function.name] for result in results}
    names = sorted({name for table in tables.values() for name in table.index}, reverse=True)
    figure, axes = _canvas((7, 1.2 + 0.3 * len(names)))
    for (label, table), style in _styled(tables.items()):
        places = [names.index(name) for name in table.index]
        axes.plot(table, places, linestyle="none", label=label, alpha=0.9, **style)
    axes.set_yticks(range(len(names)), [name or "(none)" for name in names])
    axes.set_xlim(-0.02, 1.02)
    axes.axvline(CHANCE, color=MUTED, linewidth=1, linestyle="--")
    axes.set_xlabel(f"accuracy ({function.name}); dashed: chance")
    return _with_legend(figure, axes)


def alpha_curve(sweep: pd.DataFrame) -> Figure:
    """Accuracy of L / n^alpha over alpha, one curve per model, or per length class of one model."""
    figure, axes = _canvas((6.2, 4))
    models = list(dict.fromkeys(sweep["model"]))
    single = len(models) == 1
    curves = [(model, "all") for model in models]
    if single:
        curves += [(models[0], length) for length in LENGTHS]
    for (model, column), style in _styled(curves):
        rows = sweep[sweep["model"] == model]
        if rows[column].notna().any():
            label = column if single else model
            axes.plot(rows["alpha"], rows[column], markersize=4, label=label, **style)
    axes.set_xlabel(r"$\alpha$ in $L\,/\,n^{\alpha}$ (0: LP, 1: MeanLP)", parse_math=True)
    axes.set_ylabel("accuracy" + (f", {models[0]}" if single else ""))
    axes.set_ylim(-0.02, 1.02)
    return _with_legend(figure, axes)


def length_bias(result: Result, functions: Sequence[Linking]) -> Figure:
    """Accuracy by length class under each function: a level profile means no length bias."""
    table = by_length(result, functions)
    figure, axes = _canvas((max(6.2, 0.8 * len(functions)), 4))
    width = 0.8 / len(LENGTHS)
    names = [one.name for one in functions]
    for number, length in enumerate(LENGTHS):
        places = [index + (number - 1) * width for index in range(len(functions))]
        heights = table.loc[length, names].to_numpy(dtype=float)
        style: dict[str, Any] = {"color": COLOURS[number], "hatch": _HATCHES[number]}
        label = f"{length} ({table['pairs'][length]})"
        axes.bar(places, heights, width, label=label, edgecolor="white", **style)
    axes.set_xticks(range(len(functions)), names, rotation=30, ha="right")
    axes.axhline(CHANCE, color=MUTED, linewidth=1, linestyle="--")
    axes.set_ylim(0, 1.02)
    axes.set_ylabel(f"accuracy, {result.label}")
    return _with_legend(figure, axes)


def training_curve(results: Sequence[Result], functions: Sequence[Linking]) -> Figure:
    """Accuracy over training tokens, one line per linking function and model."""
    runs: dict[str, list[tuple[int, Result]]] = {}
    for result in results:
        tokens = _trained_on(result)
        if tokens is not None:
            runs.setdefault(result.label.rpartition("@")[0], []).append((tokens, result))
    figure, axes = _canvas((6.2, 4))
    shown = [one for one in functions if one.kind in {"lp", "mean", "slln"}]
    for (model, one), style in _styled([(model, one) for model in runs for one in shown]):
        points = [(tokens, float(result.correct(one).mean())) for tokens, result in runs[model]]
        label = one.name if len(runs) == 1 else f"{model}, {one.name}"
        axes.plot(*zip(*sorted(points), strict=True), markersize=4, label=label, **style)
    logarithmic_x(axes)
    axes.axhline(CHANCE, color=MUTED, linewidth=1, linestyle="--")
    axes.set_xlabel("training tokens")
    axes.set_ylabel("accuracy" + (f", {next(iter(runs))}" if len(runs) == 1 else ""))
    axes.set_ylim(-0.02, 1.02)
    return _with_legend(figure, axes)


def against_people(
    results: Sequence[Result], function: Linking, human: Mapping[str, float]
) -> Figure:
    """One point per paradigm: people's accuracy on the x axis, the model's on the y axis."""
    figure, axes = _canvas((5, 5))
    for result, style in _styled(results):
        table = by_paradigm(result, [function])[function.name]
        joined = [uid for uid in table.index if uid in human]
        people = [human[uid] for uid in joined]
        look_of = style | {"markersize": 4, "alpha": 0.7, "linestyle": "none"}
        axes.plot(people, table[joined], label=result.label, **look_of)
    axes.set_xlabel("human accuracy")
    axes.set_ylabel(f"model accuracy ({function.name})")
    axes.set_ylim(-0.02, 1.02)
    return _with_legend(figure, axes)


def _trained_on(result: Result) -> int | None:
    """Training tokens of a checkpoint of ``train``; None for any other model."""
    return tokens_of(result.label.rpartition("@")[2])


def _styled(curves: Iterable[Curve]) -> Iterator[tuple[Curve, dict[str, Any]]]:
    """Each curve with the color and marker of its place."""
    for place, curve in enumerate(curves):
        color, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        yield curve, {"color": color, "marker": marker}


def _canvas(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size)
    return figure, figure.add_subplot()


def _with_legend(figure: Figure, axes: Axes) -> Figure:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return figure
