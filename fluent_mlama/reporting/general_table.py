"""Tables 1, 3 and 7: R@1 and mean rank, macro over relations, for each language and verbalisation.

``general`` reads the narrow dumps, ``general-wide`` the wide ones, ``additional-langs`` the languages whose dumps have
fewer verbalisations than the richest.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.console import UserError
from fluent_mlama.reporting.experiments import KINDS, select_for
from fluent_mlama.reporting.inference import ESTIMAND
from fluent_mlama.reporting.latex import (
    Column,
    Raw,
    bold,
    booktabs,
    first_cell,
    number,
    write_table,
)
from fluent_mlama.reporting.loading import DumpFolder, open_dumps, open_wide
from fluent_mlama.reporting.measures import macro, mean_rank, recall_at, value_at
from fluent_mlama.reporting.options import add_short_rule
from fluent_mlama.reporting.paired import fact_ranks, significantly_best
from fluent_mlama.reporting.remarks import remarks
from fluent_mlama.reporting.selection import Selection

FLIPS = 2000
"""Random flips of the permutation tests behind the bold figures: p is known to about 0.005 at 0.05."""
ROWS_ARE_LANGUAGES_FROM = 7
"""With this many languages the clean table is turned: a page is longer than it is wide."""


BOLD = (
    "Bold: better than every other verbalisation of that language, p < 0.05 (signs of whole objects and of whole subjects flipped, "
    f"the larger p, Holm over the table). Estimand: {ESTIMAND}."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of general, general-wide and additional-langs."""
    add_short_rule(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write one of the three tables."""
    wide = arguments.command == "general-wide"
    folder = open_wide(arguments.wide, arguments.stats) if wide else open_dumps(arguments.stats)
    if folder is None:
        raise UserError(f"no wide dumps beside {arguments.stats}; name their folder with --wide")
    write_general_table(arguments.command, folder, arguments)
    return 0


def write_general_table(kind_name: str, folder: DumpFolder, arguments: argparse.Namespace) -> Path:
    """Select, lay out and write the table of this kind; returns its path."""
    kind = KINDS[kind_name]
    selection = select_for(kind_name, folder, arguments)
    body = paper_layout(selection) if arguments.style == "paper" else clean_layout(selection)
    comments = [] if arguments.style == "paper" else remarks(kind.title, selection, folder, [BOLD])
    return write_table(arguments.tables, kind.name, body, comments)


def values(selection: Selection) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(R@1, mean rank), each verbalisations × languages, unrounded."""
    return macro(selection, recall_at(1)), macro(selection, mean_rank)


def paper_layout(selection: Selection) -> str:
    """The published layout: numbers without padding zeros, ruled columns, two header lines."""
    recall, ranks = values(selection)
    rows = [
        [
            first_cell(v),
            *(round(value_at(recall, v, x), 3) for x in selection.langs),
            *(round(value_at(ranks, v, x), 2) for x in selection.langs),
        ]
        for v in selection.verbalisations
    ]
    width = len(selection.langs)
    text = tabulate(
        rows, headers=["verbalization", *selection.langs, *selection.langs], tablefmt="latex_raw"
    )
    spec = "|l|" + 2 * ("r" * width + "|")
    heading = rf"& \multicolumn{{{width}}}{{c|}}{{R@1 $\uparrow$}} & \multicolumn{{{width}}}{{c|}}{{Mean Rank $\downarrow$}} \\"
    plain = rf"\begin{{tabular}}{{l{'r' * 2 * width}}}"
    return text.replace(plain, f"\\begin{{tabular}}{{{spec}}} \n \\hline {heading}", 1)


def clean_layout(selection: Selection) -> str:
    """Ours: three and two decimals everywhere, the best value bold where the paired test says that it is better."""
    recall, ranks = values(selection)
    ranked = {
        lang: (fact_ranks(selection.of(lang)), selection.verbalisations) for lang in selection.langs
    }
    best = significantly_best(ranked, ("R@1", "mean rank"), flips=FLIPS)
    cells = {
        (v, lang): (
            _marked(value_at(recall, v, lang), 3, best[lang, "R@1"] == v),
            _marked(value_at(ranks, v, lang), 2, best[lang, "mean rank"] == v),
        )
        for v in selection.verbalisations
        for lang in selection.langs
    }
    titles = (Raw(r"R@1 $\uparrow$"), Raw(r"Mean rank $\downarrow$"))
    across, down = selection.langs, selection.verbalisations
    if len(selection.langs) >= ROWS_ARE_LANGUAGES_FROM:
        across, down = down, across
        cells = {(lang, v): cell for (v, lang), cell in cells.items()}
    columns = [Column("", "l"), *(Column(name, "r", title) for title in titles for name in across)]
    rows = [
        [name, *(cells[name, other][part] for part in (0, 1) for other in across)] for name in down
    ]
    return booktabs(columns, rows)


def _marked(value: float, digits: int, best: bool) -> Raw:
    return bold(number(value, digits)) if best else number(value, digits)
