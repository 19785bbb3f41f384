"""What an average or a difference is worth: standard errors, intervals and tests of clustered rows.

A row (a fact, a question) belongs to a stratum (a relation) and to one or two kinds of clusters (its object, its subject).
Strata are fixed, the benchmark's choice; the question is what other objects and subjects of the same strata would give.
A cluster is a URI wherever it occurs, also in several strata. The module knows nothing of dumps.

The estimate is a weighted mean, by default the mean of the strata's means. Its variance is the leave-one-cluster-out
jackknife (CR3): without cluster g the mean of stratum r changes by Σ w (x − mean of r) / (1 − share of g in r), summed over
the rows of g in r; the strata's changes add up, and their squares are summed over clusters. With two kinds of clusters

    V = max(V_object, V_subject, V_object + V_subject − V_both)      (Cameron, Gelbach and Miller 2011, JBES 29)

where "both" is the same object and subject. G* = 1 / Σ W², W the total weight of an object, is how many objects of equal
weight there would be (Carter, Schnepel and Steigerwald 2017, REStat 99). How often the intervals cover and the tests
reject: ``benchmarks/RESULTS-simulations.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, stats

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST = 10
"""Below this G* there is a point estimate only."""
POWER = 0.8
EXACT_UP_TO = 13
"""Up to so many clusters that differ at all, every combination of their signs is tried."""
FLIPS_AT_ONCE = 1000
WEIGHTS = ("relation", "object", "fact")
"""What weighs the same: relations; relations, and within each its objects; all rows."""
ESTIMAND = "new subjects and new objects of the same relations"
METHOD = (
    "two-way clustered (objects, subjects) CR3 standard errors, Student's t with G* − 1 degrees of freedom, "
    "G* the effective number of objects; Wilson's interval for R@k and MRR"
)
STATEMENT = f"Estimand: {ESTIMAND}. Intervals: {METHOD}. p: sign flips of whole objects and of whole subjects, the larger."


class Scale(Enum):
    """What a column holds, which bounds its interval."""

    DIFFERENCE = "any number"
    SHARE = "from 0 to 1"
    RANK = "from 1"


@dataclass(frozen=True)
class Design:
    """The structure of n rows.

    stratum: (n,). weight: (n,), sums to 1. clusters: one or two (n,) columns of cluster numbers, objects first.
    """

    stratum: Integers
    weight: Floats
    clusters: tuple[Integers, ...]

    @property
    def rows(self) -> int:
        return len(self.stratum)

    @cached_property
    def stratum_weights(self) -> Floats:
        """(strata,) sums to 1."""
        return np.bincount(self.stratum, weights=self.weight).astype(np.float64)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many clusters there are of each kind."""
        return tuple(int(numbers.max()) + 1 for numbers in self.clusters)

    @cached_property
    def effective(self) -> float:
        """G*; of subjects, where they are fewer than the objects."""
        totals = [np.bincount(numbers, weights=self.weight) for numbers in self.clusters]
        return float(min(1 / np.sum(total**2) for total in totals))

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom, G* − 1; NaN below ``FEWEST``, with which intervals and tests are NaN."""
        return self.effective - 1 if self.effective >= FEWEST - 1e-9 else np.nan

    @cached_property
    def deletions(self) -> list[sparse.csr_array]:
        """For each kind of cluster, and for both at once, the (clusters, n) matrix from residuals to changes of the estimate."""
        kinds = list(self.clusters)
        if len(kinds) == 2:
            kinds.append(number(kinds[0], kinds[1]))
        return [
            sparse.csr_array((self._pull(kind), (kind, np.arange(self.rows)))) for kind in kinds
        ]

    def _pull(self, cluster: Integers) -> Floats:
        """(n,) weight / (1 − the cluster's share of the row's stratum); 0 where it is the whole stratum, which has no rest."""
        part = number(self.stratum, cluster)
        rest = 1 - np.bincount(part, weights=self.weight)[part] / self.stratum_weights[self.stratum]
        return np.divide(self.weight, rest, out=np.zeros(self.rows), where=rest > 1e-12)

    def mean(self, columns: Floats) -> Floats:
        """(q,) the estimate of each of the (n, q) columns."""
        return self.weight @ columns

    def residuals(self, columns: Floats) -> Floats:
        """(n, q) columns less the weighted mean of the row's stratum; what is left of rounding is 0."""
        of_stratum = sparse.csr_array((self.weight, (self.stratum, np.arange(self.rows))))
        means = (of_stratum @ columns / self.stratum_weights[:, None])[self.stratum]
        left = columns - means
        left[np.abs(left) <= 1e-12 * np.abs(means)] = 0.0
        return left

    def variance(self, columns: Floats) -> Floats:
        """(q,) V, the variance of the estimates."""
        left = self.residuals(columns)
        found = [np.square(change @ left).sum(axis=0) for change in self.deletions]
        if len(found) == 3:
            found[2] = found[0] + found[1] - found[2]
        return np.max(found, axis=0)

    def quantile(self, probability: float) -> float:
        """Of Student's t with G* − 1 degrees of freedom; NaN where G* is too small."""
        return float(stats.t.ppf(probability, self.freedom))


