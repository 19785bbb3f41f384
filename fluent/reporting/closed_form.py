"""Intervals in closed form, one for each kind of value, that hold at 40 facts as well as at 400.

All rest on the clusters' standard error within fixed relations (``strata``); they differ in the shape they allow for:

- R@k, a share: Jeffreys' interval with the number of independent facts that would have its variance (Korn and Graubard
  1998, Survey Methodology 24; for clusters: Dean and Pagano 2015, JSSAM 3). Of a few clusters that all hit or all miss a
  relation seems to have no spread; so each relation's is taken as if ``PRIOR_CLUSTERS`` of average spread had been added.
- MRR, a mean between 0 and 1: the same, that number times (z / t)² since its variance is estimated.
- Mean rank, skewed: Hall's cubic transformation of the studentised mean (Hall 1992, JRSS B 54), with Student's t for z,
  Welch's degrees of freedom (Welch 1947, Biometrika 34).
- A difference of R@k or MRR: Student's t, degrees of freedom clusters − relations.
- A difference of mean ranks, long tails on either side: the same t, stretched by what skewness and kurtosis do to |T|
  in the second order (Hall 1992, The Bootstrap and Edgeworth Expansion, chapter 2).

How often each covers: ``benchmarks/RESULTS-simulations.md``; what else was tried: docs/comparing.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from fluent.reporting.clusters import AVERAGES, Design, Floats
from fluent.reporting.intervals import Interval
from fluent.reporting.strata import Stratum, fourth_cumulant, split, steadied, third_moment, third_moment_noise, variances

DESCRIPTION = (
    "Jeffreys' for R@k and MRR, Hall's for mean rank, Student's t for differences, all on the standard error of subjects within "
    "each relation (pooled: of facts)"
)
"""What compare and the report say of their intervals."""


class Kind(Enum):
    """What a column holds, hence which interval it gets."""

    SHARE = "R@k"
    BOUNDED = "MRR"
    RANK = "mean rank"
    DIFFERENCE = "difference of R@k or MRR"
    RANK_DIFFERENCE = "difference of mean ranks"


def kind_of(metric: str, *, difference: bool = False) -> Kind:
    """The kind of a metric of ``clusters.metric_columns``, of its values or of differences between two ways."""
    if metric == "mean rank":
        return Kind.RANK_DIFFERENCE if difference else Kind.RANK
    if difference:
        return Kind.DIFFERENCE
    return Kind.SHARE if metric.startswith("R@") else Kind.BOUNDED


def closed_form(design: Design, columns: Floats, kinds: Sequence[Kind], *, level: float = 0.95) -> dict[str, Interval]:
    """Per average (``micro``, ``macro``) the intervals of the (n, q) columns, each of its kind; no randomness.

    NaN ends where nothing varies, but for R@k and MRR of one way: all facts hit is no proof that all would be.
    """
    strata = split(design, columns)
    student = stats.t.ppf(0.5 + level / 2, max(len(design.stratum) - len(strata), 1))
    found = {}
    for average in AVERAGES:
        estimate, of_relations = design.averages(columns, average), variances(strata, average)
        error = np.sqrt(of_relations.sum(axis=0))
        low, high = np.empty_like(estimate), np.empty_like(estimate)
        for kind in dict.fromkeys(kinds):
            chosen = np.flatnonzero([other is kind for other in kinds])
            if kind in (Kind.SHARE, Kind.BOUNDED):
                steady = steadied(strata, average).sum(axis=0)[chosen]
                times = 1.0 if kind is Kind.SHARE else (stats.norm.ppf(0.5 + level / 2) / student) ** 2
                below, above = jeffreys(estimate[chosen], steady, len(design.stratum), times, level)
            elif kind is Kind.RANK:
                quantile = stats.t.ppf(0.5 + level / 2, welch(strata, of_relations[:, chosen]))
                below, above = hall(third_moment(strata, average)[chosen], error[chosen], quantile)
            else:
                below = above = student * error[chosen]
            if kind is Kind.RANK_DIFFERENCE:
                below = above = below * _stretched(strata, average, error, level)[chosen]
            if kind not in (Kind.SHARE, Kind.BOUNDED):
                below, above = (np.where(error[chosen] > 0, side, np.nan) for side in (below, above))
            low[chosen], high[chosen] = estimate[chosen] - below, estimate[chosen] + above
        found[average] = Interval(estimate, low, high, error)
    return found


def welch(strata: Sequence[Stratum], of_relations: Floats) -> Floats:
    """(q,) degrees of freedom (Σ v)² / Σ (v² / (m + 1)) − 2 of the sum of the relations' variances v, m clusters each.

    Welch's (1947) own; with one relation m − 1. At least 1, and 1 where nothing varies.
    """
    clusters = np.array([stratum.clusters for stratum in strata], dtype=float)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = of_relations.sum(axis=0) ** 2 / (of_relations**2 / (clusters + 1)).sum(axis=0) - 2
    return np.where(of_relations.sum(axis=0) > 0, np.maximum(freedom, 1.0), 1.0)


def hall(third: Floats, error: Floats, quantile: Floats) -> tuple[Floats, Floats]:
    """(q,) reaches below and above the mean by Hall's transformation (1992): T + γT²/3 + γ²T³/27 + γ/6, inverted.

    third: third central moment of the mean, error its standard error, γ = third / error³; without skewness quantile × error.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = third / error**3

        def inverse(normal: Floats) -> Floats:
            return 3 / skewness * (np.cbrt(1 + skewness * (normal - skewness / 6)) - 1)

        straight = ~(np.abs(skewness) > 1e-9)
        return error * np.where(straight, quantile, inverse(quantile)), error * np.where(straight, quantile, -inverse(-quantile))


def stretch(skewness_squared: Floats, kurtosis: Floats, level: float) -> Floats:
    """By how much the quantile of |T| exceeds that without skewness and kurtosis: 1 + γ² (z⁴ + 2z² − 3)/18 − κ (z² − 3)/12.

    The second-order expansion of the studentised mean's two-sided distribution (Hall 1992, chapter 2), the part that
    Student's t leaves out. γ and κ are the mean's own, so γ² and κ shrink with the number of clusters.
    """
    z = stats.norm.ppf(0.5 + level / 2)
    return np.maximum(1 + skewness_squared * (z**4 + 2 * z**2 - 3) / 18 - kurtosis * (z**2 - 3) / 12, 0.5)


def _stretched(strata: Sequence[Stratum], average: str, error: Floats, level: float) -> Floats:
    """(q,) ``stretch`` by the data's own moments. Heavy tails alone make a squared sample skewness large, so its
    sampling variance is taken off first."""
    with np.errstate(invalid="ignore", divide="ignore"):
        squared = np.maximum(third_moment(strata, average) ** 2 - third_moment_noise(strata, average), 0.0) / error**6
        return stretch(squared, fourth_cumulant(strata, average) / error**4, level)


def jeffreys(mean: Floats, variance: Floats, clusters: int, times: float, level: float) -> tuple[Floats, Floats]:
    """(q,) reaches below and above means between 0 and 1 by Jeffreys' interval of ``times`` mean (1 − mean) / variance facts.

    Where nothing varies (all hit, none hit), each cluster counts as one fact.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.where(variance > 0, mean * (1 - mean) / variance, clusters) * times
    low, high = proportion_confint(mean * size, size, alpha=1 - level, method="jeffreys")
    return np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0)
