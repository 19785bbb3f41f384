"""The ranks of facts side by side: one row a fact in one language, one column a way of asking for it.

What ``inference`` needs to know of facts: a relation of a language is a stratum, objects and subjects are the clusters.

From per-fact ranks of two ways to everything that is said about their difference.

A way is a verbalisation of one folder, or the same verbalisation of two folders (two models).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.reporting.inference import (
    WEIGHTS,
    Design,
    Floats,
    Scale,
    design_of,
    effect_size,
    holm,
    intervals,
    sign_flips,
    superiority,
)
from fluent_mlama.reporting.loading import RankTable

KEYS = ("language", "relation", "sub_uri", "obj_uri")
SIGNIFICANT = 0.05


def fact_ranks(
    tables: Iterable[RankTable], prefix: str = "", *, all_forms: bool = False
) -> pd.DataFrame:
    """One row a fact: ``language``, ``relation``, ``sub_uri``, ``obj_uri`` and a column of best ranks per verbalisation.

    prefix goes before the verbalisation's name where several folders stand side by side. all_forms: ranks by the form that
    the verbalisation itself uses, NaN where it has none (protocol corrected; ``UserError`` in other dumps).
    """
    parts = []
    for table in tables:
        ranks = table.all_forms_rank if all_forms else table.rank
        if ranks is None:
            raise UserError(
                f"{table.name} follows the {table.protocol} protocol, which has no all-forms ranks; leave --all-forms out"
            )
        keys = {
            "language": table.lang,
            "relation": table.relation,
            "sub_uri": table.facts["sub_uri"],
            "obj_uri": table.facts["obj_uri"],
        }
        parts.append(
            pd.DataFrame(
                keys | {prefix + v: ranks[v] for v in table.verbalisations}, index=table.facts.index
            )
        )
    if not parts:
        raise UserError("no dump is left to compare: choose other languages or relations")
    return pd.concat(parts, ignore_index=True)


def require_single_facts(table: pd.DataFrame) -> None:
    """Raise UserError where a fact stands twice in one language: pairing would be arbitrary."""
    double = table.duplicated(list(KEYS))
    if double.any():
        language, relation, subject, answer = table.loc[double, list(KEYS)].iloc[0]
        raise UserError(
            f"{language}_{relation}: the fact {subject} – {answer} stands twice ({int(double.sum())} such rows in all); "
            "remove the double rows from the dump"
        )


def align(tables: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, dict[str, int]]:
    """The rows that the first table shares with any other, side by side by fact (NaN where one lacks it), and how many each shares.

    Raises UserError where the first shares no fact with another, or a fact stands twice in one.
    """
    for table in tables.values():
        require_single_facts(table)
    (name, merged), *others = tables.items()
    shared = {}
    for other, table in others:
        shared[other] = len(merged[list(KEYS)].merge(table[list(KEYS)]))
        if not shared[other]:
            raise UserError(
                f"{name} and {other} share no fact (same language, relation, sub_uri and obj_uri); nothing can be paired"
            )
        merged = merged.merge(table, on=list(KEYS), how="left", validate="one_to_one")
    ranks = [column for column in merged if column not in tables[name]]
    return merged[merged[ranks].notna().any(axis=1)].reset_index(drop=True), shared


def find_design(table: pd.DataFrame, weights: str = "relation") -> Design:
    """The strata and clusters of a table of facts; of several languages each counts the same, and so do its relations.

    Raises UserError where there is no row or a fact stands twice in one language.
    """
    if table.empty:
        raise UserError("no fact is left to compare: choose other languages, relations or dumps")
    require_single_facts(table)
    return design_of(table, ["language", "relation"], ["obj_uri", "sub_uri"], weights)


def metric_columns(ranks: Floats, cutoffs: Sequence[int]) -> tuple[tuple[str, ...], Floats]:
    """The metrics of (n,) ranks as names and (n, metrics) columns: R@k for each cut-off, MRR, mean rank.

    A mid-rank (ties) counts for R@k when it is ≤ k and for MRR as 1 / mid-rank.
    """
    names = (*(f"R@{k}" for k in cutoffs), "MRR", "mean rank")
    columns = [(ranks <= k).astype(float) for k in cutoffs]
    return names, np.column_stack([*columns, 1.0 / ranks, ranks])


def better(metric: str) -> int:
    """+1 where a larger value of the metric is better, −1 where a smaller one is."""
    return -1 if metric == "mean rank" else 1


def scale_of(metric: str) -> Scale:
    """Which values the metric can take."""
    return Scale.RANK if metric == "mean rank" else Scale.SHARE


def significantly_best(
    parts: Mapping[str, tuple[pd.DataFrame, Sequence[str]]],
    metrics: Sequence[str],
    *,
    flips: int = 10_000,
    seed: int = 0,
) -> dict[tuple[str, str], str | None]:
    """For each (part, metric) the way that may be set in bold: the best, if the test tells it from every other, else None.

    parts: name -> the ranks of a language (``fact_ranks``) and the ways that have a rank in every row of it. metrics:
    R@k, MRR, mean rank. Holm's adjustment of a metric goes over all tests of all parts: they stand in one table.
    """
    best: dict[tuple[str, str], str] = {}
    p_values: dict[tuple[str, str], Floats] = {}
    cutoffs = [int(metric.removeprefix("R@")) for metric in metrics if metric.startswith("R@")]
    for name, (table, ways) in parts.items():
        if len(ways) < 2:
            continue
        design = find_design(table)
        names, _ = metric_columns(np.ones(1), cutoffs)
        values = np.stack(
            [metric_columns(table[way].to_numpy(dtype=float), cutoffs)[1] for way in ways], axis=2
        )
        leads = []
        for metric in metrics:
            of_metric = values[:, names.index(metric)]
            first = int(np.argmax(better(metric) * design.mean(of_metric)))
            best[name, metric] = ways[first]
            leads.append(of_metric[:, [first]] - np.delete(of_metric, first, axis=1))
        tested = sign_flips([design], np.hstack(leads), flips=flips, seed=seed)[0].reshape(
            len(metrics), -1
        )
        p_values |= {(name, metric): row for metric, row in zip(metrics, tested, strict=True)}
    found: dict[tuple[str, str], str | None] = {
        (name, metric): None for name in parts for metric in metrics
    }
    for metric in metrics:
        keys = [key for key in p_values if key[1] == metric]
        if not keys:
            continue
        adjusted = np.split(
            holm(np.concatenate([p_values[key] for key in keys])),
            np.cumsum([len(p_values[key]) for key in keys])[:-1],
        )
        found |= {
            key: best[key]
            for key, row in zip(keys, adjusted, strict=True)
            if (row < SIGNIFICANT).all()
        }
    return found


POOLED = "all"
"""What stands in the language column where the languages are pooled."""

COUNTS = ("facts", "rows", "objects", "effective_objects", "subjects", "relations")
VALUE_COLUMNS = ("language", "way", "weights", "metric", *COUNTS, "value", "low", "high")
DIFFERENCE_COLUMNS = (
    *("comparison", "first", "second", "language", "weights", "metric", *COUNTS),
    *(
        "first_value",
        "second_value",
        "difference",
        "low",
        "high",
        "detectable",
        "p",
        "p_holm",
        "effect_size",
        "superiority",
    ),
)


@dataclass(frozen=True)
class Settings:
    """cutoffs: the k of R@k. level: of the intervals. resamples: sign flips. seed: of the flips."""

    cutoffs: tuple[int, ...] = (1, 3, 5)
    level: float = 0.95
    resamples: int = 10_000
    seed: int = 0


@dataclass(frozen=True)
class Pair:
    """Two columns of ranks to compare; differences are second minus first."""

    first: str
    second: str

    @property
    def name(self) -> str:
        return f"{self.first} → {self.second}"


def compare_pairs(
    table: pd.DataFrame, pairs: Sequence[Pair], settings: Settings
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(values, differences) of these pairs, per language and, where all have the same, pooled (``parts``).

    table: rows as ``paired.fact_ranks`` makes them; NaN where a way has no rank for that row, and such rows are
    left out of the pairs with that way. Columns as in VALUE_COLUMNS and DIFFERENCE_COLUMNS. Holm's family is all
    languages and pairs (of a way with itself there is no test), for each weights and metric.
    """
    values: dict[tuple[str, str], pd.DataFrame] = {}
    differences = []
    for language, rows in parts(table):
        for together, facts in _same_rows(rows, pairs):
            new_values, new_differences = _compare_together(facts, together, settings)
            differences.append(new_differences.assign(language=language))
            for way, frame in new_values.items():
                # one way stands in several pairs: the widest set of rows speaks for it
                if (language, way) not in values or values[language, way]["rows"].iloc[0] < len(
                    facts
                ):
                    values[language, way] = frame.assign(language=language)
    if not differences:
        raise UserError(
            f"no fact has ranks for {' or '.join(pair.name for pair in pairs)}; choose with --verbalisations or --langs"
        )
    joined = _in_order(differences, DIFFERENCE_COLUMNS)
    joined.loc[joined["first"] == joined["second"], "p"] = np.nan
    for _, family in joined.groupby(["weights", "metric"], sort=False):
        joined.loc[family.index, "p_holm"] = holm(family["p"].to_numpy(dtype=float))
    by_pair = joined["comparison"].map({pair.name: place for place, pair in enumerate(pairs)})
    ordered = joined.iloc[np.argsort(by_pair, kind="stable")].reset_index(drop=True)
    return _in_order(values.values(), VALUE_COLUMNS), ordered