@dataclass(frozen=True)
class Interval:
    """(q,) estimates, ends of their intervals, standard errors, and detectable differences; NaN where G* is too small.

    detectable: the true difference that a test at this level finds in ``POWER`` of samples like this one.
    """

    estimate: Floats
    low: Floats
    high: Floats
    error: Floats
    detectable: Floats


def number(*columns: NDArray[np.generic] | pd.Series) -> Integers:
    """(n,) numbers from 0, the same where all the columns are the same, in order of appearance."""
    frame = pd.DataFrame(dict(enumerate(columns)))
    return (
        frame.groupby(list(frame.columns), sort=False, dropna=False)
        .ngroup()
        .to_numpy()
        .astype(np.int64)
    )


def design_of(
    table: pd.DataFrame, strata: Sequence[str], clusters: Sequence[str], weights: str = "relation"
) -> Design:
    """The structure of a table of at least one row.

    strata: columns, the outer first; within each value of one, the values of the next weigh the same. clusters: one or two
    columns. weights: one of ``WEIGHTS``, "object" being the first of clusters.
    """
    levels = {"relation": list(strata), "object": [*strata, clusters[0]], "fact": []}[weights]
    stratum = (
        number(*(table[name] for name in strata))
        if strata
        else np.zeros(len(table), dtype=np.int64)
    )
    return Design(
        stratum, nested_weights(table, levels), tuple(number(table[name]) for name in clusters)
    )


def nested_weights(table: pd.DataFrame, levels: Sequence[str]) -> Floats:
    """(n,) weights, sum 1: alike for the values of the first level, within each for those of the next, at last for rows."""
    weight, parent = np.ones(len(table)), np.zeros(len(table), dtype=np.int64)
    for level in levels:
        child = number(parent, table[level])
        first = np.unique(child, return_index=True)[1]
        weight /= np.bincount(parent[first])[parent]
        parent = child
    return weight / np.bincount(parent)[parent]


