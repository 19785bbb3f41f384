"""Correlations of gains in fluency with gains in retrieval: over relations, and of facts within relations.

Over relations a point is a relation (the paper's section 5.2). Within relations a point is a fact, measured from the mean of
its relation, so that what differs between relations cannot make a correlation. The partial correlation holds the gain in
sentence length (characters) fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from fluent.reporting.clusters import Floats, Integers
from fluent.reporting.intervals import CHUNK, draw_weights
from fluent.reporting.paired import holm

QUALITY, RETRIEVAL, LENGTH = "qe_delta", "r1_delta", "length_delta"
FAMILIES = ("r", "rho", "partial_r")
FEWEST = 3
"""Points below this have no correlation."""


@dataclass(frozen=True)
class _Points:
    """n points in strata (relations): values (n, 3) of quality, retrieval, length; cluster (n,) moves as one in the bootstrap."""

    values: Floats
    stratum: Integers
    cluster: Integers


def over_relations(gains: pd.DataFrame, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """A row for each (language, verbalisation) of ``gains`` (a row a relation): Pearson's r, Spearman's rho, the partial r, each
    with p, p after Holm over all rows, and a percentile bootstrap interval over relations; n relations. NaN where undefined."""
    return _by_language(gains, _relations_as_points, level, resamples, seed)


def within_relations(facts: pd.DataFrame, *, level: float = 0.95, resamples: int = 2_000, seed: int = 0) -> pd.DataFrame:
    """The same for facts (a row a fact): deviations from the relation's mean are pooled over relations, ranks (for rho) are taken
    within the relation. Degrees of freedom lose one a relation; the bootstrap moves subjects within relations."""
    return _by_language(facts, _facts_as_points, level, resamples, seed)


def _by_language(
    frame: pd.DataFrame, as_points: Callable[[pd.DataFrame], _Points], level: float, resamples: int, seed: int
) -> pd.DataFrame:
    rows = []
    for (lang, v), group in frame.groupby(["lang", "verbalisation"], sort=False):
        points = as_points(group)
        ranked = _Points(_ranks_within(points), points.stratum, points.cluster)
        row: dict[str, object] = {"lang": lang, "verbalisation": v, "n": len(group)}
        intervals = {
            "r": _interval(points, False, level, resamples, seed),
            "rho": _interval(ranked, False, level, resamples, seed),
            "partial_r": _interval(points, True, level, resamples, seed),
        }
        for name, (value, low, high, p_value) in intervals.items():
            row |= {name: value, f"{name}_low": low, f"{name}_high": high, f"{name}_p": p_value}
        rows.append(row)
    table = pd.DataFrame(rows)
    for name in FAMILIES:
        table[f"{name}_p_holm"] = holm(table[f"{name}_p"].to_numpy(dtype=float))
    return table


def _relations_as_points(group: pd.DataFrame) -> _Points:
    zeros = np.zeros(len(group), dtype=np.int64)
    return _Points(_values(group), zeros, np.arange(len(group)))


def _facts_as_points(group: pd.DataFrame) -> _Points:
    stratum = pd.factorize(group["relation"])[0].astype(np.int64)
    cluster = group.groupby(["relation", "sub_uri"], sort=False).ngroup().to_numpy().astype(np.int64)
    return _Points(_values(group), stratum, cluster)


def _values(group: pd.DataFrame) -> Floats:
    return group[[QUALITY, RETRIEVAL, LENGTH]].to_numpy(dtype=float)


def _ranks_within(points: _Points) -> Floats:
    ranked = np.empty_like(points.values)
    for stratum in np.unique(points.stratum):
        rows = points.stratum == stratum
        ranked[rows] = stats.rankdata(points.values[rows], axis=0)
    return ranked


def _interval(points: _Points, partial: bool, level: float, resamples: int, seed: int) -> tuple[float, float, float, float]:
    """(correlation, low, high, p)."""
    sums = [_stratum_sums(points, stratum) for stratum in np.unique(points.stratum)]
    whole = np.sum([_scatter(of.sum(axis=0)[None]) for of in sums], axis=0)
    value = float(_correlation(whole, partial)[0])
    freedom = len(points.values) - len(sums) - 1 - partial
    if not np.isfinite(value) or freedom < 1 or len(points.values) < FEWEST:
        return np.nan, np.nan, np.nan, np.nan
    generator = np.random.default_rng(seed)
    drawn = []
    for start in range(0, resamples, CHUNK):
        size = min(CHUNK, resamples - start)
        drawn.append(_correlation(np.sum([_scatter(draw_weights(len(of), size, generator) @ of) for of in sums], axis=0), partial))
    tail = (1 - level) / 2
    low, high = np.nanquantile(np.concatenate(drawn), [tail, 1 - tail])
    return value, float(low), float(high), _p_value(value, freedom)


def _p_value(value: float, freedom: int) -> float:
    """Two-sided p of a (partial) correlation by Student's t."""
    if abs(value) >= 1:
        return 0.0
    return float(2 * stats.t.sf(abs(value) * np.sqrt(freedom / (1 - value**2)), freedom))


_PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def _stratum_sums(points: _Points, stratum: int) -> Floats:
    """(clusters, 10): rows, sums of the three values, sums of their products, for each cluster of the stratum."""
    rows = points.stratum == stratum
    values = points.values[rows] - points.values[rows].mean(axis=0)  # centred first: products of large ranks would cancel
    columns = np.column_stack([np.ones(len(values)), values, *(values[:, i] * values[:, j] for i, j in _PAIRS)])
    place = np.unique(points.cluster[rows], return_inverse=True)[1]
    sums = np.zeros((place.max() + 1, columns.shape[1]))
    np.add.at(sums, place, columns)
    return sums


def _scatter(sums: Floats) -> Floats:
    """(b, 6) sums of products of deviations from the stratum's mean, from (b, 10) sums."""
    rows, means = sums[:, :1], sums[:, 1:4] / sums[:, :1]
    return sums[:, 4:] - rows * np.column_stack([means[:, i] * means[:, j] for i, j in _PAIRS])


def _correlation(scatter: Floats, partial: bool) -> Floats:
    """(b,) the correlation of quality and retrieval, length held fixed or not; NaN where one of them does not vary."""
    xx, xy, xz, yy, yz, zz = scatter.T
    xx, yy, zz = (np.where(one > 1e-12 * max(float(one.max()), 1e-300), one, np.nan) for one in (xx, yy, zz))
    with np.errstate(invalid="ignore", divide="ignore"):
        if not partial:
            return np.clip(xy / np.sqrt(xx * yy), -1, 1)
        top = xy - xz * yz / zz
        return np.clip(top / np.sqrt((xx - xz**2 / zz) * (yy - yz**2 / zz)), -1, 1)


def readable(table: pd.DataFrame, digits: int = 3) -> Sequence[Sequence[str]]:
    """The table for a terminal: language, verbalisation, n, and for each family ``value [low, high] p (Holm)``."""
    rows = []
    for record in table.to_dict("records"):
        cells = [str(record["lang"]), str(record["verbalisation"]), str(record["n"])]
        for name in FAMILIES:
            value, low, high, p_value = (float(record[f"{name}{part}"]) for part in ("", "_low", "_high", "_p_holm"))
            cells.append("--" if np.isnan(value) else f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}] p={p_value:.{digits}f}")
        rows.append(cells)
    return rows
