"""Which rows belong together: the one place that says so, for intervals and tests alike.

A row is one fact in one language. Rows that share a subject are not independent, nor are a fact's rows in
several languages; both the bootstrap (``intervals``) and the permutation test (``paired``) therefore move whole
clusters. Relations are fixed: they are the benchmark's choice, not a sample, so clusters are resampled within
each. Where each cluster holds one row, all of this is the plain paired analysis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fluent.console import UserError
from fluent.reporting.loading import RankTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

AVERAGES = ("micro", "macro")
KEYS = ("language", "relation", "sub_uri", "obj_uri")


@dataclass(frozen=True)
class Design:
    """The cluster structure of a table of n rows.

    cluster: (n,) which of m clusters the row is in.
    stratum: (m,) which relation the cluster is in.
    cell: (n,) which (language, relation) the row is in.
    cell_share: (cells,) weight of the cell in a macro average: languages weigh the same, and within a language
        its relations do (the paper's average, for one language). Sums to 1.
    cell_stratum: (cells,) the relation of the cell.
    pooled: whether the rows are of several languages.
    """

    cluster: Integers
    stratum: Integers
    cell: Integers
    cell_share: Floats
    cell_stratum: Integers
    pooled: bool

    @property
    def rows(self) -> int:
        return len(self.cluster)

    @cached_property
    def cell_sizes(self) -> Floats:
        """(cells,) rows in each cell."""
        return np.bincount(self.cell, minlength=len(self.cell_share)).astype(float)

    def weights(self, average: str) -> Floats:
        """(n,) weight of each row in the ``micro`` (rows alike) or ``macro`` (cells by their share) average; sums to 1."""
        if average == "micro":
            return np.full(self.rows, 1.0 / self.rows)
        return (self.cell_share / self.cell_sizes)[self.cell]

    def averages(self, columns: Floats, average: str) -> Floats:
        """(q,) the average of each of the (n, q) columns."""
        return self.weights(average) @ columns

    def centred(self, columns: Floats, average: str) -> Floats:
        """(n, q) each row's pull on the average (its linearisation): weight × (value − the mean it is averaged into)."""
        if average == "micro":
            means = np.broadcast_to(columns.mean(axis=0), columns.shape)
        else:
            means = (self.sum_by(columns, self.cell, len(self.cell_share)) / self.cell_sizes[:, None])[self.cell]
        return self.weights(average)[:, None] * (columns - means)

    def cluster_sums(self, columns: Floats) -> Floats:
        """(m, q) sums over the rows of each cluster."""
        return self.sum_by(columns, self.cluster, len(self.stratum))

    @staticmethod
    def sum_by(columns: Floats, group: Integers, groups: int) -> Floats:
        """(groups, q) sums of the (n, q) columns over rows of the same group."""
        if len(group) == groups and np.array_equal(group, np.arange(groups)):  # a row a group: the usual case
            return columns
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(groups))
        return np.add.reduceat(columns[order], starts, axis=0)


def find_design(table: pd.DataFrame) -> Design:
    """The clusters of a table with the columns ``language``, ``relation``, ``sub_uri``, ``obj_uri``.

    One language: a cluster is a subject within a relation (a subject with two objects moves as one). Several
    languages: a cluster is a fact (sub_uri, relation, obj_uri) with its rows in all of them.
    Raises UserError where there is no row or a fact stands twice in one language.
    """
    if table.empty:
        raise UserError("no fact is left to compare: choose other languages, relations or dumps")
    require_single_facts(table)
    pooled = table["language"].nunique() > 1
    unit = ["relation", "sub_uri", "obj_uri"] if pooled else ["relation", "sub_uri"]
    cluster: Integers = table.groupby(unit, sort=False).ngroup().to_numpy().astype(np.int64)
    relation = pd.factorize(table["relation"])[0].astype(np.int64)
    cell: Integers = table.groupby(["language", "relation"], sort=False).ngroup().to_numpy().astype(np.int64)
    first_row_of_cell = np.unique(cell, return_index=True)[1]
    language = table["language"].to_numpy()[first_row_of_cell]
    relations_of = {name: int(count) for name, count in zip(*np.unique(language, return_counts=True), strict=True)}
    share = np.array([1.0 / (len(relations_of) * relations_of[name]) for name in language])
    first_row_of_cluster = np.unique(cluster, return_index=True)[1]
    return Design(cluster, relation[first_row_of_cluster], cell, share, relation[first_row_of_cell], pooled)


def fact_ranks(tables: Iterable[RankTable], prefix: str = "", *, own_form: bool = False) -> pd.DataFrame:
    """One row a fact: ``language``, ``relation``, ``sub_uri``, ``obj_uri`` and a column of best ranks per verbalisation.

    prefix goes before the verbalisation's name where several folders stand side by side. own_form: ranks by the form that
    the verbalisation itself uses, NaN where it has none (protocol corrected; ``UserError`` in other dumps).
    """
    parts = []
    for table in tables:
        ranks = table.own_rank if own_form else table.rank
        if ranks is None:
            raise UserError(f"{table.name} follows the {table.protocol} protocol, which has no own-form ranks; leave --own-form out")
        keys = {"language": table.lang, "relation": table.relation, "sub_uri": table.facts["sub_uri"], "obj_uri": table.facts["obj_uri"]}
        parts.append(pd.DataFrame(keys | {prefix + v: ranks[v] for v in table.verbalisations}, index=table.facts.index))
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
