"""The ranks of facts side by side: one row a fact in one language, one column a way of asking for it.

What ``inference`` needs to know of facts: a relation of a language is a stratum, objects and subjects are the clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.reporting.inference import Design, Floats, Scale, design_of, holm, sign_flips
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