def intervals(
    design: Design, columns: Floats, scales: Sequence[Scale], *, level: float = 0.95
) -> Interval:
    """The intervals of the (n, q) columns, each of its scale; no randomness.

    Differences: estimate ± t √V. Shares and other means between 0 and 1: Wilson's with t² for z² and as many independent
    rows as would have this variance (``rows_worth``). Ranks, which begin at 1 and are skewed: t √V of log(rank − 1).
    Of differences and ranks NaN where nothing varies.
    """
    mean, variance = design.mean(columns), design.variance(columns)
    error, quantile = np.sqrt(variance), design.quantile(0.5 + level / 2)
    share, rank = (
        np.array([scale is wanted for scale in scales]) for wanted in (Scale.SHARE, Scale.RANK)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        reach = np.where(error > 0, quantile * error, np.nan)
        low, high = (
            np.where(rank, 1 + (mean - 1) * np.exp(end / (mean - 1)), mean + end)
            for end in (-reach, reach)
        )
    low[share], high[share] = wilson(
        mean[share], rows_worth(design, mean[share], variance[share]), quantile
    )
    return Interval(mean, low, high, error, (quantile + design.quantile(POWER)) * error)


def rows_worth(design: Design, share: Floats, variance: Floats) -> Floats:
    """(q,) how many independent rows a share rests on: share (1 − share) / V, at most n (Korn and Graubard 1998, Survey
    Methodology 24); G* where nothing varies, since a hit in every row is no proof that all would be."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(
            variance > 0, np.minimum(design.rows, share * (1 - share) / variance), design.effective
        )


def wilson(share: Floats, rows: Floats, quantile: float) -> tuple[Floats, Floats]:
    """(q,) ends of Wilson's interval of shares of so many rows (Wilson 1927, JASA 22)."""
    t2 = quantile**2 / rows
    middle, reach = share + t2 / 2, np.sqrt(t2 * (share * (1 - share) + t2 / 4))
    return np.maximum(0.0, (middle - reach) / (1 + t2)), np.minimum(
        1.0, (middle + reach) / (1 + t2)
    )


def sign_flips(
    designs: Sequence[Design], differences: Floats, *, flips: int = 10_000, seed: int = 0
) -> Floats:
    """(designs, q) two-sided p-values of (n, q) paired differences: for each kind of cluster its own, of these the larger.

    designs: the same rows and clusters under several weights. Were the two ways alike, any cluster's differences might have
    the other sign. p = (1 + flips at least as far from 0) / (1 + flips) (Phipson and Smyth 2010), hence never 0; of few
    clusters every combination of signs is tried and p is exact. NaN where G* is too small.
    """
    first, generator = designs[0], np.random.default_rng(seed)
    weighted = np.hstack([design.weight[:, None] * differences for design in designs])
    tested = np.isfinite([design.freedom for design in designs])[:, None]
    members = (
        sparse.csr_array((np.ones(first.rows), (kind, np.arange(first.rows))))
        for kind in first.clusters
    )
    p_values = np.max([_flipped(member @ weighted, flips, generator) for member in members], axis=0)
    return np.where(tested, p_values.reshape(len(designs), -1), np.nan)


def _flipped(sums: Floats, flips: int, generator: np.random.Generator) -> Floats:
    """(q,) p-values of the (clusters, q) sums."""
    sums = sums[np.any(sums != 0, axis=1)]
    observed = (
        np.abs(sums.sum(axis=0)) * (1 - 1e-9) - 1e-15
    )  # equal sums added in another order count as equal
    if len(sums) <= EXACT_UP_TO:
        signs = 1.0 - 2.0 * ((np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums))) & 1)
        return np.asarray((np.abs(signs @ sums) >= observed).mean(axis=0))
    extreme = np.zeros(sums.shape[1])
    for start in range(0, flips, FLIPS_AT_ONCE):
        size = min(FLIPS_AT_ONCE, flips - start)
        signs = generator.integers(0, 2, size=(size, len(sums)), dtype=np.int8) * 2.0 - 1.0
        extreme += (np.abs(signs @ sums) >= observed).sum(axis=0)
    return (1 + extreme) / (1 + flips)


def holm(p_values: Sequence[float] | Floats) -> Floats:
    """Holm's step-down adjustment of a family of p-values; NaN (no test) stays out of the family.

    The k-th smallest of m becomes the largest of p_j (m - j + 1) over j <= k, at most 1. As statsmodels' ``multipletests``,
    which collects the whole process's garbage at every call: a family of three took .2 s.
    """
    values = np.asarray(p_values, dtype=float)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]  # NaN is sorted behind
    adjusted = np.full(len(values), np.nan)
    adjusted[order] = np.minimum(
        1.0, np.maximum.accumulate(values[order] * np.arange(len(order), 0, -1))
    )
    return adjusted


def effect_size(differences: Floats) -> Floats:
    """(q,) standardised paired difference d_z = mean / standard deviation of the (n, q) row differences (Cohen 1988).

    0 where no row differs; NaN where all rows differ by the same amount.
    """
    mean = differences.mean(axis=0)
    spread = differences.std(axis=0, ddof=1) if len(differences) > 1 else np.zeros_like(mean)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0, mean / spread, np.where(mean == 0, 0.0, np.nan))


def superiority(differences: Floats) -> Floats:
    """(q,) probability that the second way is the larger on a fact, ties by half (Grissom and Kim's dependent-groups PS)."""
    return (differences > 0).mean(axis=0) + 0.5 * (differences == 0).mean(axis=0)
