"""Bootstrap intervals for averages over clustered rows.

Relations are fixed and clusters are resampled within each. The interval is the symmetric studentised bootstrap
(Hall 1988, "On symmetric bootstrap confidence intervals", JRSS B 50): estimate ± the 95 % point of |t*| times the
standard error, where t* is a resample's distance from the estimate in its own standard errors. Percentile intervals
fell short of 95 % at 40 facts (to .89 for a difference of mean ranks, which have a long tail); how often this one covers stands in
``benchmarks/RESULTS-simulations-bootstrap.md``. It stands beside the intervals of ``closed_form``, which hold better there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fluent.reporting.clusters import AVERAGES, Design, Floats
from fluent.reporting.strata import PRIOR_CLUSTERS, Stratum, split, variances

CHUNK = 1000


@dataclass(frozen=True)
class Interval:
    """(q,) estimates with their interval and standard error; NaN ends where nothing in the data varies."""

    estimate: Floats
    low: Floats
    high: Floats
    error: Floats


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
    strata = split(design, columns)
    estimate = {average: design.averages(columns, average) for average in AVERAGES}
    spread_out = {average: variances(strata, average).sum(axis=0) for average in AVERAGES}
    prior = PRIOR_CLUSTERS / len(design.stratum)
    distance = {average: np.empty((resamples, columns.shape[1])) for average in AVERAGES}
    for start in range(0, resamples, CHUNK):
        size = min(CHUNK, resamples - start)
        drawn, spread = _draw(strata, size, columns.shape[1], generator)
        for average in AVERAGES:  # estimate and resample alike, see PRIOR_CLUSTERS
            error = np.sqrt(spread[average] + prior * spread_out[average])
            with np.errstate(invalid="ignore", divide="ignore"):
                distance[average][start : start + size] = np.abs(drawn[average] - estimate[average]) / error
    found = {}
    for average in AVERAGES:
        error = np.sqrt(spread_out[average])
        distance[average][:, error == 0] = np.nan
        reach = np.quantile(distance[average], level, axis=0) * error * np.sqrt(1 + prior)
        found[average] = Interval(estimate[average], estimate[average] - reach, estimate[average] + reach, error)
    return found


def _draw(strata: list[Stratum], size: int, q: int, generator: np.random.Generator) -> tuple[dict[str, Floats], dict[str, Floats]]:
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
