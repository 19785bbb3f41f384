"""``stats.py graphs``: every graph the dumps allow, as vector PDF and PNG."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from fluent_mlama.console import UserError, note
from fluent_mlama.ranking.values import name_list
from fluent_mlama.reporting.experiments import both, select_for
from fluent_mlama.reporting.figures_ranks import (
    logprob_against_rank,
    percentile_lines,
    rank_boxes,
    recall_lines,
)
from fluent_mlama.reporting.figures_relations import dumbbells, heat_map, quality_scatter
from fluent_mlama.reporting.loading import DumpFolder, open_dumps
from fluent_mlama.reporting.options import add_short_rule
from fluent_mlama.reporting.plotting import look, save
from fluent_mlama.reporting.qe_table import add_quality, scale_of
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
SIXTEEN = ("general", "percentile")
"""The graphs that the paper draws over 16 relations, one of which (P264) has no distractors in three languages."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of graphs."""
    add_short_rule(parser)
    add_quality(parser)
    parser.add_argument(
        "--only",
        type=name_list,
        metavar="NAMES",
        help=f"graphs, of {','.join((*GRAPHS, QE))} (default: all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Draw them."""
    write_graphs(open_dumps(arguments.stats), arguments)
    return 0


def write_graphs(folder: DumpFolder, arguments: argparse.Namespace) -> list[Path]:
    """Draw and write the graphs that were asked for; returns the paths."""
    wanted = getattr(arguments, "only", None) or (*GRAPHS, QE)
    unknown = [name for name in wanted if name not in GRAPHS and name != QE]
    if unknown:
        raise UserError(f"unknown graph '{unknown[0]}': choose from {', '.join((*GRAPHS, QE))}")
    written: list[Path] = []
    with look():
        for name in wanted:
            if name in GRAPHS:
                draw, title = GRAPHS[name]
                selections = _selections(name, folder, arguments)
                written += save(
                    draw(selections), arguments.graphs, name, _remark(title, selections, folder)
                )
            elif arguments.qe is not None:
                written += _write_quality(folder, arguments)
            else:
                note("no scatter of quality gains: give them with --qe")
    return written


def _selections(name: str, folder: DumpFolder, arguments: argparse.Namespace) -> list[Selection]:
    """The paper draws its four Slavic languages; in clean style every language has its panel."""
    preferred = R16 if name in SIXTEEN and arguments.style == "paper" else None
    if arguments.style == "paper" and not arguments.langs:
        return [select_for("general", folder, arguments, preferred)]
    return both(folder, arguments, preferred)


def _write_quality(folder: DumpFolder, arguments: argparse.Namespace) -> list[Path]:
    quality = read_quality_gains(arguments.qe)
    groups, shown = [], []
    for selection in both(folder, arguments):
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
            f"{arguments.qe} has no gain of any language and verbalisation of these dumps; choose others with --langs"
        )
    scale = scale_of(arguments)
    remark = _remark(f"Gain in R@1 against gain in quality ({scale})", shown, folder)
    return save(quality_scatter(groups, scale), arguments.graphs, QE, remark)


def _remark(title: str, selections: Sequence[Selection], folder: DumpFolder) -> str:
    return " ".join(line for selection in selections for line in remarks(title, selection, folder))
