"""Do the intervals cover the truth 95 times in 100, and do the tests reject a true null 5 times in 100?

    python benchmarks/simulations.py ../shared/data/fluent_mlama/stats.zip [--sets 2000] [--runs 5000]

Facts, objects, subjects and relations are the published ones; what is found for them is drawn from a model whose truth is
known, or is the published difference with the sign of every object drawn. All data sets of a batch are columns of one
table and go through the functions that ``stats.py compare`` uses. Writes benchmarks/RESULTS-simulations.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fluent_mlama.console import progress, run_main
from fluent_mlama.files import write_text
from fluent_mlama.reporting.inference import Design, Floats, Scale, intervals, number, sign_flips
from fluent_mlama.reporting.loading import open_dumps
from fluent_mlama.reporting.paired import fact_ranks, find_design

BATCH = 250
FLIPS = 999
PLANTED = 0.05
OBJECT, SUBJECT, FACT, WAY_OBJECT, WAY = 0.7, 0.5, 1.2, 0.4, 0.7
"""Standard deviations of the latent: of objects, subjects, facts; of each way's own, by object and by fact."""
GAIN = 0.2
POPULATION = 400_000

MODEL = f"""Every fact has a latent difficulty: normal effects of its object (standard deviation {OBJECT}), its subject ({SUBJECT})
and its own ({FACT}) about the level of its relation; each way of asking adds one of the object ({WAY_OBJECT}) and one of the fact
({WAY}), and the second way is {GAIN} easier. The rank is exp(latent), rounded, within 1 … 51. Objects and subjects are drawn
anew in each data set, so that truth is the mean of the relations' expectations. *per relation*: an object has another effect
in each of its relations; *shared*: the same in all."""

METRICS: dict[str, tuple[Callable[[Floats], Floats], Scale]] = {
    "R@1": (lambda ranks: (ranks <= 1).astype(float), Scale.SHARE),
    "MRR": (lambda ranks: 1 / ranks, Scale.SHARE),
    "mean rank": (lambda ranks: ranks, Scale.RANK),
}


def published(stats: Path, language: str) -> pd.DataFrame:
    """The ranks of a language's relations with more than one object."""
    tables = open_dumps(stats).tables([language], None)
    return fact_ranks([table for table in tables if table.facts["obj_uri"].nunique() > 1])