def parts(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each language's rows in order of appearance, then all rows as ``POOLED``.

    Pooled only where several languages have the same relations and the same ways: a mean over what only some of them have
    is a number of nothing.
    """
    by_language = {str(language): rows for language, rows in table.groupby("language", sort=False)}
    yield from by_language.items()
    ways = [column for column in table if column not in KEYS]
    has = {
        (frozenset(rows["relation"]), tuple(rows[ways].notna().any()))
        for rows in by_language.values()
    }
    if len(by_language) > 1 and len(has) == 1:
        yield POOLED, table


def _same_rows(
    table: pd.DataFrame, pairs: Sequence[Pair]
) -> Iterator[tuple[list[Pair], pd.DataFrame]]:
    """The pairs that can be compared on the same rows, with those rows: they share one set of sign flips."""
    groups: dict[bytes, list[Pair]] = {}
    for pair in pairs:
        ranked = table[[pair.first, pair.second]].notna().all(axis=1).to_numpy()
        if ranked.any():
            groups.setdefault(ranked.tobytes(), []).append(pair)
    for mask, together in groups.items():
        yield together, table[np.frombuffer(mask, dtype=bool)]


def _compare_together(
    table: pd.DataFrame, pairs: Sequence[Pair], settings: Settings
) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """The values of each way and the differences of all pairs on these rows, under each of ``WEIGHTS``."""
    designs = {weights: find_design(table, weights) for weights in WEIGHTS}
    names, _ = metric_columns(np.ones(1), settings.cutoffs)
    ways = list(dict.fromkeys(way for pair in pairs for way in (pair.first, pair.second)))
    of = {
        way: metric_columns(table[way].to_numpy(dtype=float), settings.cutoffs)[1] for way in ways
    }
    gaps = [of[pair.second] - of[pair.first] for pair in pairs]
    p_values = sign_flips(
        list(designs.values()), np.hstack(gaps), flips=settings.resamples, seed=settings.seed
    )
    values: dict[str, list[pd.DataFrame]] = {way: [] for way in ways}
    differences = []
    for (weights, design), tested in zip(designs.items(), p_values, strict=True):
        head = counts(table, design) | {"weights": weights, "metric": names}
        for way, columns in of.items():
            found = intervals(
                design, columns, [scale_of(name) for name in names], level=settings.level
            )
            values[way].append(
                pd.DataFrame(
                    head
                    | {"way": way, "value": found.estimate, "low": found.low, "high": found.high}
                )
            )
        for number, pair in enumerate(pairs):
            labels = {"comparison": pair.name, "first": pair.first, "second": pair.second}
            both = {
                "first_value": design.mean(of[pair.first]),
                "second_value": design.mean(of[pair.second]),
            }
            p_value = tested[number * len(names) : (number + 1) * len(names)]
            differences.append(
                pd.DataFrame(
                    head
                    | labels
                    | both
                    | _difference(design, gaps[number], settings.level)
                    | {"p": p_value}
                )
            )
    return {way: pd.concat(frames) for way, frames in values.items()}, pd.concat(differences)


def _difference(design: Design, gap: Floats, level: float) -> dict[str, Floats]:
    found = intervals(design, gap, [Scale.DIFFERENCE] * gap.shape[1], level=level)
    worth = {
        "difference": found.estimate,
        "low": found.low,
        "high": found.high,
        "detectable": found.detectable,
    }
    return worth | {"effect_size": effect_size(gap), "superiority": superiority(gap)}


def counts(table: pd.DataFrame, design: Design) -> dict[str, object]:
    """``COUNTS`` of the rows."""
    facts = len(table.drop_duplicates(["relation", "sub_uri", "obj_uri"]))
    objects, subjects = design.sizes
    return dict(
        zip(
            COUNTS,
            (facts, len(table), objects, design.effective, subjects, table["relation"].nunique()),
            strict=True,
        )
    )


def _in_order(frames: Iterable[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    return pd.concat(list(frames), ignore_index=True).reindex(columns=list(columns))
