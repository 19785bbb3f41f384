"""Do the intervals cover the truth where the published ranks themselves are the population?

    python benchmarks/simulations_published.py ../shared/data/fluent_mlama/stats.zip [--langs ru,cs] [--simulations 3000]

The ranks of a language's relations are taken for all facts there are; relations are drawn without and facts with
replacement, and the macro values of such samples get their intervals. Unlike the model of ``simulations.py`` this has
the tails and the ties that real ranks have. Prints coverage, a row a language and design.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.simulations import BATCH, CUTOFFS, METRICS, columns_of, find_intervals
from fluent.console import ArgumentParser, UserError, run_main
from fluent.reporting.clusters import Floats, fact_ranks, find_design, metric_columns
from fluent.reporting.loading import open_dumps

WAYS = ("template", "gt")
LEAST_FACTS = 60
DESIGNS = ((4, 10), (10, 4), (1, 40), (4, 100))


def populations(path: Path, language: str) -> list[Floats]:
    """(facts, 2) ranks of both ways, of every relation that is large enough to be drawn from."""
    tables = [table for table in open_dumps(path).tables([language], None) if len(table) > LEAST_FACTS]
    return [fact_ranks([table])[list(WAYS)].to_numpy(dtype=float) for table in tables]


def coverage(population: list[Floats], relations: int, facts: int, simulations: int, generator: np.random.Generator) -> Floats:
    """(3, metrics) how often the macro intervals of both ways and of their difference hold the truth."""
    hits, batches = np.zeros((3, len(METRICS))), -(-simulations // BATCH)
    for batch in range(batches):
        drawn = [population[place] for place in generator.choice(len(population), relations, replace=False)]
        values = np.array([[metric_columns(ranks[:, way], CUTOFFS)[1].mean(axis=0) for ranks in drawn] for way in (0, 1)]).mean(axis=1)
        truth = np.vstack([values, values[1] - values[0]])[:, :, None]
        ranks = np.concatenate([ranks[generator.integers(0, len(ranks), (facts, BATCH))] for ranks in drawn])
        number = np.arange(relations * facts)
        table = pd.DataFrame({"language": "l", "relation": number // facts, "sub_uri": number, "obj_uri": number})
        found = find_intervals("closed-form", find_design(table), columns_of(ranks[:, :, 0]), columns_of(ranks[:, :, 1]), batch)["macro"]
        low, high = (end.reshape(3, len(METRICS), BATCH) for end in (found.low, found.high))
        hits += ((low <= truth) & (truth <= high)).sum(axis=2)
    return hits / (batches * BATCH)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the coverage of every language and design."""
    parser = ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stats", type=Path, metavar="FOLDER|ZIP", help="the published dumps")
    parser.add_argument("--langs", default="ru,cs", help="comma-separated (default: ru,cs)")
    parser.add_argument("--simulations", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parsed = parser.parse_args(arguments)
    rows = []
    for language in parsed.langs.split(","):
        population = populations(parsed.stats, language)
        if len(population) < max(relations for relations, _ in DESIGNS):
            raise UserError(f"{parsed.stats} has only {len(population)} relations of {language} with more than {LEAST_FACTS} facts")
        for relations, facts in DESIGNS:
            found = coverage(population, relations, facts, parsed.simulations, np.random.default_rng(parsed.seed))
            rows.append([language, f"{relations} × {facts}", *(f"{value:.3f}" for value in found.ravel())])
    headers = ["language", "relations × facts", *(f"{what} {metric}" for what in (*WAYS, "difference") for metric in METRICS)]
    print(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))
    return 0


if __name__ == "__main__":
    run_main(main)
