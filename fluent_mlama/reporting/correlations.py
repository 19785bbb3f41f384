"""Correlations of gains in fluency with gains in retrieval: over relations, and of facts within relations.

Over relations a point is a relation (the paper's section 5.2). Within relations a point is a fact, measured from the mean of
its relation, so that what differs between relations cannot make a correlation. The partial correlation holds the gain in
sentence length (characters) fixed.

Intervals are symmetric in Fisher's z: its standard error is ``inference``'s, over relations or over objects and subjects, of
each point's influence on the correlation. Of facts p comes from the same standard error; facts of one object are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd
from scipy import stats

from fluent_mlama.reporting.inference import Design, Floats, design_of, holm

QUALITY, RETRIEVAL, LENGTH = "qe_delta", "r1_delta", "length_delta"
FAMILIES = ("r", "rho", "partial_r")
FEWEST = 3
"""Points below this have no correlation."""
EXACT_UP_TO = 7
"""Up to so many points in one stratum rho's p comes from all orders: Student's t would give a perfect order of three a p of 0."""


@dataclass(frozen=True)
class _Points:
    """n points: values (n, 3) of quality, retrieval, length, and their strata (relations) and clusters."""

    values: Floats
    design: Design


def over_relations(gains: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """A row for each (language, verbalisation) of ``gains`` (a row a relation): Pearson's r, Spearman's rho, the partial r, each
    with p, p after Holm over all rows, and an interval over relations; n relations. NaN where undefined."""
    return _by_language(gains, [], ["relation"], level)


def within_relations(facts: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """The same for facts (a row a fact): deviations from the relation's mean are pooled over relations, ranks (for rho) are taken
    within the relation."""
    return _by_language(facts, ["relation"], ["obj_uri", "sub_uri"], level)


def _by_language(
    frame: pd.DataFrame, strata: Sequence[str], clusters: Sequence[str], level: float
) -> pd.DataFrame:
    rows = []
    for (lang, v), group in frame.groupby(["lang", "verbalisation"], sort=False):
        values = group[[QUALITY, RETRIEVAL, LENGTH]].to_numpy(dtype=float)
        points = _Points(values, design_of(group, strata, clusters, "fact"))
        ranked = _Points(_ranks_within(points), points.design)
        row: dict[str, object] = {"lang": lang, "verbalisation": v, "n": len(group)}
        intervals = {
            "r": _interval(points, False, level),
            "rho": _interval(ranked, False, level),
            "partial_r": _interval(points, True, level),
        }
        if np.isfinite(intervals["rho"][0]) and len(group) <= EXACT_UP_TO and not strata:
            intervals["rho"] = (
                *intervals["rho"][:3],
                _exact_p(ranked.values[:, 0], ranked.values[:, 1]),
            )
        for name, (value, low, high, p_value) in intervals.items():
            row |= {name: value, f"{name}_low": low, f"{name}_high": high, f"{name}_p": p_value}
        rows.append(row)
    table = pd.DataFrame(rows)
    for name in FAMILIES:
        table[f"{name}_p_holm"] = holm(table[f"{name}_p"].to_numpy(dtype=float))
    return table


def _ranks_within(points: _Points) -> Floats:
    ranked = np.empty_like(points.values)
    for stratum in np.unique(points.design.stratum):
        rows = points.design.stratum == stratum
        ranked[rows] = stats.rankdata(points.values[rows], axis=0)
    return ranked


def _interval(points: _Points, partial: bool, level: float) -> tuple[float, float, float, float]:
    """(correlation, low, high, p); the interval is symmetric in Fisher's z, and no shorter than of independent normal points."""
    design = points.design
    strata = len(design.stratum_weights)
    freedom = design.rows - strata - 1 - partial
    if freedom < 1 or design.rows < FEWEST:
        return np.nan, np.nan, np.nan, np.nan
    value, influence = _estimate(points, partial)
    if not np.isfinite(value):
        return np.nan, np.nan, np.nan, np.nan
    error = float(np.sqrt(design.variance(design.rows * influence[:, None])[0])) / (1 - value**2)
    of_facts = len(design.clusters) == 2
    of_error = design.freedom if of_facts else float(freedom)
    of_normal = stats.norm.ppf(0.5 + level / 2) / np.sqrt(freedom - 1) if freedom > 1 else np.inf
    reach = max(stats.t.ppf(0.5 + level / 2, of_error) * error, of_normal)
    low, high = np.tanh(np.arctanh(value) + np.array([-reach, reach]))
    p_value = (
        2 * float(stats.t.sf(abs(np.arctanh(value)) / error, of_error))
        if of_facts
        else _p_value(value, freedom)
    )
    return value, float(low), float(high), p_value


def _p_value(value: float, freedom: int) -> float:
    """Two-sided p of a (partial) correlation by Student's t."""
    if abs(value) >= 1:
        return 0.0
    return float(2 * stats.t.sf(abs(value) * np.sqrt(freedom / (1 - value**2)), freedom))


def _exact_p(x: Floats, y: Floats) -> float:
    """Two-sided p of the correlation of ranks: the share of all orders of y with one at least as far from 0."""
    orders = np.array(list(permutations(y - y.mean())))
    drawn = np.abs(orders @ (x - x.mean()))
    return float(np.mean(drawn >= drawn[0] * (1 - 1e-12)))


def _estimate(points: _Points, partial: bool) -> tuple[float, Floats]:
    """The correlation of quality and retrieval within strata, length held fixed or not, and each point's influence on it, (n,):
    xy − r (x² + y²) / 2 of the standardised sides. NaN where one side does not vary."""
    x, y, z = points.design.residuals(points.values).T
    scale = np.abs(points.values).max(axis=0)
    if partial and _varies(z, scale[2]):
        x, y = (side - z * (side @ z) / (z @ z) for side in (x, y))
    elif partial:
        return np.nan, z
    if not (_varies(x, scale[0]) and _varies(y, scale[1])):
        return np.nan, z
    x, y = x / np.sqrt(x @ x), y / np.sqrt(y @ y)
    r = float(np.clip(x @ y, -1, 1)) * (1 - 1e-12)
    return r, x * y - r / 2 * (x * x + y * y)


def _varies(left: Floats, scale: float) -> bool:
    """Whether more is left than rounding."""
    return bool(left @ left > 1e-20 * max(scale**2, 1e-300) * len(left))


def readable(table: pd.DataFrame, digits: int = 3) -> Sequence[Sequence[str]]:
    """The table for a terminal: language, verbalisation, n, and for each family ``value [low, high] p (Holm)``."""
    rows = []
    for record in table.to_dict("records"):
        cells = [str(record["lang"]), str(record["verbalisation"]), str(record["n"])]
        for name in FAMILIES:
            value, low, high, p_value = (
                float(record[f"{name}{part}"]) for part in ("", "_low", "_high", "_p_holm")
            )
            cells.append(
                "--"
                if np.isnan(value)
                else f"{value:z.{digits}f} [{low:z.{digits}f}, {high:z.{digits}f}] p={p_value:z.{digits}f}"
            )
        rows.append(cells)
    return rows
