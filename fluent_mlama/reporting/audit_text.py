"""Audit of the sentences and of the scores' precision: what stands in the cells of a dump."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fluent_mlama.records.benchmark import ERROR
from fluent_mlama.reporting.audit_ranks import finding
from fluent_mlama.reporting.findings import Finding
from fluent_mlama.reporting.loading import RankTable
from fluent_mlama.reporting.tails import has_words, tails

_LEAKED_KEY = re.compile(
    r"\s*(source sentence|sentence|subject|object|subject translation|object translation|translation)\s*:",
    re.IGNORECASE,
)


def error_cells(table: RankTable) -> Iterator[Finding]:
    """Rows with the marker ERROR for a prompt or an object."""
    marked = [
        (v, (table.prompts(v) == ERROR) | (table.objects(v) == ERROR)) for v in table.verbalisations
    ]
    yield _by_verbalisation("error-cells", table, marked)


def leaked_prefixes(table: RankTable) -> Iterator[Finding]:
    """Sentences that begin with a key of the translator's request, or run over several lines."""
    marked = []
    for v in table.verbalisations:
        if v != "template":
            sentences = table.facts[f"{v}_translation"]
            marked.append(
                (
                    v,
                    sentences.map(
                        lambda text: bool(_LEAKED_KEY.match(text)) or "\n" in text.strip()
                    ),
                )
            )
    yield _by_verbalisation("leaked-prefix", table, marked)


def objects_not_final(table: RankTable) -> Iterator[Finding]:
    """Sentences with words after the object. The corrected protocol scores them, so there it is no finding."""
    if table.protocol == "paper":
        yield _by_verbalisation(
            "not-final", table, [(v, tails(table, v).map(has_words)) for v in table.verbalisations]
        )


def stray_blanks(table: RankTable) -> Iterator[Finding]:
    """Prompts that begin with white space or hold nothing else. The corrected protocol trims them, so there it is no finding."""
    if table.protocol == "paper":
        marked = [
            (v, table.prompts(v).map(lambda text: text[:1].isspace())) for v in table.verbalisations
        ]
        yield _by_verbalisation("stray-blanks", table, marked)


def minus_infinity(table: RankTable) -> Iterator[Finding]:
    """Prompts whose log-probability is -inf."""
    marked = [
        (v, pd.Series(np.isneginf(table.prompt_prob[v].to_numpy()), index=table.facts.index))
        for v in table.verbalisations
    ]
    yield _by_verbalisation("minus-infinity", table, marked)


def half_precision(table: RankTable) -> Iterator[Finding]:
    """Whether every finite log-probability is a number of half precision: no accident where there are more than a few."""
    values = table.prompt_prob.to_numpy().ravel()
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        exact = int((finite.astype(np.float16).astype(float) == finite).sum())
    in_half = len(finite) >= 10 and exact == len(finite)
    yield finding("half-precision", table, of=len(finite), count=exact if in_half else 0)


def recorded_ties(table: RankTable) -> Iterator[Finding]:
    """Facts whose entity shares its score with another one (corrected dumps record it)."""
    if table.tied is not None:
        yield _by_verbalisation("ties", table, [(v, table.tied[v]) for v in table.verbalisations])


def missing_row_numbers(table: RankTable) -> Iterator[Finding]:
    """Whether the file has no index column."""
    yield finding("no-row-numbers", table, of=len(table), count=0 if table.numbered else len(table))


def _by_verbalisation(check: str, table: RankTable, marked: list[tuple[str, pd.Series]]) -> Finding:
    """One finding on (fact, verbalisation) cells, its detail the count in each verbalisation."""
    detail = ", ".join(f"{v} {int(cells.sum())}" for v, cells in marked if cells.any())
    rows = [row for _, cells in marked for row in table.facts.index[cells.to_numpy(dtype=bool)]]
    return finding(
        check, table, sorted(set(rows)), len(table) * len(marked), detail, count=len(rows)
    )
