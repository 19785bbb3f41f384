"""``stats.py graphs``: every graph the dumps allow, as vector PDF and PNG.

Graphs of ranks, one panel per language: R@1 to R@5 (Figure 3), rank boxes (Figure 4), percentiles,
ranks against log-probability.

Graphs by relation: dumbbells (template to each verbalisation), a heat map of languages × relations,
gains against quality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from cyclopts import Parameter
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fluent_mlama.console import UserError, note
from fluent_mlama.options import Names
from fluent_mlama.reporting.loading import DumpFolder, open_dumps
from fluent_mlama.reporting.measures import (
    by_relation,
    mean_prompt_logprob,
    mean_rank,
    percentile,
    pooled_ranks,
    recall_at,
)
from fluent_mlama.reporting.options import QualityGains, QualityScale, StatsOptions
from fluent_mlama.reporting.plotting import (
    COLOURS,
    DIVERGING,
    MARKERS,
    MUTED,
    SEQUENTIAL,
    legend_above,
    look,
    panels,
    save,
    shown,
    style_of,
)
from fluent_mlama.reporting.qe_table import (
    SCALE_UNKNOWN,
    gains,
    read_quality_gains,
    retrieval_gains,
)
from fluent_mlama.reporting.selection import R16, SLAVIC, Selection, both, remarks, select_for

CUTOFFS = (1, 2, 3, 4, 5)
PERCENTILES = tuple(range(20, 100, 10))


def all_verbalisations(selections: Sequence[Selection]) -> list[str]:
    """Every verbalisation of the selections, each once."""
    return list(dict.fromkeys(v for selection in selections for v in selection.verbalisations))


def panel_for_each_language(
    selections: Sequence[Selection], **options: object
) -> tuple[Figure, Iterator[tuple[Axes, Selection, str]]]:
    """A figure and its panels as (axes, selection, language)."""
    places = [(selection, lang) for selection in selections for lang in selection.langs]
    figure, axes = panels([lang for _, lang in places], **options)  # type: ignore[arg-type]
    return figure, iter(
        [(axis, selection, lang) for axis, (selection, lang) in zip(axes, places, strict=True)]
    )


def recall_lines(selections: Sequence[Selection]) -> Figure:
    """R@1 to R@5, mean over relations."""
    names = all_verbalisations(selections)
    figure, places = panel_for_each_language(selections)
    values = {id(s): {k: by_relation(s, recall_at(k)).mean() for k in CUTOFFS} for s in selections}
    for axis, selection, lang in places:
        for v in selection.verbalisations:
            line = [values[id(selection)][k][lang, v] for k in CUTOFFS]
            axis.plot(
                CUTOFFS, line, label=shown(v), markersize=4, linewidth=1.4, **style_of(v, names)
            )
        axis.set_xticks(CUTOFFS, [f"R@{k}" for k in CUTOFFS])
        axis.set_ylim(0, 1.02)
    _label_rows(figure, "share of facts")
    _legend_of(figure, names)
    return figure


def rank_boxes(selections: Sequence[Selection]) -> Figure:
    """Boxes of the best ranks of all facts pooled, logarithmic; diamond: mean; whiskers: 1.5
    interquartile ranges; no outliers."""
    names = all_verbalisations(selections)
    figure, places = panel_for_each_language(selections, height=2.4, sharex=False)
    for axis, selection, lang in places:
        tables = selection.of(lang)
        ranks = [pooled_ranks(tables, v) for v in selection.verbalisations]
        boxes = axis.boxplot(
            ranks,
            tick_labels=[shown(v).replace(" ", "\n") for v in selection.verbalisations],
            showmeans=True,
            showfliers=False,
            patch_artist=True,
            widths=0.6,
            medianprops={"color": "black", "linewidth": 1.6},
            meanprops={
                "marker": "D",
                "markerfacecolor": "white",
                "markeredgecolor": "black",
                "markersize": 5,
            },
        )
        for box, v in zip(boxes["boxes"], selection.verbalisations, strict=True):
            box.set_facecolor(style_of(v, names)["color"])
            box.set_alpha(0.75)
        axis.set_title(f"{lang} (N = {len(ranks[0])})")
        _logarithmic(axis)
        axis.grid(axis="x", visible=False)
    _label_rows(figure, "best rank")
    return figure


def percentile_lines(selections: Sequence[Selection]) -> Figure:
    """Percentiles of the ranks of all correct forms, mean over relations, on a logarithmic axis."""
    names = all_verbalisations(selections)
    figure, places = panel_for_each_language(selections)
    values = {
        id(s): {p: by_relation(s, percentile(p)).mean() for p in PERCENTILES} for s in selections
    }
    for axis, selection, lang in places:
        for v in selection.verbalisations:
            line = [values[id(selection)][p][lang, v] for p in PERCENTILES]
            axis.plot(
                PERCENTILES, line, label=shown(v), markersize=4, linewidth=1.4, **style_of(v, names)
            )
        _logarithmic(axis)
        axis.set_xticks(PERCENTILES)
    figure.supxlabel("percentile of facts", fontsize=9)
    _label_rows(figure, "rank")
    _legend_of(figure, names)
    return figure


def logprob_against_rank(selections: Sequence[Selection]) -> Figure:
    """Mean rank against the prompt's mean log-probability: a small mark per relation,
    a large one for their mean."""
    names = all_verbalisations(selections)
    figure, places = panel_for_each_language(selections)
    values = {
        id(s): (by_relation(s, mean_prompt_logprob), by_relation(s, mean_rank)) for s in selections
    }
    for axis, selection, lang in places:
        logprobs, ranks = values[id(selection)]
        for v in selection.verbalisations:
            style = style_of(v, names)
            x, y = logprobs[lang, v], ranks[lang, v]
            axis.scatter(
                x, y, s=14, color=style["color"], marker=style["marker"], alpha=0.45, linewidths=0
            )
            axis.scatter(
                x.mean(),
                y.mean(),
                s=90,
                color=style["color"],
                marker=style["marker"],
                edgecolors="black",
                zorder=3,
                label=shown(v),
            )
    figure.axes[0].invert_yaxis()  # shared by all panels
    figure.supxlabel("mean log-probability of the prompt (natural log)", fontsize=9)
    _label_rows(figure, "mean rank (1 is best, at the top)")
    _legend_of(figure, names)
    return figure


def _logarithmic(axis: Axes) -> None:
    axis.set_yscale("log")
    axis.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    axis.set_ylim(0.9, 60)
    axis.minorticks_off()


def _label_rows(figure: Figure, text: str) -> None:
    figure.supylabel(text, fontsize=9)


def _legend_of(figure: Figure, names: Sequence[str]) -> None:
    """The legend of the panel that shows the most verbalisations."""
    fullest = max(figure.axes, key=lambda axis: len(axis.get_legend_handles_labels()[1]))
    legend_above(figure, fullest, columns=len(names))


ANNOTATED_UP_TO = 180
"""A heat map with more cells than this shows colours only."""


def dumbbells(selections: Sequence[Selection]) -> Figure:
    """R@1 of each relation: a line from the template to each other verbalisation; relations in the
    order of the template's R@1."""
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
    """Languages × relations: R@1 of the first verbalisation, then what each other one adds to it;
    grey where there is no dump."""
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
    """Gain in R@1 against gain in translation quality, a mark per (language, relation),
    a least-squares line per verbalisation.

    groups: (title, frame with lang, verbalisation, relation, qe_delta, r1_delta), a panel each
    (Figure 2). scale: model and scale of the quality scores.
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


Draw = Callable[[Sequence[Selection]], Figure]

GRAPHS: dict[str, tuple[Draw, str]] = {
    "general": (recall_lines, "R@1 to R@5"),
    "rank_boxplot": (rank_boxes, "Best ranks of all facts"),
    "percentile": (percentile_lines, "Percentiles of the ranks of all correct forms"),
    "logprob_rank": (
        logprob_against_rank,
        "Mean rank against the mean log-probability of the prompt",
    ),
    "dumbbell": (dumbbells, "R@1 of each relation, template to verbalisation"),
    "heatmap": (heat_map, "R@1 of each language and relation"),
}
QE = "qe"
Only = Annotated[Names, Parameter(help=f"of {','.join((*GRAPHS, QE))} (default: all)")]
SIXTEEN = ("general", "percentile")
"""The graphs that the paper draws over 16 relations, one of which (P264) has no distractors in
three languages."""


def draw_graphs(
    *,
    options: StatsOptions = StatsOptions(),
    only: Only = (),
    qe: QualityGains = None,
    qe_scale: QualityScale = "",
) -> None:
    """R@k, rank boxes, QE scatter, percentiles, dumbbells, heat maps (Figures 2 to 4 and more).

    stats.py graphs --stats stats/starter/paper --only general,heatmap
    """
    write_graphs(open_dumps(options.dumps), options, only, qe, qe_scale)


def write_graphs(
    folder: DumpFolder,
    options: StatsOptions,
    only: Sequence[str] = (),
    qe: Path | None = None,
    qe_scale: str = "",
) -> list[Path]:
    """Draw and write the graphs of these names, or all; returns the paths."""
    wanted = only or (*GRAPHS, QE)
    unknown = [name for name in wanted if name not in GRAPHS and name != QE]
    if unknown:
        raise UserError(f"unknown graph '{unknown[0]}': choose from {', '.join((*GRAPHS, QE))}")
    written: list[Path] = []
    with look():
        for name in wanted:
            if name in GRAPHS:
                draw, title = GRAPHS[name]
                selections = _selections(name, folder, options)
                written += save(
                    draw(selections), options.graphs, name, _remark(title, selections, folder)
                )
            elif qe is not None:
                written += _write_quality(folder, options, qe, qe_scale or SCALE_UNKNOWN)
            else:
                note("no scatter of quality gains: give them with --qe")
    return written


def _selections(name: str, folder: DumpFolder, options: StatsOptions) -> list[Selection]:
    """The paper draws its four Slavic languages; in clean style every language has its panel."""
    preferred = R16 if name in SIXTEEN and options.style == "paper" else None
    if options.style == "paper" and not options.langs:
        return [select_for("general", folder, options, preferred)]
    return both(folder, options, preferred)


def _write_quality(folder: DumpFolder, options: StatsOptions, qe: Path, scale: str) -> list[Path]:
    quality = read_quality_gains(qe)
    groups, shown = [], []
    for selection in both(folder, options):
        frame = gains(retrieval_gains(selection), quality)
        if len(frame):
            title = (
                "Slavic languages"
                if set(selection.langs) <= set(SLAVIC)
                else ", ".join(selection.langs)
            )
            groups.append((title, frame))
            shown.append(selection)
    if not groups:
        raise UserError(
            f"{qe} has no gain of any language and verbalisation of these dumps; choose others "
            "with --langs"
        )
    remark = _remark(f"Gain in R@1 against gain in quality ({scale})", shown, folder)
    return save(quality_scatter(groups, scale), options.graphs, QE, remark)


def _remark(title: str, selections: Sequence[Selection], folder: DumpFolder) -> str:
    return " ".join(line for selection in selections for line in remarks(title, selection, folder))
