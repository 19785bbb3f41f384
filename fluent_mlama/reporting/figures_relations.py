"""Graphs by relation: dumbbells (template to each verbalisation), a heat map of languages × relations, gains against quality."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fluent_mlama.reporting.figures_ranks import all_verbalisations, panel_for_each_language
from fluent_mlama.reporting.measures import by_relation, recall_at
from fluent_mlama.reporting.plotting import (
    COLOURS,
    DIVERGING,
    MARKERS,
    MUTED,
    SEQUENTIAL,
    legend_above,
    panels,
    shown,
    style_of,
)
from fluent_mlama.reporting.selection import Selection

ANNOTATED_UP_TO = 180
"""A heat map with more cells than this shows colours only."""


def dumbbells(selections: Sequence[Selection]) -> Figure:
    """R@1 of each relation: a line from the template to each other verbalisation; relations in the order of the template's R@1."""
    names = all_verbalisations(selections)
    most = max(len(selection.relations) for selection in selections)
    figure, places = panel_for_each_language(
        selections, height=max(1.5, 0.5 + 0.24 * most), sharey=False
    )
    values = {id(s): by_relation(s, recall_at(1)) for s in selections}
    for axis, selection, lang in places:
        recall = values[id(selection)]
        first = selection.verbalisations[0]
        order = recall[lang, first].sort_values(kind="stable").index
        offsets = (
            np.linspace(0.18, -0.18, len(selection.verbalisations) - 1)
            if len(selection.verbalisations) > 2
            else [0.0]
        )
        for offset, v in zip(offsets, selection.verbalisations[1:], strict=False):
            ends = recall.loc[order, (lang, first)], recall.loc[order, (lang, v)]
            axis.hlines(
                np.arange(len(order)) + offset,
                *ends,
                color=style_of(v, names)["color"],
                linewidth=1.6,
                zorder=2,
            )
        for number, v in enumerate(selection.verbalisations):
            offset = 0.0 if number == 0 else offsets[number - 1]
            style = style_of(v, names)
            axis.scatter(
                recall.loc[order, (lang, v)],
                np.arange(len(order)) + offset,
                s=30,
                color=style["color"],
                marker=style["marker"],
                edgecolors="white",
                linewidths=0.5,
                zorder=3,
                label=shown(v),
            )
        axis.set_yticks(range(len(order)), list(order), fontsize=7)
        axis.set_xlim(-0.03, 1.03)
        axis.tick_params(labelbottom=True)
    figure.supxlabel("R@1", fontsize=9)
    legend_above(
        figure,
        max(figure.axes, key=lambda axis: len(axis.get_legend_handles_labels()[1])),
        columns=len(names),
    )
    return figure


def heat_map(selections: Sequence[Selection]) -> Figure:
    """Languages × relations: R@1 of the first verbalisation, then what each other one adds to it; grey where there is no dump."""
    names = all_verbalisations(selections)
    recall = pd.concat([by_relation(s, recall_at(1)) for s in selections], axis=1)
    relations = list(dict.fromkeys(r for s in selections for r in s.relations))
    langs = [lang for s in selections for lang in s.langs]
    base = _matrix(recall, names[0], langs, relations)
    rows = {v: [lang for lang in langs if (lang, v) in recall.columns] for v in names}
    gains = {
        v: _matrix(recall, v, rows[v], relations) - _matrix(recall, names[0], rows[v], relations)
        for v in names[1:]
    }
    widest = max((float(np.nanmax(np.abs(gain))) for gain in gains.values()), default=0.1) or 0.1
    parts = [(f"R@1, {shown(names[0])}", langs, base, SEQUENTIAL, (0.0, 1.0))]
    parts += [
        (f"{shown(v)} minus {shown(names[0])}", rows[v], gain, DIVERGING, (-widest, widest))
        for v, gain in gains.items()
    ]
    heights = [0.32 * len(part[1]) + 0.75 for part in parts]
    width = max(3.2, 0.47 * len(relations) + 1.6)
    if len(langs) > len(
        relations
    ):  # tall maps stand beside each other, broad ones below each other
        figure, grid = plt.subplots(
            1, len(parts), figsize=(width * len(parts), max(heights) + 0.4), squeeze=False
        )
    else:
        figure, grid = plt.subplots(
            len(parts), 1, figsize=(width, sum(heights) + 0.4), squeeze=False, height_ratios=heights
        )
    for axis, (title, langs_here, matrix, colours, (low, high)) in zip(
        grid.flat, parts, strict=True
    ):
        palette = plt.get_cmap(colours).with_extremes(bad="#D9D9D9")
        image = axis.imshow(
            np.ma.masked_invalid(matrix), cmap=palette, vmin=low, vmax=high, aspect="auto"
        )
        axis.set_title(title, loc="left")
        axis.set_xticks(range(len(relations)), relations, rotation=45, ha="right", fontsize=7)
        axis.set_yticks(range(len(langs_here)), langs_here)
        axis.grid(visible=False)
        figure.colorbar(image, ax=axis, pad=0.015, fraction=0.03)
        if matrix.size <= ANNOTATED_UP_TO:
            _write_cells(axis, matrix, palette, low, high)
    return figure


