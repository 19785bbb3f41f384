"""``stats.py audit``: what is wrong with rank dumps, found from the dumps alone (and from the benchmark, where it is given).

Writes ``audit.tsv`` (every finding), ``audit_table.tex`` (checks × languages) and ``audit.md`` (one page of advice).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from fluent_mlama.console import note
from fluent_mlama.files import Source, format_table, open_source, write_text
from fluent_mlama.options import Benchmarks, File
from fluent_mlama.reporting.audit_page import advice_page, overview
from fluent_mlama.reporting.audit_ranks import (
    against_wide,
    flags,
    impossible_ranks,
    ranked_forms,
    unequal_ranks,
)
from fluent_mlama.reporting.audit_rows import (
    against_benchmark,
    benchmark_of,
    distractors,
    few_distractors,
    few_shot,
)
from fluent_mlama.reporting.audit_text import (
    error_cells,
    half_precision,
    leaked_prefixes,
    minus_infinity,
    missing_row_numbers,
    objects_not_final,
    recorded_ties,
    stray_blanks,
)
from fluent_mlama.reporting.findings import WIDE, Finding
from fluent_mlama.reporting.latex import write_table
from fluent_mlama.reporting.loading import DumpFolder, RankTable, open_dumps, open_wide
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.outcomes import has_outcomes

Data = Annotated[
    Benchmarks | None, Parameter(help="the benchmark files, to check which rows were ranked")
]
Prompts = Annotated[
    File | None,
    Parameter(help="the few-shot files, to find facts shown as examples (with --data)"),
]
OF_ONE_DUMP = (
    unequal_ranks,
    ranked_forms,
    flags,
    impossible_ranks,
    error_cells,
    leaked_prefixes,
    objects_not_final,
    stray_blanks,
    minus_infinity,
    half_precision,
    recorded_ties,
    missing_row_numbers,
    distractors,
    few_distractors,
)
OF_A_WIDE_DUMP = (unequal_ranks, flags)


def audit_dumps(
    *, options: StatsOptions = StatsOptions(), data: Data = None, prompts: Prompts = None
) -> None:
    """What is wrong with the dumps, found from the dumps alone (and from the benchmark, if given).

    stats.py audit --stats stats/starter/paper --data starter --tables tables/mine
    """
    if has_outcomes(options.dumps):
        from fluent_mlama.reporting.experiment import audit_experiment

        audit_experiment(options)
        return
    wide = open_wide(options.wide, options.dumps)
    write_audit(open_dumps(options.dumps), wide, options, data, prompts)


def write_audit(
    folder: DumpFolder,
    wide: DumpFolder | None,
    options: StatsOptions,
    data: Path | None = None,
    prompts: Path | None = None,
) -> list[Finding]:
    """Run every check on the selected dumps and write what they say; returns the findings."""
    tables = folder.tables(options.langs, options.relations)
    benchmarks = open_source(data) if data is not None else None
    few_shots = open_source(prompts) if prompts is not None else None
    findings = audit(tables, wide, benchmarks, few_shots)
    looked_at = {
        "wide dumps": wide,
        "benchmark files (--data)": benchmarks,
        "few-shot files (--data and --prompts)": few_shots and benchmarks,
    }
    missing = [name for name, given in looked_at.items() if given is None]
    out = options.tables
    signature = folder.signature(tables)
    write_text(out / "audit.tsv", format_table(as_frame(findings)))
    write_text(out / "audit.md", advice_page(findings, missing, signature))
    comments = [
        "Audit: dumps with a finding / dumps that could be tested, wide dumps not counted.",
        f"signature: {signature}",
    ]
    write_table(options.tables, "audit_table", overview(findings), comments)
    note(f"wrote {out / 'audit.tsv'} and {out / 'audit.md'}")
    return findings


def audit(
    tables: Sequence[RankTable],
    wide: DumpFolder | None = None,
    benchmarks: Source | None = None,
    few_shots: Source | None = None,
) -> list[Finding]:
    """Every check on every table, in the order of the tables."""
    return [
        finding for table in tables for finding in _audit_one(table, wide, benchmarks, few_shots)
    ]


def _audit_one(
    table: RankTable, wide: DumpFolder | None, benchmarks: Source | None, few_shots: Source | None
) -> Iterator[Finding]:
    for check in OF_ONE_DUMP:
        yield from check(table)
    if wide is not None and wide.has(table.lang, table.relation):
        twin = wide.table(table.lang, table.relation)
        yield from against_wide(table, twin)
        for finding in (
            *ranked_forms(twin, wide=True),
            *(f for check in OF_A_WIDE_DUMP for f in check(twin)),
        ):
            yield _of_wide(finding)
    benchmark = benchmark_of(table, benchmarks) if benchmarks is not None else None
    if benchmark is not None:
        yield from against_benchmark(table, benchmark)
        if wide is not None and wide.has(table.lang, table.relation):
            yield from map(
                _of_wide, against_benchmark(wide.table(table.lang, table.relation), benchmark)
            )
        if few_shots is not None:
            yield from few_shot(table, benchmark, few_shots)


def _of_wide(finding: Finding) -> Finding:
    """The finding with the wide dump told from the narrow one of the same name."""
    return Finding(**{**vars(finding), "dump": WIDE + finding.dump})


def as_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """One row for each finding that is not clean, all cells strings."""
    rows = [
        {
            "check": f.check,
            "outcome": f.outcome,
            "lang": f.lang,
            "relation": f.relation,
            "dump": f.dump,
            "count": str(f.count),
            "of": str(f.of),
            "share": f"{f.share:z.4f}",
            "rows": " ".join(map(str, f.rows)),
            "detail": f.detail,
        }
        for f in findings
        if f.outcome != "clean"
    ]
    return pd.DataFrame(
        rows,
        columns=[
            "check",
            "outcome",
            "lang",
            "relation",
            "dump",
            "count",
            "of",
            "share",
            "rows",
            "detail",
        ],
    )
