"""Bootstrap intervals for averages over clustered rows.

Relations are fixed and clusters are resampled within each. The interval is the symmetric studentised bootstrap
(Hall 1988, "On symmetric bootstrap confidence intervals", JRSS B 50): estimate ± the 95 % point of |t*| times the
standard error, where t* is a resample's distance from the estimate in its own standard errors. Percentile intervals
fell short of 95 % at 40 facts (to .89 for a difference of mean ranks, which have a long tail); how often this one covers stands in
``benchmarks/RESULTS-simulations.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fluent.reporting.clusters import AVERAGES, Design, Floats

CHUNK = 1000
PRIOR_CLUSTERS = 4
"""Where few clusters differ at all, some resamples hold none that does and their standard error is 0. The variance
of estimate and resample alike is therefore taken as if this many more clusters of average spread had been seen; the
interval of a benchmark with hundreds of clusters does not feel it."""


@dataclass(frozen=True)
class Interval:
    """(q,) estimates with their interval and standard error; NaN ends where nothing in the data varies."""

    estimate: Floats
    low: Floats
    high: Floats
    error: Floats


@dataclass(frozen=True)
class _Stratum:
    """One relation: what a resample of its clusters is made of.

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
    def correction(self) -> float:
        """m / (m − 1); a single cluster says nothing of its spread and adds none."""
        return self.clusters / max(self.clusters - 1, 1)


def draw_weights(clusters: int, resamples: int, generator: np.random.Generator) -> Floats:
    """(resamples, clusters) how often each of a relation's clusters is drawn; each row sums to ``clusters``."""
    drawn = generator.integers(0, clusters, size=(resamples, clusters))
    drawn += np.arange(resamples)[:, None] * clusters
    return np.bincount(drawn.ravel(), minlength=resamples * clusters).reshape(resamples, clusters).astype(float)


def bootstrap(design: Design, columns: Floats, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0) -> dict[str, Interval]:
    """Per average (``micro``, ``macro``) the intervals of the (n, q) columns; equal seeds give equal ends.

    A cell that a resample happens to miss keeps its observed mean in the macro average.
    """
    generator = np.random.default_rng(seed)
    strata = [_stratum(design, columns, stratum) for stratum in np.unique(design.stratum)]
    estimate = {average: design.averages(columns, average) for average in AVERAGES}
    variance = {average: np.sum([s.correction * (s.pulls[average] ** 2).sum(axis=0) for s in strata], axis=0) for average in AVERAGES}
    for spread_out in variance.values():  # what is left of rounding is no variance
        spread_out[np.sqrt(spread_out) <= 1e-12 * np.abs(columns).max(axis=0)] = 0.0
    prior = PRIOR_CLUSTERS / len(design.stratum)
    distance = {average: np.empty((resamples, columns.shape[1])) for average in AVERAGES}
    for start in range(0, resamples, CHUNK):
        size = min(CHUNK, resamples - start)
        drawn, spread = _draw(strata, size, columns.shape[1], generator)
        for average in AVERAGES:
            error = np.sqrt(spread[average] + prior * variance[average])
            with np.errstate(invalid="ignore", divide="ignore"):
                distance[average][start : start + size] = np.abs(drawn[average] - estimate[average]) / error
    found = {}
    for average in AVERAGES:
        error = np.sqrt(variance[average])
        distance[average][:, error == 0] = np.nan
        reach = np.quantile(distance[average], level, axis=0) * error * np.sqrt(1 + prior)
        found[average] = Interval(estimate[average], estimate[average] - reach, estimate[average] + reach, error)
    return found


def _draw(strata: list[_Stratum], size: int, q: int, generator: np.random.Generator) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Per average the (size, q) averages of ``size`` resamples, and their variances by the same linearisation."""
    total, macro = np.zeros((size, q + 1)), np.zeros((size, q))
    spread = {average: np.zeros((size, q)) for average in AVERAGES}
    for stratum in strata:
        weights = draw_weights(stratum.clusters, size, generator)
        _, cells, width = stratum.sums.shape
        sums = (weights @ stratum.sums.reshape(stratum.clusters, -1)).reshape(size, cells, width)
        total += sums.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(sums[:, :, -1:] > 0, sums[:, :, :-1] / sums[:, :, -1:], stratum.observed)
        macro += np.einsum("c,bcq->bq", stratum.share, means)
        for average, pulls in stratum.pulls.items():
            squares = weights @ pulls**2 - (weights @ pulls) ** 2 / stratum.clusters
            spread[average] += stratum.correction * np.maximum(squares, 0.0)
    return {"micro": total[:, :-1] / total[:, -1:], "macro": macro}, spread


def _stratum(design: Design, columns: Floats, stratum: int) -> _Stratum:
    clusters = np.flatnonzero(design.stratum == stratum)
    cells = np.flatnonzero(design.cell_stratum == stratum)
    rows = np.flatnonzero(np.isin(design.cell, cells))
    place = (np.searchsorted(clusters, design.cluster[rows]), np.searchsorted(cells, design.cell[rows]))
    sums = np.zeros((len(clusters), len(cells), columns.shape[1] + 1))
    np.add.at(sums, place, np.column_stack([columns[rows], np.ones(len(rows))]))
    whole = sums.sum(axis=0)
    pulls = {}
    for average in AVERAGES:
        own = design.cluster_sums(design.centred(columns, average))[clusters]
        pulls[average] = own - own.mean(axis=0)
    return _Stratum(sums, design.cell_share[cells], whole[:, :-1] / whole[:, -1:], pulls)
