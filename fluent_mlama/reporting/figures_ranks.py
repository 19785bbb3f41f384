"""Graphs of ranks, a panel a language: R@1 to R@5 (Figure 3), rank boxes (Figure 4), percentiles, ranks against log-probability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fluent_mlama.reporting.measures import (
    by_relation,
    mean_prompt_logprob,
    mean_rank,
    percentile,
    pooled_ranks,
    recall_at,
)
from fluent_mlama.reporting.plotting import legend_above, panels, shown, style_of
from fluent_mlama.reporting.selection import Selection

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
    """Boxes of the best ranks of all facts pooled, logarithmic; diamond: mean; whiskers: 1.5 interquartile ranges; no outliers."""
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
    """Mean rank against the prompt's mean log-probability: a small mark a relation, a large one for their mean."""
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
