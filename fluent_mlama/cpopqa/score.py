"""``score``: parse the answers, and put the models beside the baselines.

<data>/tables/   table1 … table5, measures, comparisons, figure data; each as .tsv, .md, .tex      <data>/figures/
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.console import UserError, note, split_list, whole_number
from fluent_mlama.cpopqa.answers import read_answers, signatures
from fluent_mlama.cpopqa.baselines import NAMES, baselines
from fluent_mlama.cpopqa.card import PROXY_WARNING, diversity
from fluent_mlama.cpopqa.figures import SHARED, by_kind, by_place, by_region, write_figures
from fluent_mlama.cpopqa.items import read_benchmark
from fluent_mlama.cpopqa.outcomes import outcomes_of
from fluent_mlama.cpopqa.popularity import PROXY
from fluent_mlama.cpopqa.results import comparisons, mark_all, measures, paper_table
from fluent_mlama.cpopqa.target_table import target_agreement, worked_examples
from fluent_mlama.outcomes import write_outcomes
from fluent_mlama.reporting.three_formats import write_tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``score``."""
    parser.add_argument(
        "--data", type=Path, required=True, help="folder that build wrote; its answers/ are scored"
    )
    parser.add_argument(
        "--baselines",
        default="random,shared,question order,name length",
        help=f"comma list of {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--wiki-length", type=Path, help="CSV: holiday,words (adds the baseline wiki length)"
    )
    parser.add_argument(
        "--trends",
        type=Path,
        help="CSV: holiday,volume, or a Trends export (adds the baseline trends)",
    )
    parser.add_argument(
        "--shared",
        type=whole_number(1),
        default=SHARED,
        help=f"groups that make a concept a shared one in Figure 1 (default {SHARED})",
    )
    parser.add_argument("--no-figures", action="store_true")


def run(arguments: argparse.Namespace) -> int:
    """Score, write, and print the main tables."""
    folder: Path = arguments.data
    items, concepts = read_benchmark(folder)
    wanted = split_list(arguments.baselines)
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise UserError(f"--baselines {unknown[0]}: choose from {', '.join(NAMES)}")
    answers = read_answers(folder, items)
    if not answers:
        note(
            f"{folder} holds no answers yet: only the baselines are scored (ask and rank make answers)"
        )
    made = baselines(items, concepts, arguments.wiki_length, arguments.trends)
    wanted += [
        name
        for name, given in (("wiki length", arguments.wiki_length), ("trends", arguments.trends))
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
        ("figure1", by_kind(results, items, concepts, arguments.shared)),
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
    if not arguments.no_figures:
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
    return 0
