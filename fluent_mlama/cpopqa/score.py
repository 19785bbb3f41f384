"""``score``: parse the answers, and put the models beside the baselines.

<data>/tables/   table1 … table5, measures, comparisons, figure data; each as .tsv, .md, .tex      <data>/figures/
"""

from __future__ import annotations

from typing import Annotated

import pandas as pd
from cyclopts import Parameter
from tabulate import tabulate

from fluent_mlama.console import UserError, note
from fluent_mlama.cpopqa.answers import read_answers, signatures
from fluent_mlama.cpopqa.baselines import NAMES
from fluent_mlama.cpopqa.baselines import baselines as make_baselines
from fluent_mlama.cpopqa.card import PROXY_WARNING, diversity
from fluent_mlama.cpopqa.figures import SHARED, by_kind, by_place, by_region, write_figures
from fluent_mlama.cpopqa.items import read_benchmark
from fluent_mlama.cpopqa.outcomes import outcomes_of
from fluent_mlama.cpopqa.popularity import PROXY
from fluent_mlama.cpopqa.results import comparisons, mark_all, measures, paper_table
from fluent_mlama.cpopqa.target_table import target_agreement, worked_examples
from fluent_mlama.options import Count, File, Names
from fluent_mlama.outcomes import write_outcomes
from fluent_mlama.reporting.table_io import write_tables

Baselines = Annotated[Names, Parameter(help=f"of {', '.join(NAMES)}")]


def score(
    *,
    data: File,
    baselines: Baselines = ("random", "shared", "question order", "name length"),
    wiki_length: File | None = None,
    trends: File | None = None,
    shared: Count = SHARED,
    no_figures: bool = False,
) -> None:
    """Parse the answers; tables, figures and paired tests beside the baselines.

        fluent-mlama cpopqa score --data popularity

    Args:
        data: folder that build wrote; its answers/ are scored
        wiki_length: CSV: holiday,words (adds the baseline wiki length)
        trends: CSV: holiday,volume, or a Trends export (adds the baseline trends)
        shared: groups that make a concept a shared one in Figure 1
    """
    folder = data
    items, concepts = read_benchmark(folder)
    wanted = list(baselines)
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise UserError(f"--baselines {unknown[0]}: choose from {', '.join(NAMES)}")
    answers = read_answers(folder, items)
    if not answers:
        note(
            f"{folder} holds no answers yet: only the baselines are scored (ask and rank make answers)"
        )
    made = make_baselines(items, concepts, wiki_length, trends)
    wanted += [
        name
        for name, given in (("wiki length", wiki_length), ("trends", trends))
        if given and name not in wanted
    ]
    absent = [name for name in wanted if name not in made]
    if absent:
        raise UserError(
            f"--baselines {absent[0]} needs a file: give --{absent[0].replace(' ', '-')}"
        )
    orders = {**{name: made[name] for name in wanted}, **answers}
    if not orders:
        raise UserError("nothing to score: no answers, and --baselines is empty")
    results = mark_all(items, orders, concepts)
    write_outcomes(folder, outcomes_of(results, signatures(folder)))
    measured = measures(results)
    targets = list(dict.fromkeys(item.target for item in items))
    tables = {
        "table1": diversity(items),
        "measures": measured,
        "table3": worked_examples(items, orders),
    }
    tables |= {
        f"{'table5' if place else 'table2'}-{target}": paper_table(measured, target)
        for place, target in enumerate(targets)
    }
    agreement = target_agreement(items, concepts)
    if not agreement.empty:
        tables["table4"] = agreement
    compared = comparisons(results)
    if not compared.empty:
        tables["comparisons"] = compared
    drawn: dict[str, pd.DataFrame] = {}
    for name, table in (
        ("figure1", by_kind(results, items, concepts, shared)),
        ("figure2", by_place(results)),
        ("figure3", by_region(results)),
    ):
        drawn |= {
            f"{name}-{target}": table[table["target"] == target].reset_index(drop=True)
            for target in targets
        }
    write_tables(
        folder / "tables",
        {**tables, **{name: table for name, table in drawn.items() if not table.empty}},
    )
    if not no_figures:
        write_figures(folder / "figures", drawn, max(item.n for item in items))
    for name in (one for one in tables if one.startswith(("table2", "table5"))):
        print(f"{name.partition('-')[2]}: P@1 and Acc in per cent; ± over rounds")
        print(
            tabulate(
                tables[name].to_numpy().tolist(), list(tables[name].columns), disable_numparse=True
            )
        )
    if answers:
        rates = measured[measured["model"].isin(answers)][
            ["target", "n", "model", "full", "partial", "none", "Diff (full)", "first as asked"]
        ]
        print(tabulate(rates.to_numpy().tolist(), list(rates.columns), floatfmt="z.3f"))
    if PROXY in targets:
        note(PROXY_WARNING)
    print(f"Tables and figures are in {folder}")
