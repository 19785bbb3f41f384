"""The audit as a table (checks × languages) and as one page of advice."""

from __future__ import annotations

from collections.abc import Sequence

from fluent_mlama.reporting.findings import CHECKS, Check, Finding
from fluent_mlama.reporting.latex import Column, booktabs_in_blocks
from fluent_mlama.reporting.relation_table import ordered

NAMES_SHOWN = 30
_HEADINGS = {
    "wrong": "Wrong: these numbers cannot be trusted",
    "biased": "Biased: these numbers favour something",
    "note": "To know when reading",
}


def overview(findings: Sequence[Finding]) -> str:
    """A clean table: for each check and language, dumps with a finding / dumps that could be tested."""
    langs = ordered({finding.lang for finding in findings})
    rows: list[Sequence[object] | None] = []
    for name, check in CHECKS.items():
        of_check = [
            finding for finding in findings if finding.check == name and not finding.is_wide
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
    """Markdown: what was found, what it means, what to do; what could not be tested; what was not looked for."""
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
            f"{_short(f)} rows {' '.join(map(str, f.rows))}{' …' if f.count > len(f.rows) else ''} ({f.detail})"
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
