"""Do the intervals cover the truth 95 times in 100, and do the tests reject a true null 5 times in 100?

    python benchmarks/simulations.py [--simulations 10000] [--seed 20251130] [--out benchmarks/RESULTS-simulations.md]
    python benchmarks/simulations.py --intervals bootstrap --out benchmarks/RESULTS-simulations-bootstrap.md

Ranks are drawn from a model whose truth is known and go through the functions that ``stats.py compare`` uses. All
simulated data sets of a batch are columns of one table and share a set of resamples; each batch has its own. With
``--parts FOLDER`` every finished scenario is kept there, and a run that was stopped goes on with the next.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fluent.console import ArgumentParser, progress, run_main
from fluent.records.atomic import write_text
from fluent.reporting.closed_form import closed_form, kind_of
from fluent.reporting.clusters import AVERAGES, Design, find_design, metric_columns
from fluent.reporting.intervals import Interval, bootstrap
from fluent.reporting.paired import mcnemar, permutation_test

CUTOFFS = (1, 3)
METRICS = ("R@1", "R@3", "MRR", "mean rank")
FACT, WAY, SHARED = 1.6, 0.9, 1.2
BATCH = 250
RESAMPLES = 999
POPULATION = 4_000_000

MODEL = f"""The model: every fact has a latent difficulty (normal, standard deviation {FACT}), every way of asking for it adds its
own (standard deviation {WAY}); the rank is exp(latent), rounded, within 1 … 51. One relation of it looks like the published
Russian ranks: LOOKS. Truth is the mean over {POPULATION:,} such facts for each relation. In the scenarios with clusters,
{SHARED**2 / FACT**2:.0%} of the facts' variance is shared by the facts of a subject, or by a fact's rows in the three languages."""


@dataclass(frozen=True)
class Scenario:
    """n facts in relations of these shares, ``per_subject`` facts a subject, in each of ``languages`` languages.

    level: the latent's mean, per relation. effect: how much smaller the second way's latent is.
    shared: standard deviation of the part of the latent that a cluster shares; it is taken from the fact's.
    """

    name: str
    n: int
    effect: float
    shares: tuple[float, ...] = (1.0,)
    level: tuple[float, ...] = (0.3,)
    per_subject: int = 1
    languages: int = 1
    shared: float = 0.0

    def table(self) -> pd.DataFrame:
        """The facts, without ranks."""
        relation = np.repeat(np.arange(len(self.shares)), [round(share * self.n) for share in self.shares])
        number = np.arange(self.n)
        one = {"relation": relation, "sub_uri": number // self.per_subject, "obj_uri": number}
        return pd.concat([pd.DataFrame({"language": f"l{i}"} | one) for i in range(self.languages)], ignore_index=True)


def scenarios(n: int) -> list[Scenario]:
    """The scenarios at this number of facts, each with a true difference and under the null."""
    found = []
    for effect in (0.35, 0.0):
        found += [
            Scenario("one relation", n, effect),
            Scenario("four relations", n, effect, shares=(0.4, 0.3, 0.2, 0.1), level=(0.3, 1.0, -0.3, 0.6)),
            Scenario("two facts a subject", n, effect, per_subject=2, shared=SHARED),
            Scenario("three languages", n, effect, languages=3, shared=SHARED),
        ]
    return found


def draw_ranks(scenario: Scenario, cluster: np.ndarray, relation: np.ndarray, sets: int, generator: np.random.Generator) -> np.ndarray:
    """(2, rows, sets) ranks of the two ways for a table with these clusters and relations."""
    latent = np.asarray(scenario.level)[relation][:, None] + np.zeros((2, 1, 1))
    if scenario.shared:
        latent = latent + generator.normal(0, scenario.shared, size=(cluster.max() + 1, sets))[cluster]
    latent = latent + generator.normal(0, (FACT**2 - scenario.shared**2) ** 0.5, size=(len(relation), sets))
    latent = latent + generator.normal(0, WAY, size=(2, len(relation), sets))
    latent[1] -= scenario.effect
    return np.clip(np.round(np.exp(latent)), 1, 51)


def columns_of(ranks: np.ndarray) -> np.ndarray:
    """(rows, metrics × sets) metric columns of (rows, sets) ranks, all sets of a metric side by side."""
    rows, sets = ranks.shape
    return metric_columns(ranks.ravel(), CUTOFFS)[1].reshape(rows, sets, len(METRICS)).transpose(0, 2, 1).reshape(rows, -1)


def truth(scenario: Scenario) -> dict[str, np.ndarray]:
    """Per average (3, metrics): the first way's values, the second's and their difference in the population."""
    generator = np.random.default_rng(1)
    means = []
    for relation in range(len(scenario.shares)):
        parts = []
        for _ in range(8):
            size = POPULATION // 8
            ranks = draw_ranks(scenario, np.arange(size), np.full(size, relation), 1, generator)[:, :, 0]
            parts.append([metric_columns(way, CUTOFFS)[1].mean(axis=0) for way in ranks])
        means.append(np.mean(parts, axis=0))
    weights = {"micro": np.asarray(scenario.shares), "macro": np.full(len(means), 1 / len(means))}
    values = {average: np.tensordot(weights[average], np.array(means), axes=1) for average in AVERAGES}
    return {average: np.vstack([both, both[1] - both[0]]) for average, both in values.items()}


def find_intervals(method: str, design: Design, first: np.ndarray, second: np.ndarray, seed: int) -> dict[str, Interval]:
    """Per average the intervals of both ways' columns and of their differences, as ``columns_of`` makes them."""
    columns = np.hstack([first, second, second - first])
    if method == "bootstrap":
        return bootstrap(design, columns, resamples=RESAMPLES, seed=seed)
    kinds = [kind_of(metric, difference=difference) for difference in (False, False, True) for metric in METRICS for _ in range(BATCH)]
    return closed_form(design, columns, kinds)


