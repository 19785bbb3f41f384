"""The relations of a table as strata: what each adds to an average, to its variance and to its skewness.

Relations are fixed and clusters are the units within each (``clusters``); both kinds of interval (``closed_form``,
``intervals``) stand on these sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fluent.reporting.clusters import AVERAGES, Design, Floats, Integers

PRIOR_CLUSTERS = 4
"""Where few clusters differ at all, some relations and resamples show no spread and would count as certain. Their variance
is taken as if this many more clusters of average spread had been seen; hundreds of clusters do not feel it."""


@dataclass(frozen=True)
class Stratum:
    """One relation.

    sums: (clusters, cells, q + 1) sums over the rows of each cluster and cell, the row count last.
    share: (cells,) weights in the macro average. observed: (cells, q) means of the data itself.
    pulls: per average the (clusters, q) linearised contributions, centred within the relation.
    """

    sums: Floats
    share: Floats
    observed: Floats
    pulls: dict[str, Floats]

    @property
    def clusters(self) -> int:
        return len(self.sums)

    @property
    def rows(self) -> int:
        return int(self.sums[:, :, -1].sum())

    @property
    def correction(self) -> float:
        """m / (m − 1); a single cluster says nothing of its spread and adds none."""
        return self.clusters / max(self.clusters - 1, 1)


def split(design: Design, columns: Floats) -> list[Stratum]:
    """The relations of the (n, q) columns, in the design's order."""
    strata = int(design.stratum.max()) + 1
    clusters, cells, rows = (_members(of, strata) for of in (design.stratum, design.cell_stratum, design.stratum[design.cluster]))
    pulls = {average: design.cluster_sums(design.centred(columns, average)) for average in AVERAGES}
    return [_stratum(design, columns, pulls, *places) for places in zip(clusters, cells, rows, strict=True)]


def shares(strata: Sequence[Stratum], average: str) -> Floats:
    """(relations,) what each relation weighs in the average; sums to 1."""
    weights = np.array([stratum.rows if average == "micro" else stratum.share.sum() for stratum in strata], dtype=float)
    return weights / weights.sum()


def variances(strata: Sequence[Stratum], average: str) -> Floats:
    """(relations, q) what each relation adds to the variance of the average; what is left of rounding is 0."""
    found = np.array([stratum.correction * (stratum.pulls[average] ** 2).sum(axis=0) for stratum in strata])
    size = np.max([np.abs(stratum.observed).max(axis=0) for stratum in strata], axis=0)
    found[np.sqrt(found) <= 1e-12 * size] = 0.0
    return found


def steadied(strata: Sequence[Stratum], average: str, prior: int = PRIOR_CLUSTERS) -> Floats:
    """(relations, q) ``variances`` with each relation's spread taken as if ``prior`` more clusters of average spread were there.

    Average spread: the clusters' variance pooled over the relations, each by its m − 1. One relation keeps its own.
    """
    clusters = np.array([stratum.clusters for stratum in strata], dtype=float)[:, None]
    scale = shares(strata, average)[:, None] ** 2 / clusters
    spread, freedom = variances(strata, average) / scale, clusters - 1
    pooled = (freedom * spread).sum(axis=0) / max(freedom.sum(), 1.0)
    return scale * (freedom * spread + prior * pooled) / (freedom + prior)


def third_moment(strata: Sequence[Stratum], average: str) -> Floats:
    """(q,) the unbiased third central moment of the average: within each relation m² / ((m − 1)(m − 2)) Σ pull³.

    A relation with fewer than three clusters shows no skewness and adds none.
    """
    total = np.zeros(strata[0].observed.shape[1])
    for stratum in strata:
        m = stratum.clusters
        if m > 2:
            total += m**2 / ((m - 1) * (m - 2)) * (stratum.pulls[average] ** 3).sum(axis=0)
    return total


def third_moment_noise(strata: Sequence[Stratum], average: str) -> Floats:
    """(q,) sampling variance of ``third_moment``: Σ (pull³ − 3 s² pull)², s² the mean squared pull of the relation.

    The term in brackets is the influence of a cluster on a third central moment.
    """
    total = np.zeros(strata[0].observed.shape[1])
    for stratum in strata:
        pulls = stratum.pulls[average]
        total += ((pulls**3 - 3 * (pulls**2).mean(axis=0) * pulls) ** 2).sum(axis=0)
    return total


def fourth_cumulant(strata: Sequence[Stratum], average: str) -> Floats:
    """(q,) fourth cumulant of the average, by the moments of each relation's m pulls: Σ pull⁴ − 3 (Σ pull²)² / m."""
    total = np.zeros(strata[0].observed.shape[1])
    for stratum in strata:
        squares = stratum.pulls[average] ** 2
        total += (squares**2).sum(axis=0) - 3 * squares.sum(axis=0) ** 2 / stratum.clusters
    return total


def _members(group: Integers, groups: int) -> list[Integers]:
    """Where each group's members stand, in order. One pass for all groups: with many relations a pass for each takes quadratic time."""
    order = np.argsort(group, kind="stable")
    return np.split(order, np.searchsorted(group[order], np.arange(1, groups)))


def _stratum(design: Design, columns: Floats, pulls: Mapping[str, Floats], clusters: Integers, cells: Integers, rows: Integers) -> Stratum:
    place = (np.searchsorted(clusters, design.cluster[rows]), np.searchsorted(cells, design.cell[rows]))
    sums = np.zeros((len(clusters), len(cells), columns.shape[1] + 1))
    np.add.at(sums, place, np.column_stack([columns[rows], np.ones(len(rows))]))
    whole = sums.sum(axis=0)
    own = {average: every[clusters] - every[clusters].mean(axis=0) for average, every in pulls.items()}
    return Stratum(sums, design.cell_share[cells], whole[:, :-1] / whole[:, -1:], own)