def _matrix(
    recall: pd.DataFrame, v: str, langs: Sequence[str], relations: Sequence[str]
) -> np.ndarray:
    return np.array(
        [recall[lang, v].reindex(list(relations)).to_numpy(dtype=float) for lang in langs]
    )


def _write_cells(
    axis: plt.Axes, matrix: np.ndarray, palette: plt.Colormap, low: float, high: float
) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        if np.isfinite(value):
            red, green, blue, _ = palette((value - low) / (high - low))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            text = f"{value:z.2f}".replace("0.", ".", 1).replace("-", "−")
            axis.text(
                column,
                row,
                text,
                ha="center",
                va="center",
                fontsize=6,
                color="white" if dark else "black",
            )


def quality_scatter(
    groups: Sequence[tuple[str, pd.DataFrame]], scale: str = "model and scale not stated"
) -> Figure:
    """Gain in R@1 against gain in translation quality, a mark for each (language, relation), a least-squares line a verbalisation.

    groups: (title, frame with lang, verbalisation, relation, qe_delta, r1_delta), a panel each (Figure 2). scale: model and
    scale of the quality scores.
    """
    figure, axes = panels([title for title, _ in groups], width=4.2, height=3.4)
    names = list(
        dict.fromkeys(["template", *(v for _, frame in groups for v in frame["verbalisation"])])
    )
    langs = list(dict.fromkeys(lang for _, frame in groups for lang in frame["lang"]))
    marker_of = {lang: MARKERS[place % len(MARKERS)] for place, lang in enumerate(langs)}
    for axis, (_, frame) in zip(axes, groups, strict=True):
        axis.axhline(0, color=MUTED, linewidth=0.7)
        axis.axvline(0, color=MUTED, linewidth=0.7)
        for v, of_v in frame.groupby("verbalisation", sort=False):
            colour = COLOURS[names.index(str(v)) % len(COLOURS)]
            for lang, points in of_v.groupby("lang", sort=False):
                axis.scatter(
                    points["qe_delta"],
                    points["r1_delta"],
                    s=24,
                    color=colour,
                    marker=marker_of[str(lang)],
                    alpha=0.8,
                    linewidths=0,
                )
            if of_v["qe_delta"].nunique() > 1:
                slope, start = np.polyfit(of_v["qe_delta"], of_v["r1_delta"], 1)
                ends = np.array([of_v["qe_delta"].min(), of_v["qe_delta"].max()])
                axis.plot(ends, start + slope * ends, color=colour, linestyle=":", linewidth=1.6)
        axis.tick_params(labelbottom=True)
    handles = [
        Line2D([], [], color=COLOURS[names.index(v) % len(COLOURS)], linewidth=3, label=shown(v))
        for v in names[1:]
    ]
    handles += [
        Line2D([], [], color=MUTED, marker=marker_of[lang], linestyle="", label=lang)
        for lang in langs
    ]
    figure.legend(
        handles=handles, loc="upper center", ncols=min(12, len(handles)), bbox_to_anchor=(0.5, 1.0)
    )
    figure.supxlabel(f"gain in translation quality ({scale})".replace("; ", ";\n"), fontsize=9)
    figure.supylabel("gain in R@1", fontsize=9)
    return figure
