"""``stats.py graphs``: every graph the dumps allow, as vector PDF and PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from matplotlib.figure import Figure

from fluent_mlama.console import UserError, note
from fluent_mlama.options import Names
from fluent_mlama.reporting.experiments import both, select_for
from fluent_mlama.reporting.figures_ranks import (
    logprob_against_rank,
    percentile_lines,
    rank_boxes,
    recall_lines,
)
from fluent_mlama.reporting.figures_relations import dumbbells, heat_map, quality_scatter
from fluent_mlama.reporting.loading import DumpFolder, open_dumps
from fluent_mlama.reporting.options import QualityGains, QualityScale, StatsOptions
from fluent_mlama.reporting.plotting import look, save
from fluent_mlama.reporting.qe_table import SCALE_UNKNOWN
from fluent_mlama.reporting.quality import gains, read_quality_gains, retrieval_gains
from fluent_mlama.reporting.remarks import remarks
from fluent_mlama.reporting.selection import R16, SLAVIC, Selection

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
"""The graphs that the paper draws over 16 relations, one of which (P264) has no distractors in three languages."""


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
            f"{qe} has no gain of any language and verbalisation of these dumps; choose others with --langs"
        )
    remark = _remark(f"Gain in R@1 against gain in quality ({scale})", shown, folder)
    return save(quality_scatter(groups, scale), options.graphs, QE, remark)


def _remark(title: str, selections: Sequence[Selection], folder: DumpFolder) -> str:
    return " ".join(line for selection in selections for line in remarks(title, selection, folder))
