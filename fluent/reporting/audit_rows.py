"""Audit of distractors and rows: who competed, and which facts should not have been there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pandas as pd

from fluent.records.benchmark import ERROR, Benchmark, find_benchmarks, read_benchmark
from fluent.records.few_shot import few_shot_name, read_few_shot
from fluent.records.leakage import find_leakage
from fluent.records.source import Source
from fluent.reporting.audit_ranks import finding
from fluent.reporting.distractors import POOL_SIZE, correct_and_excluded, distractor_counts, pool
from fluent.reporting.findings import Finding
from fluent.reporting.loading import RankTable

FEW = 10
"""Fewer distractors than this are too few (protocol corrected, 7)."""


def distractors(table: RankTable) -> Iterator[Finding]:
    """Who stood among the distractors of the paper's fixed sample: English labels, forms of the right entity, other right answers.

    The corrected protocol has none of them by construction.
    """
    if table.protocol != "paper":
        return
    order = sorted(pool(table), key=lambda form: hashlib.sha256(form.encode("utf-8")).digest())
    english = set(table.facts["en_obj_label"]) - {""}
    first = order[:POOL_SIZE]
    yield finding("english-distractors", table, of=len(first), count=sum(form in english for form in first), detail="of the first in order")
    excluded = correct_and_excluded(table)
    located: dict[str, set[str]] = {}
    named: dict[str, set[str]] = {}
    objects_of: dict[str, set[str]] = {}
    objects = zip(*(table.objects(v) for v in table.verbalisations), strict=True)
    for subject, entity, forms, taken in zip(table.facts["sub_uri"], table.facts["obj_uri"], objects, excluded, strict=True):
        located.setdefault(entity, set()).update(form for form in forms if form)
        named.setdefault(entity, set()).update(taken)
        objects_of.setdefault(subject, set()).add(entity)
    own, true = [], []
    for row, subject, entity, taken in zip(table.facts.index, table.facts["sub_uri"], table.facts["obj_uri"], excluded, strict=True):
        drawn = set([form for form in order[: POOL_SIZE + len(taken)] if form not in taken][:POOL_SIZE])
        if drawn & located[entity]:
            own.append(row)
        if any(drawn & named[other] for other in objects_of[subject] - {entity}):
            true.append(row)
    yield finding("own-forms", table, own, len(table))
    yield finding("also-true", table, true, len(table))


def few_distractors(table: RankTable) -> Iterator[Finding]:
    """Facts with fewer than ten distractors, and relations that do not fill the pool."""
    counts = distractor_counts(table)
    low, high = int(counts.min()), int(counts.max())
    detail = str(low) if low == high else f"{low} to {high}"
    yield finding("few-distractors", table, table.facts.index[(counts < FEW).to_numpy()], len(table), detail)
    if table.protocol == "paper":
        yield finding("small-pool", table, table.facts.index[(counts < POOL_SIZE).to_numpy()], len(table), detail)


def against_benchmark(table: RankTable, benchmark: Benchmark) -> Iterator[Finding]:
    """The dump's facts against those that the paper's rule keeps (fluent_mlama 1.4); in a corrected dump only strangers are told.

    Rows that lack because an object cell is empty are named as such: three published files dropped them.
    """
    keys = (benchmark.table["sub_uri"] + "|" + table.relation + "|" + benchmark.table["obj_uri"]).to_numpy()
    row_of = dict(zip(keys, benchmark.table.index, strict=True))
    here = set(table.fact_keys())
    if table.protocol == "paper":
        kept, empty = _kept_rows(benchmark, table)
    else:
        kept, empty = pd.Series(True, index=benchmark.table.index), pd.Series(False, index=benchmark.table.index)
    wanted = {key for key, keep in zip(keys, kept, strict=True) if keep}
    hollow = {key for key, is_empty in zip(keys, empty, strict=True) if is_empty}
    extra = sorted(row_of.get(key, -1) for key in here - wanted)
    lacking = sorted(row_of[key] for key in wanted - here - hollow) if table.protocol == "paper" else []
    dropped = sorted(row_of[key] for key in (wanted & hollow) - here) if table.protocol == "paper" else []
    parts = [("holds excluded rows", extra), ("lacks rows", lacking), ("left out rows with an empty object", dropped)]
    detail = "; ".join(f"{what} {' '.join(map(str, rows))}" for what, rows in parts if rows)
    yield finding("rows-differ", table, [*extra, *lacking, *dropped], len(wanted), detail)


def _kept_rows(benchmark: Benchmark, table: RankTable) -> tuple[pd.Series, pd.Series]:
    """(rows that the published dumps' rule keeps, those of them with an empty object cell)."""
    kept = pd.Series(True, index=benchmark.table.index)
    empty = pd.Series(False, index=benchmark.table.index)
    for v in table.verbalisations:
        if v != "template":
            columns = benchmark.columns(v)
            kept &= (benchmark.table[columns.object] != ERROR) & (benchmark.table[columns.prompt] != "")
            empty |= benchmark.table[columns.object] == ""
    return kept, kept & empty


def few_shot(table: RankTable, benchmark: Benchmark, few_shots: Source) -> Iterator[Finding]:
    """Ranked facts that are among the translator's examples (every verbalisation but template and gt is asked)."""
    if few_shot_name(table.lang, table.relation) not in few_shots.names():
        return
    shots = read_few_shot(few_shots, table.lang, table.relation)
    keys = benchmark.table["sub_uri"] + "|" + table.relation + "|" + benchmark.table["obj_uri"]
    ranked = benchmark.table.index[keys.isin(set(table.fact_keys())).to_numpy()]
    for v in table.verbalisations:
        if v not in ("template", "gt"):
            leakage = find_leakage(benchmark, shots, ranked, v)
            copied = len(set(leakage.verbatim) & set(leakage.kept))
            yield finding("few-shot", table, leakage.kept, len(table), f"{v}: {copied} come back word for word" if leakage.kept else "")


def benchmark_of(table: RankTable, benchmarks: Source) -> Benchmark | None:
    """The benchmark file of this dump: the one file of its language and relation that has all its verbalisations."""
    for lang, relation, spec, _ in find_benchmarks(benchmarks):
        if (lang, relation) == (table.lang, table.relation):
            benchmark = read_benchmark(benchmarks, lang, relation, spec)
            if set(table.verbalisations) <= set(benchmark.verbalisations):
                return benchmark
    return None
