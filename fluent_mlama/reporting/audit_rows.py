"""Audit of distractors and rows: who competed, and which facts should not have been there."""

from __future__ import annotations

from collections.abc import Iterator

from fluent_mlama.files import Source
from fluent_mlama.ranking.corrected import FEW_DISTRACTORS, corrected_task
from fluent_mlama.ranking.paper import POOL_LIMIT, sampling_order, select_rows
from fluent_mlama.records.benchmark import Benchmark, find_benchmarks, read_benchmark
from fluent_mlama.records.few_shot import few_shot_name, find_leakage, read_few_shot
from fluent_mlama.reporting.audit_ranks import finding
from fluent_mlama.reporting.distractors import correct_and_excluded, distractor_counts, pool
from fluent_mlama.reporting.findings import Finding
from fluent_mlama.reporting.loading import RankTable


def distractors(table: RankTable) -> Iterator[Finding]:
    """Who stood among the distractors of the paper's fixed sample: English labels, forms of the right entity, other right answers.

    The corrected protocol has none of them by construction.
    """
    if table.protocol != "paper":
        return
    order = sampling_order(pool(table))
    english = set(table.facts["en_obj_label"]) - {""}
    first = order[:POOL_LIMIT]
    yield finding(
        "english-distractors",
        table,
        of=len(first),
        count=sum(form in english for form in first),
        detail="of the first in order",
    )
    excluded = correct_and_excluded(table)
    located: dict[str, set[str]] = {}
    named: dict[str, set[str]] = {}
    objects_of: dict[str, set[str]] = {}
    objects = zip(*(table.objects(v) for v in table.verbalisations), strict=True)
    for subject, entity, forms, taken in zip(
        table.facts["sub_uri"], table.facts["obj_uri"], objects, excluded, strict=True
    ):
        located.setdefault(entity, set()).update(form for form in forms if form)
        named.setdefault(entity, set()).update(taken)
        objects_of.setdefault(subject, set()).add(entity)
    own, true = [], []
    for row, subject, entity, taken in zip(
        table.facts.index, table.facts["sub_uri"], table.facts["obj_uri"], excluded, strict=True
    ):
        drawn = set(
            [form for form in order[: POOL_LIMIT + len(taken)] if form not in taken][:POOL_LIMIT]
        )
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
    yield finding(
        "few-distractors",
        table,
        table.facts.index[(counts < FEW_DISTRACTORS).to_numpy()],
        len(table),
        detail,
    )
    if table.protocol == "paper":
        yield finding(
            "small-pool",
            table,
            table.facts.index[(counts < POOL_LIMIT).to_numpy()],
            len(table),
            detail,
        )


def against_benchmark(table: RankTable, benchmark: Benchmark) -> Iterator[Finding]:
    """The dump's facts against those that its protocol keeps of the benchmark file as it is now.

    Rows that lack because an object cell is empty are named as such: three published files dropped them.
    """
    keys = benchmark.table["sub_uri"] + "|" + table.relation + "|" + benchmark.table["obj_uri"]
    row_of = dict(zip(keys, benchmark.table.index.tolist(), strict=True))
    here = set(table.fact_keys())
    kept, filled = _kept_rows(benchmark, table)
    wanted, hollow = {keys[row] for row in kept}, {keys[row] for row in kept - filled}
    beyond = {
        key for key in wanted - here if row_of[key] > max(row_of.get(key, -1) for key in here)
    }
    limited = bool(beyond) and wanted - here == beyond and len(beyond) > 1
    yield finding(
        "limited",
        table,
        of=len(wanted),
        count=len(beyond) if limited else 0,
        detail=f"{len(here)} rows" if limited else "",
    )
    if limited:
        wanted -= beyond
    parts = {
        "holds excluded rows": sorted(row_of.get(key, -1) for key in here - wanted),
        "lacks rows": sorted(row_of[key] for key in wanted - here - hollow),
        "left out rows with an empty object": sorted(
            row_of[key] for key in (wanted & hollow) - here
        ),
    }
    detail = "; ".join(f"{what} {' '.join(map(str, rows))}" for what, rows in parts.items() if rows)
    yield finding(
        "rows-differ", table, [row for rows in parts.values() for row in rows], len(wanted), detail
    )


def _kept_rows(benchmark: Benchmark, table: RankTable) -> tuple[set[int], set[int]]:
    """(rows that the protocol keeps, those of them without an empty object cell)."""
    if table.protocol == "corrected":
        kept = {
            question.row for question in corrected_task(benchmark, table.verbalisations).questions
        }
        return kept, kept
    kept = set(select_rows(benchmark, table.verbalisations).kept)
    return kept, set(select_rows(benchmark, table.verbalisations, drop_empty_objects=True).kept)


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
            yield finding(
                "few-shot",
                table,
                leakage.kept,
                len(table),
                f"{v}: {copied} come back word for word" if leakage.kept else "",
            )


def benchmark_of(table: RankTable, benchmarks: Source) -> Benchmark | None:
    """The benchmark file of this dump: the one file of its language and relation that has all its verbalisations."""
    for lang, relation, spec, _ in find_benchmarks(benchmarks):
        if (lang, relation) == (table.lang, table.relation):
            benchmark = read_benchmark(benchmarks, lang, relation, spec)
            if set(table.verbalisations) <= set(benchmark.verbalisations):
                return benchmark
    return None
