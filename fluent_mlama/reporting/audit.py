"""``stats.py audit``: what is wrong with rank dumps, found from the dumps alone (and from the
benchmark, where it is given).

Writes ``audit.tsv`` (every finding), ``audit_table.tex`` (checks × languages) and ``audit.md`` (one
page of advice).

The audit as a table (checks × languages) and as one page of advice.
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
from fluent_mlama.reporting.audit_checks import (
    CHECKS,
    OF_ONE_DUMP,
    WIDE,
    Check,
    Finding,
    against_benchmark,
    against_wide,
    benchmark_of,
    few_shot,
    flags,
    ranked_forms,
    unequal_ranks,
)
from fluent_mlama.reporting.latex import Column, booktabs_in_blocks, write_table
from fluent_mlama.reporting.loading import DumpFolder, RankTable, open_dumps, open_wide
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.outcomes import has_outcomes
from fluent_mlama.reporting.relation_table import ordered

Data = Annotated[
    Benchmarks | None, Parameter(help="the benchmark files, to check which rows were ranked")
]
Prompts = Annotated[
    File | None,
    Parameter(help="the few-shot files, to find facts shown as examples (with --data)"),
]
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


NAMES_SHOWN = 30
_HEADINGS = {
    "wrong": "Wrong: these numbers cannot be trusted",
    "biased": "Biased: these numbers favour something",
    "note": "To know when reading",
}


def overview(findings: Sequence[Finding]) -> str:
    """A clean table: for each check and language, dumps with a finding / dumps that could be
    tested."""
    langs = ordered({finding.lang for finding in findings})
    rows: list[Sequence[object] | None] = []
    for check in sorted(CHECKS.values(), key=lambda one: list(_HEADINGS).index(one.weight)):
        of_check = [
            finding for finding in findings if finding.check == check.name and not finding.is_wide
        ]
        if of_check:
            rows.append(
                [
                    check.title,
                    check.weight,
                    *(_found_of_tested([f for f in of_check if f.lang == lang]) for lang in langs),
                ]
            )
    return booktabs_in_blocks(
        [Column("Check", "l"), Column("Weight", "l"), *map(Column, langs)], rows, repeated=2
    )


def _found_of_tested(findings: Sequence[Finding]) -> str:
    tested = sum(finding.outcome != "untestable" for finding in findings)
    return (
        f"{sum(finding.outcome == 'found' for finding in findings)}/{tested}" if findings else "--"
    )


def advice_page(findings: Sequence[Finding], missing: Sequence[str], signature: str) -> str:
    """Markdown: what was found, what it means, what to do; what could not be tested; what was not
    looked for."""
    found = {
        name: [f for f in findings if f.check == name and f.outcome == "found"] for name in CHECKS
    }
    dumps = {finding.dump for finding in findings}
    lines = [
        "# Audit of rank dumps",
        "",
        f"Dumps looked at: {len(dumps)}. Signature: `{signature}`",
        "",
    ]
    for weight, heading in _HEADINGS.items():
        checks = [
            check for check in CHECKS.values() if check.weight == weight and found[check.name]
        ]
        if checks:
            lines += [
                f"## {heading}",
                "",
                *(
                    line
                    for check in checks
                    for line in _paragraph(check, found[check.name], findings)
                ),
                "",
            ]
    if not any(found.values()):
        lines += ["Nothing was found.", ""]
    untestable = [f for f in findings if f.outcome == "untestable"]
    if untestable:
        lines += ["## Could not be tested", ""]
        for name in dict.fromkeys(f.check for f in untestable):
            of_check = [f for f in untestable if f.check == name]
            lines.append(f"- {CHECKS[name].title} ({of_check[0].detail}): {_names(of_check)}.")
        lines.append("")
    clean = [
        check.title
        for name, check in CHECKS.items()
        if not found[name] and any(f.check == name for f in findings)
    ]
    if clean:
        lines += [f"Looked for and not found: {'; '.join(clean)}.", ""]
    if missing:
        lines += [f"Not looked at, because not given: {'; '.join(missing)}.", ""]
    return "\n".join(lines)


def _paragraph(check: Check, found: Sequence[Finding], findings: Sequence[Finding]) -> list[str]:
    tested = [f for f in findings if f.check == check.name and f.outcome != "untestable"]
    where = f"{sum(not f.is_wide for f in found)} of {sum(not f.is_wide for f in tested)} dumps"
    if any(f.is_wide for f in tested):
        where += f" (wide: {sum(f.is_wide for f in found)} of {sum(f.is_wide for f in tested)})"
    shares = sorted(f.share for f in found if f.of)
    ends = list(dict.fromkeys(f"{share:.1%}" for share in (*shares[:1], *shares[-1:])))
    spread = f", {' to '.join(ends)} of the cases" if shares else ""
    details = (
        list(dict.fromkeys(f.detail.partition(":")[0] for f in found if f.detail))
        if check.name == "wide-differs"
        else []
    )
    lines = [f"- **{check.title}** in {where}{spread}. {check.meaning} *{check.advice}*"]
    for kind in details:
        lines.append(f"  - {kind}: {_names([f for f in found if f.detail.startswith(kind)])}")
    if not details and (len(found) < len(tested) or len(found) <= 3):
        few = [
            f"{_short(f)} rows "
            f"{' '.join(map(str, f.rows))}{' …' if f.count > len(f.rows) else ''} ({f.detail})"
            for f in found
            if f.detail and f.rows
        ]
        lines.append(
            f"  - {'; '.join(few)}" if 0 < len(few) == len(found) <= 3 else f"  - {_names(found)}"
        )
    return lines


def _short(finding: Finding) -> str:
    return f"{'wide ' if finding.is_wide else ''}{finding.lang} {finding.relation}"


def _names(findings: Sequence[Finding]) -> str:
    """Dumps grouped by language: ``cs P103 P159; ru P19``; a long list is cut with its number."""
    groups: dict[str, list[str]] = {}
    order = ordered({finding.lang for finding in findings})
    for finding in sorted(findings, key=lambda f: (f.is_wide, order.index(f.lang)))[:NAMES_SHOWN]:
        head, _, relation = _short(finding).rpartition(" ")
        groups.setdefault(head, []).append(relation)
    text = "; ".join(
        f"{head} {' '.join(dict.fromkeys(relations))}" for head, relations in groups.items()
    )
    return text + (
        f"; and {len(findings) - NAMES_SHOWN} more (audit.tsv)"
        if len(findings) > NAMES_SHOWN
        else ""
    )
