"""Tables 1, 3 and 7: R@1 and mean rank, macro over relations, for each language and verbalisation.

``general`` reads the narrow dumps, ``general-wide`` the wide ones, ``additional-langs`` the languages whose dumps have
fewer verbalisations than the richest.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.console import UserError
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
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.paired import fact_ranks, significantly_best
from fluent_mlama.reporting.selection import KINDS, Selection, remarks, select_for
from fluent_mlama.reporting.yardsticks import STATEMENT, yardstick_table

FLIPS = 2000
"""Random flips of the permutation tests behind the bold figures: p is known to about 0.005 at 0.05."""
ROWS_ARE_LANGUAGES_FROM = 7
"""With this many languages the clean table is turned: a page is longer than it is wide."""


BOLD = (
    "Bold: better than every other verbalisation of that language, p < 0.05 (signs of whole objects and of whole subjects flipped, "
    f"the larger p, Holm over the table). Estimand: {ESTIMAND}."
)


def general(*, options: StatsOptions = StatsOptions()) -> None:
    """R@1 and mean rank by language and verbalisation (Table 1).

    stats.py general --stats stats/starter/paper --tables tables/mine
    """
    write_general_table("general", open_dumps(options.dumps), options)


def general_wide(*, options: StatsOptions = StatsOptions()) -> None:
    """R@1 and mean rank from the wide dumps, aliases counted as right (Table 7)."""
    folder = open_wide(options.wide, options.dumps)
    if folder is None:
        raise UserError(f"no wide dumps beside {options.dumps}; name their folder with --wide")
    write_general_table("general-wide", folder, options)


def additional_langs(*, options: StatsOptions = StatsOptions()) -> None:
    """R@1 and mean rank of the languages with fewer verbalisations (Table 3)."""
    write_general_table("additional-langs", open_dumps(options.dumps), options)


def write_general_table(kind_name: str, folder: DumpFolder, options: StatsOptions) -> Path:
    """Select, lay out and write the table of this kind; returns its path."""
    kind = KINDS[kind_name]
    selection = select_for(kind_name, folder, options)
    if options.style == "paper":
        return write_table(options.tables, kind.name, paper_layout(selection))
    beside = yardstick_table(folder, list(selection.tables.values()))
    more = [BOLD] if beside is None else [BOLD, STATEMENT]
    comments = remarks(kind.title, selection, folder, more)
    return write_table(options.tables, kind.name, clean_layout(selection, beside), comments)


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


def clean_layout(selection: Selection, beside: pd.DataFrame | None = None) -> str:
    """Ours: three and two decimals everywhere, the best value bold where the paired test says that it is better.

    beside: the yardsticks of R@1 (``yardstick_table``), where there are any.
    """
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
    for (yardstick, lang), share in yardstick_cells(beside).items():
        cells[yardstick, lang] = (number(share, 3), Raw(""))
    titles = (Raw(r"R@1 $\uparrow$"), Raw(r"Mean rank $\downarrow$"))
    names = list(dict.fromkeys(name for name, _ in cells))
    langs_down = len(selection.langs) >= ROWS_ARE_LANGUAGES_FROM
    if not langs_down:
        columns = [
            Column("", "l"),
            *(Column(lang, "r", title) for title in titles for lang in selection.langs),
        ]
        rows = [
            [name, *(cells[name, lang][part] for part in (0, 1) for lang in selection.langs)]
            for name in names
        ]
        return booktabs(columns, rows)
    columns = [
        Column("", "l"),
        *(Column(name, "r", titles[0]) for name in names),
        *(Column(v, "r", titles[1]) for v in selection.verbalisations),
    ]
    rows = [
        [
            lang,
            *(cells[name, lang][0] for name in names),
            *(cells[v, lang][1] for v in selection.verbalisations),
        ]
        for lang in selection.langs
    ]
    return booktabs(columns, rows)


def yardstick_cells(beside: pd.DataFrame | None) -> dict[tuple[str, str], float]:
    """(yardstick, language) -> its R@1. Chance and majority do not depend on the verbalisation."""
    cells: dict[tuple[str, str], float] = {}
    if beside is None:
        return cells
    for row in beside.reset_index().to_dict("records"):
        for name in ("chance", "majority"):
            cells.setdefault((name, row["lang"]), row[name])
        cells[f"blind, {row['verbalisation']}", row["lang"]] = row["blind"]
    order = sorted(cells, key=lambda cell: (cell[0].startswith("blind"), cell[0] == "majority"))
    return {cell: cells[cell] for cell in order}


def _marked(value: float, digits: int, best: bool) -> Raw:
    return bold(number(value, digits)) if best else number(value, digits)
