"""How well the locator finds objects in the published data, and how fast.

    python benchmarks/locating.py [--data ../shared/data] [--write] [--misses FILE]

Five measurements: the spans marked by a reader (gold_spans.jsonl), the recorded wrong cuts (locator_records.jsonl), all
published Google sentences against the published split, rows with the names of another row's object, and sentences per second
on one core (learning and loading the lemmatiser included). ``--write`` puts the table into benchmarks/RESULTS-locating.md.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tabulate import tabulate

from benchmarks.locating_data import (
    SWAPPED,
    Case,
    gold_cases,
    in_failure_class,
    is_flagged,
    published_span,
    record_cases,
    row_of,
    swapped_rows,
)
from fluent_mlama.console import mark_span, progress, run_main
from fluent_mlama.files import open_source
from fluent_mlama.locating import Locator, Outcome
from fluent_mlama.records.benchmark import Benchmark, find_benchmarks, read_benchmark

SWAPPED_ROWS = 60
"""Rows of a file that get another object's names."""
RESULTS = Path(__file__).with_name("RESULTS-locating.md")


@dataclass(slots=True)
class Measured:
    """Counts of one language over all published Google sentences."""

    rows: int = 0
    found: int = 0
    methods: Counter[str] = field(default_factory=Counter)
    unsure: int = 0
    ambiguous: int = 0
    published: int = 0
    regular: int = 0
    regular_same: int = 0
    whole: int = 0
    whole_same: int = 0
    recovered: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument(
        "--misses", type=Path, metavar="FILE", help="where to list what was missed or cut otherwise"
    )
    asked = parser.parse_args(arguments)
    source = open_source(asked.data / "fluent_mlama" / "fixed_data.zip")
    benchmarks = {
        (lang, rel): read_benchmark(source, lang, rel, spec)
        for lang, rel, spec, _ in find_benchmarks(source)
    }
    misses: list[str] = []
    locators: dict[tuple[str, str], Locator] = {}
    measured: dict[str, Measured] = defaultdict(Measured)
    started = time.process_time()
    outcomes = {}
    for key, benchmark in progress(benchmarks.items(), unit="file", label="locating"):
        locators[key] = Locator(*key)
        outcomes[key] = locators[key].locate_all([row_of(cells) for cells in _records(benchmark)])
    seconds = time.process_time() - started
    for key, benchmark in benchmarks.items():
        for number, (cells, outcome) in enumerate(
            zip(_records(benchmark), outcomes[key], strict=True)
        ):
            _count(measured[key[0]], cells, outcome, f"{key[0]}_{key[1]}#{number}", misses)
    gold, gold_good = _judge(gold_cases(asked.data, benchmarks), locators, misses)
    records, records_good = _judge(record_cases(asked.data, benchmarks), locators, misses)
    swapped = _swapped(benchmarks, locators, misses)
    rows = sum(one.rows for one in measured.values())
    report = "\n\n".join(
        [
            "# Locating objects: measured on the published data",
            "Written by `python benchmarks/locating.py --write`; one core, the machine's other core busy.",
            "## Spans marked by a reader",
            _table(
                ("group", "right", "of"),
                [(group, gold_good[group], gold[group]) for group in sorted(gold)],
            ),
            f"Recorded wrong cuts: {records_good.total()} of {records.total()} right.",
            "## All published Google sentences",
            _published_table(measured),
            _method_table(measured),
            "## Another object's names",
            f"{sum(one['rows'] for one in swapped.values())} rows with the label, aliases and English label of another row's object "
            f"of the file, at most {SWAPPED_ROWS} per file, drawn by seed. Nothing should be found; flagged: `frame` or `unsure`.",
            _swapped_table(swapped),
            f"Speed: {rows} sentences in {seconds:.1f} s of processor time, {rows / seconds:.0f} sentences/s.",
        ]
    )
    print(report)
    if asked.write:
        RESULTS.write_text(report + "\n", encoding="utf-8")
    if asked.misses:
        asked.misses.write_text("\n".join(misses) + "\n", encoding="utf-8")
    return 0


def _records(benchmark: Benchmark) -> Iterator[dict[str, str]]:
    yield from benchmark.table.to_dict("records")