def batches(sets: int, seed: int, label: str) -> Iterator[np.random.Generator]:
    """A generator for each batch of ``BATCH`` data sets."""
    count = -(-sets // BATCH)
    for batch in progress(range(count), total=count, unit="batches", label=label):
        yield np.random.default_rng([seed, batch])


def to_ranks(latent: Floats) -> Floats:
    """exp, rounded, within 1 … 51."""
    return np.clip(np.round(np.exp(latent)), 1, 51)


def draw_latents(
    design: Design, objects: np.ndarray, level: Floats, draw: np.random.Generator
) -> Floats:
    """(2, n, BATCH) latents of both ways."""

    def effects(spread: float, group: np.ndarray) -> Floats:
        return np.asarray(draw.normal(0, spread, size=(int(group.max()) + 1, BATCH))[group])

    fact = np.arange(design.rows)
    shared = (
        level[design.stratum][:, None]
        + effects(OBJECT, objects)
        + effects(SUBJECT, design.clusters[1])
        + effects(FACT, fact)
    )
    ways = [shared + effects(WAY_OBJECT, objects) + effects(WAY, fact) for _ in range(2)]
    ways[1] -= GAIN
    return np.array(ways)


def truth(level: Floats) -> dict[str, tuple[float, float]]:
    """Of each metric both ways' expectations, mean over relations."""
    spread = (OBJECT**2 + SUBJECT**2 + FACT**2 + WAY_OBJECT**2 + WAY**2) ** 0.5
    normal = np.random.default_rng(1).normal(0, spread, POPULATION)
    ranks = [[to_ranks(mean - gain + normal) for mean in level] for gain in (0.0, GAIN)]
    return {
        name: (
            float(np.mean([of(one) for one in ranks[0]])),
            float(np.mean([of(one) for one in ranks[1]])),
        )
        for name, (of, _) in METRICS.items()
    }


def coverage(
    design: Design, objects: np.ndarray, sets: int, seed: int, label: str
) -> dict[str, float]:
    """How often the interval of the latent's mean, of one way's metrics and of the differences holds the truth."""
    level = np.random.default_rng(seed).normal(0.5, 0.6, len(design.stratum_weights))
    known = truth(level)
    hits: dict[str, float] = dict.fromkeys(
        ["latent", *METRICS, *(f"difference of {name}" for name in METRICS)], 0.0
    )
    done = 0
    for draw in batches(sets, seed, label):
        latents = draw_latents(design, objects, level, draw)
        ranks = to_ranks(latents)
        columns = [("latent", latents[0], Scale.DIFFERENCE, float(level.mean()))]
        for name, (of, scale) in METRICS.items():
            columns.append((name, of(ranks[0]), scale, known[name][0]))
            columns.append(
                (
                    f"difference of {name}",
                    of(ranks[1]) - of(ranks[0]),
                    Scale.DIFFERENCE,
                    known[name][1] - known[name][0],
                )
            )
        for name, values, scale, true in columns:
            found = intervals(design, values, [scale] * BATCH)
            hits[name] += float(((found.low <= true) & (true <= found.high)).sum())
        done += BATCH
    return {name: count / done for name, count in hits.items()}


def rejections(
    design: Design, difference: Floats, planted: float, runs: int, seed: int, label: str
) -> tuple[float, float]:
    """How often the test of the published (n,) differences with a drawn sign of each object, plus ``planted``, rejects at 5 %;
    and how often the test by subjects alone would."""
    subjects_alone = Design(design.stratum, design.weight, (design.clusters[1],))
    rejected, by_subjects, done = 0.0, 0.0, 0
    for draw in batches(runs, seed, label):
        signs = draw.choice([-1.0, 1.0], (design.sizes[0], BATCH))[design.clusters[0]]
        values = signs * difference[:, None] + planted
        flips = int(draw.integers(2**31))
        rejected += float((sign_flips([design], values, flips=FLIPS, seed=flips)[0] <= 0.05).sum())
        by_subjects += float(
            (sign_flips([subjects_alone], values, flips=FLIPS, seed=flips)[0] <= 0.05).sum()
        )
        done += BATCH
    return rejected / done, by_subjects / done


def report(
    stats: Path, langs: Sequence[str], tested: Sequence[str], sets: int, runs: int, seed: int
) -> str:
    """All tables as Markdown."""
    structures = {}
    for language in langs:
        table = published(stats, language)
        structures[language] = (find_design(table), table)
    covered, errors = [], []
    for language, (design, _) in structures.items():
        for how, objects in (
            ("per relation", number(design.stratum, design.clusters[0])),
            ("shared", design.clusters[0]),
        ):
            found = coverage(design, objects, sets, seed, f"{language}, {how}")
            cells = [f"{value:.3f}" for value in found.values()]
            covered.append(
                [
                    language,
                    len(design.stratum_weights),
                    design.rows,
                    f"{design.effective:.0f}",
                    how,
                    *cells,
                ]
            )
    for language in tested:
        design, table = structures[language]
        for name, (of, _) in METRICS.items():
            values = of(table["gt"].to_numpy(dtype=float)) - of(
                table["template"].to_numpy(dtype=float)
            )
            rates = rejections(design, values, 0.0, runs, seed, f"{language}, {name}, null")
            power = (
                rejections(design, values, PLANTED, runs, seed, f"{language}, {name}, planted")[0]
                if name == "R@1"
                else np.nan
            )
            detectable = intervals(design, values[:, None], [Scale.DIFFERENCE]).detectable[0]
            cells = [f"{rate:.4f}" for rate in rates]
            errors.append(
                [
                    language,
                    name,
                    *cells,
                    "" if np.isnan(power) else f"{power:.3f}",
                    f"{detectable:.3f}",
                ]
            )
    heads = [
        "language",
        "relations",
        "rows",
        "G*",
        "objects",
        "latent",
        *METRICS,
        *(f"difference of {name}" for name in METRICS),
    ]
    columns = [
        "language",
        "metric",
        "rejected",
        "by subjects alone",
        f"found of {PLANTED}",
        "detectable",
    ]
    return "\n".join(
        [
            "# Simulations of intervals and tests\n",
            f"Made by `python benchmarks/simulations.py STATS` from the published dumps, seed {seed}.\n",
            "## Coverage of 95 % intervals\n",
            f"{MODEL}\n",
            f"{sets:,} data sets a line; Monte Carlo standard error of a coverage of .95: {(0.95 * 0.05 / sets) ** 0.5:.4f}.\n",
            tabulate(covered, headers=heads, tablefmt="github", disable_numparse=True),
            "\n## How often the test rejects at 5 %\n",
            "The published differences gt − template of every fact, times a sign drawn for each object: nothing differs, and the facts",
            f"of an object go together. {runs:,} runs, {FLIPS} flips each; "
            f"Monte Carlo standard error of .05: {(0.05 * 0.95 / runs) ** 0.5:.4f}.",
            f"*by subjects alone*: what a test rejects that flips subjects only. *found of {PLANTED}*: how often a difference of that",
            "size, added to every fact, is found. *detectable*: what the command prints for the published differences (80 %).\n",
            tabulate(errors, headers=columns, tablefmt="github", disable_numparse=True),
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all simulations and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stats", type=Path, metavar="FOLDER|ZIP", help="the published dumps")
    parser.add_argument(
        "--langs", default="ru,cs,uk,hr,id,es,zh", help="for coverage, comma-separated"
    )
    parser.add_argument("--tested", default="ru,cs,uk", help="of these, for the tests")
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=20251201)
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).with_name("RESULTS-simulations.md")
    )
    asked = parser.parse_args(arguments)
    text = report(
        asked.stats,
        asked.langs.split(","),
        asked.tested.split(","),
        asked.sets,
        asked.runs,
        asked.seed,
    )
    write_text(asked.out, text)
    print(text)
    return 0


if __name__ == "__main__":
    run_main(main)