def run_scenario(scenario: Scenario, simulations: int, seed: int, method: str) -> pd.DataFrame:
    """Coverage of the intervals of both values and of the difference, and rejection rates, a row per (average, metric)."""
    start = time.process_time()
    table = scenario.table()
    design, relation, known = find_design(table), table["relation"].to_numpy(), truth(scenario)
    hits = {average: np.zeros((3, len(METRICS))) for average in AVERAGES}
    rejected = {average: np.zeros(len(METRICS)) for average in AVERAGES}
    mcnemar_rejected, batches = 0, -(-simulations // BATCH)
    for batch in progress(range(batches), total=batches, unit="batches", label=f"{scenario.name}, n = {scenario.n}"):
        ranks = draw_ranks(scenario, design.cluster, relation, BATCH, np.random.default_rng([seed, scenario.n, batch]))
        first, second = columns_of(ranks[0]), columns_of(ranks[1])
        found = find_intervals(method, design, first, second, seed + batch)
        p_values = permutation_test(design, second - first, flips=RESAMPLES, seed=seed + batch)
        for average in AVERAGES:
            low, high = (end.reshape(3, len(METRICS), BATCH) for end in (found[average].low, found[average].high))
            target = known[average][:, :, None]
            hits[average] += ((low <= target) & (target <= high)).sum(axis=2)  # no interval (NaN) counts as a miss
            rejected[average] += (p_values[average].reshape(len(METRICS), BATCH) <= 0.05).sum(axis=1)
        mcnemar_rejected += count_mcnemar(design, ranks)
    done = batches * BATCH
    one_average = len(scenario.shares) == 1
    rows = [
        (average, metric, *(hits[average][:, place] / done), rejected[average][place] / done, mcnemar_rejected / done)
        for average in (AVERAGES[:1] if one_average else AVERAGES)
        for place, metric in enumerate(METRICS)
    ]
    frame = pd.DataFrame(rows, columns=["average", "metric", "first", "second", "difference", "permutation", "mcnemar"])
    return frame.assign(seconds=time.process_time() - start)


def kept_scenario(scenario: Scenario, simulations: int, seed: int, method: str, parts: Path | None) -> pd.DataFrame:
    """The scenario's rows, from the folder of finished ones where they are there, otherwise run and kept."""
    name = f"{method}-{simulations}-{seed}-{scenario.n}-{scenario.effect}-{scenario.name.replace(' ', '-')}.tsv"
    if parts is None or not (parts / name).exists():
        frame = run_scenario(scenario, simulations, seed, method)
        if parts is not None:
            write_text(parts / name, frame.to_csv(sep="\t", index=False))
    else:
        frame = pd.read_csv(parts / name, sep="\t")
    return frame.assign(scenario=[scenario] * len(frame))


def count_mcnemar(design: Design, ranks: np.ndarray) -> int:
    """How many of the (2, rows, sets) data sets McNemar's exact test on R@1 rejects at 5 %."""
    hits = (ranks == 1).astype(float)
    return sum(mcnemar(design, hits[0, :, place], hits[1, :, place]).p_value <= 0.05 for place in range(hits.shape[2]))


def summary(results: pd.DataFrame) -> list[str]:
    """How many cells lie within .94 and .96, by what the interval is of, as Markdown lines."""
    lines = ["| 95 % interval of | n | cells | lowest | highest | within .94 – .96 |", "|---|---|---|---|---|---|"]
    with_effect = results["scenario"].map(lambda scenario: scenario.effect != 0)
    groups = (("one way's", results[with_effect], ["first", "second"]), ("a difference of", results[with_effect], ["difference"]))
    for what, part, columns in (*groups, ("no difference of", results[~with_effect], ["difference"])):
        for name, metrics in (("R@k", ["R@1", "R@3"]), ("MRR", ["MRR"]), ("mean rank", ["mean rank"])):
            chosen = part[part["metric"].isin(metrics)]
            size_of = chosen["scenario"].map(lambda scenario: scenario.n)
            for n in sorted(set(size_of)):
                cells = chosen[size_of == n]
                values = cells[columns].to_numpy().ravel()
                within = int(((values >= 0.94) & (values <= 0.96)).sum())
                lines.append(f"| {what} {name} | {n} | {len(values)} | {values.min():.4f} | {values.max():.4f} | {within} |")
    return [*lines, ""]


def looks() -> str:
    """What one relation of the model looks like, in figures."""
    scenario = Scenario("", 1, 0.35)
    size = 1_000_000
    ranks = draw_ranks(scenario, np.arange(size), np.zeros(size, dtype=int), 1, np.random.default_rng(1))[:, :, 0]
    recall, mean, difference = (ranks == 1).mean(axis=1), ranks.mean(axis=1), pd.Series(ranks[1] - ranks[0])
    return (
        f"R@1 {recall[0]:.2f} and {recall[1]:.2f}, mean rank {mean[0]:.1f} and {mean[1]:.1f}, correlation {np.corrcoef(ranks)[0, 1]:.2f}, "
        f"skewness of the difference {difference.skew():.1f}, excess kurtosis {difference.kurt():.0f}"
    )


def report(results: pd.DataFrame, simulations: int, seed: int, method: str) -> str:
    """The results as Markdown."""
    seconds = results.drop_duplicates("scenario")["seconds"].sum()
    error = (0.95 * 0.05 / simulations) ** 0.5
    lines = [
        "# Simulations of intervals and tests",
        "",
        f"Made by `python benchmarks/simulations.py --intervals {method}`. " + MODEL.replace("LOOKS", looks()),
        "",
    ]
    lines += [
        f"{simulations:,} simulations a scenario, seed {seed}, {RESAMPLES} flips (and resamples) each, {seconds / 60:.1f} minutes of CPU. "
        f"Monte Carlo standard error of a coverage of .95: {error:.4f}.",
        "",
        *summary(results),
    ]
    with_effect = results["scenario"].map(lambda scenario: scenario.effect != 0)
    for title, part, columns in (
        ("Coverage of 95 % intervals, true difference", results[with_effect], ["first", "second", "difference"]),
        (
            "No true difference: coverage, and how often the tests reject at 5 %",
            results[~with_effect],
            ["difference", "permutation", "mcnemar"],
        ),
    ):
        lines += [
            f"## {title}",
            "",
            f"| scenario | n | average | metric | {' | '.join(columns)} |",
            "|---|---|---|---|" + "---|" * len(columns),
        ]
        for row in part.to_dict("records"):
            has_mcnemar = (row["metric"], row["average"]) == ("R@1", "micro")
            shown = [f"{row[column]:.4f}" if column != "mcnemar" or has_mcnemar else "" for column in columns]
            lines.append(f"| {row['scenario'].name} | {row['scenario'].n} | {row['average']} | {row['metric']} | {' | '.join(shown)} |")
        lines.append("")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all scenarios and write the report."""
    parser = ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20251130)
    parser.add_argument("--sizes", type=int, nargs="+", default=[40, 400])
    parser.add_argument(
        "--intervals", choices=("closed-form", "bootstrap"), default="closed-form", help="whose coverage (default: closed-form)"
    )
    parser.add_argument("--parts", type=Path, help="folder that keeps finished scenarios")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("RESULTS-simulations.md"))
    parsed = parser.parse_args(arguments)
    method = parsed.intervals
    results = pd.concat(
        [kept_scenario(scenario, parsed.simulations, parsed.seed, method, parsed.parts) for n in parsed.sizes for scenario in scenarios(n)]
    )
    write_text(parsed.out, report(results, parsed.simulations, parsed.seed, method))
    return 0


if __name__ == "__main__":
    run_main(main)