def _count(
    one: Measured, cells: dict[str, str], outcome: Outcome, name: str, misses: list[str]
) -> None:
    one.rows += 1
    span = (outcome.start, outcome.end) if outcome.found else None
    sentence, published = cells["gt_translation"], published_span(cells)
    if outcome.found:
        one.found += 1
        one.methods[outcome.method] += 1
        one.unsure += "unsure" in outcome.flags
        one.ambiguous += outcome.ambiguous
        one.recovered += published is None
    one.published += published is not None
    if published is not None and not in_failure_class(cells, published):
        one.regular += 1
        one.regular_same += span == published
        shorter = len(cells["obj_label"].split()) > len(sentence[slice(*published)].split())
        one.whole += not shorter
        one.whole_same += not shorter and span == published
    if span is None or (published is not None and span != published):
        told = mark_span(sentence, *span) if span else f"{sentence} ({outcome.status})"
        misses.append(
            f"{name}\t{told}\t{sentence[slice(*published)] if published else '-'}\t{cells['obj_label']}"
        )


def _judge(
    cases: Sequence[Case], locators: dict[tuple[str, str], Locator], misses: list[str]
) -> tuple[Counter[str], Counter[str]]:
    asked, good = Counter[str](), Counter[str]()
    for case in cases:
        outcome = locators[case.lang, case.relation].locate(case.row)
        asked[case.group] += 1
        right = case.accepts(outcome)
        good[case.group] += right
        if not right:
            got = outcome.object_form if outcome.found else outcome.status
            misses.append(f"{case.group}\t{case.row.sentence}\t{case.expected}\t{got}")
    return asked, good


def _swapped(
    benchmarks: dict[tuple[str, str], Benchmark],
    locators: dict[tuple[str, str], Locator],
    misses: list[str],
) -> dict[str, Counter[str]]:
    """Language -> how many rows with another object's names there were, and how many of them were found, flagged or not."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for (lang, relation), benchmark in benchmarks.items():
        rows = [row_of(cells) for cells in _records(benchmark)]
        for row in (
            swapped_rows(rows, SWAPPED_ROWS, f"{lang} {relation}") if lang in SWAPPED else ()
        ):
            outcome = locators[lang, relation].locate(row)
            counts[lang]["rows"] += 1
            if outcome.found:
                counts[lang]["flagged" if is_flagged(outcome) else "unflagged"] += 1
                misses.append(
                    f"swapped\t{mark_span(row.sentence, outcome.start, outcome.end)}\t{row.label}\t{outcome.status}"
                )
    return counts


def _swapped_table(counts: dict[str, Counter[str]]) -> str:
    lines = []
    for lang, one in counts.items():
        shares = (f"{100 * one[kind] / one['rows']:.2f}" for kind in ("unflagged", "flagged"))
        lines.append((lang, one["rows"], *shares))
    return _table(("language", "rows", "found, unflagged %", "found, flagged %"), lines)


def _table(head: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    return tabulate(lines, headers=head, tablefmt="github")


def _published_table(measured: dict[str, Measured]) -> str:
    head = (
        "language",
        "rows",
        "not found",
        "%",
        "published not found",
        "of these found",
        "unsure",
        "ambiguous",
        "regular rows",
        "same %",
        "without shortened",
        "same %",
    )
    lines = []
    for lang, one in [*sorted(measured.items()), ("all", _sum(measured))]:
        lines.append(
            (
                lang,
                one.rows,
                one.rows - one.found,
                f"{100 * (one.rows - one.found) / one.rows:.2f}",
                one.rows - one.published,
                one.recovered,
                one.unsure,
                one.ambiguous,
                one.regular,
                f"{100 * one.regular_same / one.regular:.2f}",
                one.whole,
                f"{100 * one.whole_same / one.whole:.2f}",
            )
        )
    return _table(head, lines)


def _method_table(measured: dict[str, Measured]) -> str:
    methods = [method for method, _ in _sum(measured).methods.most_common()]
    return _table(
        ("language", *methods),
        [
            (lang, *(one.methods[method] for method in methods))
            for lang, one in sorted(measured.items())
        ],
    )


def _sum(measured: dict[str, Measured]) -> Measured:
    total = Measured()
    for one in measured.values():
        for name in Measured.__slots__:
            setattr(total, name, getattr(total, name) + getattr(one, name))
    return total


if __name__ == "__main__":
    run_main(main)
