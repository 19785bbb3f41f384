"""Paired tests between two ways of asking for the same facts, and how large their difference is.

All of them work on differences within rows (second minus first), so that easy and hard facts cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from fluent.reporting.clusters import AVERAGES, Design, Floats, better, find_design, metric_columns

CHUNK = 1000


@dataclass(frozen=True)
class McNemar:
    """McNemar's exact test on hits: ``gained`` units are hit by the second way alone, ``lost`` by the first alone."""

    gained: int
    lost: int
    p_value: float

    @property
    def odds_ratio(self) -> float:
        """gained / lost, each with half a unit added where one is 0 (Haldane); NaN where no unit differs."""
        if self.gained + self.lost == 0:
            return float("nan")
        half = 0.5 if 0 in (self.gained, self.lost) else 0.0
        return (self.gained + half) / (self.lost + half)


def mcnemar(design: Design, first: Floats, second: Floats) -> McNemar:
    """McNemar's exact (binomial, two-sided) test of (n,) hits 0/1.

    The units are the rows of one language. Pooled over languages a fact's rows are not independent, so a fact
    counts once, on the side on which it has more rows; facts that are even count on neither.
    """
    difference = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    if design.pooled:
        difference = design.cluster_sums(difference[:, None])[:, 0]
    gained, lost = int((difference > 0).sum()), int((difference < 0).sum())
    p_value = stats.binomtest(gained, gained + lost, 0.5).pvalue if gained + lost else 1.0
    return McNemar(gained, lost, float(p_value))


def permutation_test(design: Design, differences: Floats, *, flips: int = 10_000, seed: int = 0) -> dict[str, Floats]:
    """Per average the (q,) two-sided p-values of (n, q) paired differences.

    Under the null hypothesis the two ways are exchangeable, so each cluster's differences may change their sign
    together. p = (1 + flips at least as far from 0) / (1 + flips) (Phipson and Smyth 2010), hence never 0. Up to
    13 clusters that differ at all, every one of their flips is enumerated and p is exact.
    """
    generator = np.random.default_rng(seed)
    sums = np.concatenate([design.cluster_sums(design.weights(average)[:, None] * differences) for average in AVERAGES], axis=1)
    sums = sums[np.any(sums != 0, axis=1)]
    observed = np.abs(sums.sum(axis=0)) * (1 - 1e-9) - 1e-15  # equal sums added in another order count as equal
    extreme = np.zeros(sums.shape[1])
    if len(sums) <= 13:
        signs = 1.0 - 2.0 * ((np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums))) & 1)
        p_values = (np.abs(signs @ sums) >= observed).mean(axis=0)
    else:
        for start in range(0, flips, CHUNK):
            size = min(CHUNK, flips - start)
            signs = generator.integers(0, 2, size=(size, len(sums)), dtype=np.int8) * 2.0 - 1.0
            extreme += (np.abs(signs @ sums) >= observed).sum(axis=0)
        p_values = (1 + extreme) / (1 + flips)
    return dict(zip(AVERAGES, np.split(p_values, len(AVERAGES)), strict=True))


def holm(p_values: Sequence[float] | Floats) -> Floats:
    """Holm's step-down adjustment of a family of p-values; NaN (no test) stays out of the family.

    The k-th smallest of m becomes the largest of p_j (m - j + 1) over j <= k, at most 1. As statsmodels' ``multipletests``,
    which collects the whole process's garbage at every call: a family of three took .2 s.
    """
    values = np.asarray(p_values, dtype=float)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]  # NaN is sorted behind
    adjusted = np.full(len(values), np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(len(order), 0, -1)))
    return adjusted


def effect_size(design: Design, differences: Floats) -> Floats:
    """(q,) standardised paired difference d_z = mean / standard deviation of the (n, q) row differences (Cohen 1988).

    0 where no row differs; NaN where all rows differ by the same amount.
    """
    mean, spread = differences.mean(axis=0), differences.std(axis=0, ddof=1) if design.rows > 1 else np.zeros(differences.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0, mean / spread, np.where(mean == 0, 0.0, np.nan))


def superiority(differences: Floats) -> Floats:
    """(q,) probability that the second way is the larger on a fact, ties by half (Grissom and Kim's dependent-groups PS)."""
    return (differences > 0).mean(axis=0) + 0.5 * (differences == 0).mean(axis=0)


def significantly_best(
    table: pd.DataFrame,
    ways: Sequence[str],
    metric: str,
    *,
    average: str = "macro",
    alpha: float = 0.05,
    flips: int = 10_000,
    seed: int = 0,
) -> str | None:
    """Which of the ways may be set in bold: the best by this average, if the paired test tells it from every other.

    table: rows of one or several languages with ``language``, ``relation``, ``sub_uri``, ``obj_uri`` and one column
    of ranks per way. metric: ``R@1``, ``R@3``, …, ``MRR`` or ``mean rank``. The p-values against all others are
    adjusted by Holm; one at alpha or above and the answer is None.
    """
    if len(ways) < 2:
        return None
    design = find_design(table)
    cutoffs = [int(metric.removeprefix("R@"))] if metric.startswith("R@") else []
    place = metric_columns(np.ones(1), cutoffs)[0].index(metric)
    values = np.column_stack([metric_columns(table[way].to_numpy(dtype=float), cutoffs)[1][:, place] for way in ways])
    best = int(np.argmax(better(metric) * design.averages(values, average)))
    others = [i for i in range(len(ways)) if i != best]
    p_values = permutation_test(design, values[:, [best]] - values[:, others], flips=flips, seed=seed)[average]
    return ways[best] if (holm(p_values) < alpha).all() else None
