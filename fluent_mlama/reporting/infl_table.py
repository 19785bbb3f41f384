"""Table 2: how much better the inflected form ranks than the label from the dictionary.

For facts with exactly two correct forms: rank(label) - rank(other form), mean over facts, then over relations.
A reader should know what it cannot show: where the label is the beginning of the inflected form, its probability is
never the smaller one, whatever the grammar says.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.console import UserError
from fluent_mlama.reporting.general_table import ROWS_ARE_LANGUAGES_FROM
from fluent_mlama.reporting.latex import Column, Raw, booktabs, first_cell, number, write_table
from fluent_mlama.reporting.loading import DumpFolder, open_dumps
from fluent_mlama.reporting.measures import (
    inflection_deltas,
    macro,
    mean_inflection_delta,
    value_at,
)
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.selection import R8_INFLECTION, R15, Selection, remarks, select_for

NAME = "infl_delta_table"


def infl_delta(*, options: StatsOptions = StatsOptions(), with_all_relations: bool = False) -> None:
    """Rank of the label minus rank of the inflected form (Table 2).

    Args:
        with_all_relations: add each value over the paper's 15 relations (or all common ones) as a subscript
    """
    write_infl_table(open_dumps(options.dumps), options, with_all_relations=with_all_relations)


def write_infl_table(
    folder: DumpFolder, options: StatsOptions, *, with_all_relations: bool = False
) -> Path:
    """Select, lay out and write; a selection in which no fact has two forms is a ``UserError``."""
    selection = select_for("general", folder, options, R8_INFLECTION)
    values = deltas(selection)
    all_values = None
    if with_all_relations:
        all_values = deltas(select_for("general", folder, options, R15))
    if options.style == "paper":
        return write_table(options.tables, NAME, paper_layout(values, all_values))
    counted = ", ".join(
        f"{lang} {sum(len(inflection_deltas(table)) for table in selection.of(lang))}"
        for lang in selection.langs
    )
    more = [
        f"Positive: the other form ranks better than the label. Facts with exactly two correct forms in every verbalisation: {counted}.",
        "Where the label is the beginning of the other form, the label cannot be the less probable one: read the sign with care.",
    ]
    comments = remarks("Rank of the label minus rank of the other form", selection, folder, more)
    return write_table(options.tables, NAME, clean_layout(values, all_values), comments)


def deltas(selection: Selection) -> pd.DataFrame:
    """verbalisations × languages: macro mean of rank(label) - rank(other form), unrounded."""
    values = macro(selection, mean_inflection_delta)
    empty = [lang for lang in selection.langs if values[lang].isna().all()]
    if len(empty) == len(selection.langs):
        raise UserError(
            f"no fact of {', '.join(empty)} has exactly two correct forms, the label one of them, in every verbalisation: "
            "choose narrow dumps, other languages, or fewer verbalisations"
        )
    return values


def paper_layout(values: pd.DataFrame, all_values: pd.DataFrame | None = None) -> str:
    """The published layout: two decimals, ruled columns; with ``all_values`` as subscripts the numbers lose their zeros, as there."""
    headers = ["verbalization", *values.columns]
    spec = f"|l|{'r' * len(values.columns)}|"
    if all_values is None:
        text = tabulate(
            [[first_cell(v), *values.loc[v]] for v in values.index],
            headers=headers,
            tablefmt="latex_raw",
            floatfmt=".2f",
        )
    else:
        both = (
            values.astype(float).round(2).astype(str)
            + "_{"
            + all_values.astype(float).round(2).astype(str)
            + "}"
        )
        cells = [[first_cell(v), *both.loc[v]] for v in values.index]
        text = tabulate(cells, headers=headers, tablefmt="latex_raw")
    first, _, rest = text.partition("\n")
    return f"\\begin{{tabular}}{{{spec}}}\n{rest}"


def clean_layout(values: pd.DataFrame, all_values: pd.DataFrame | None = None) -> str:
    """Ours: two decimals everywhere, a real minus sign; languages as rows when there are many."""

    def cell(v: str, lang: str) -> Raw:
        main = number(value_at(values, v, lang), 2)
        return (
            main
            if all_values is None
            else Raw(rf"{main}\textsubscript{{{number(value_at(all_values, v, lang), 2)}}}")
        )

    langs, names = list(values.columns), list(values.index)
    if len(langs) >= ROWS_ARE_LANGUAGES_FROM:
        return booktabs(
            [Column("", "l"), *map(Column, names)],
            [[lang, *(cell(v, lang) for v in names)] for lang in langs],
        )
    return booktabs(
        [Column("", "l"), *map(Column, langs)],
        [[v, *(cell(v, lang) for lang in langs)] for v in names],
    )
