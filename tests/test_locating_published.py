"""The locator on the published data: the reader's spans, the recorded wrong cuts, the published
split.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.locating_data import (
    SWAPPED,
    gold_cases,
    in_failure_class,
    is_flagged,
    published_span,
    record_cases,
    row_of,
    swapped_rows,
)
from fluent_mlama.files import open_source
from fluent_mlama.locating import Locator
from fluent_mlama.records.benchmark import Benchmark, find_benchmarks, read_benchmark

SWAPPED_RELATIONS = ("P103", "P108", "P159", "P19", "P36", "P407", "P740")
SAMPLE = [
    ("cs", "P19"),
    ("es", "P407"),
    ("hr", "P103"),
    ("id", "P36"),
    ("ru", "P127"),
    ("uk", "P1376"),
    ("zh", "P740"),
]


@pytest.fixture(scope="module")
def benchmarks(published: Path) -> dict[tuple[str, str], Benchmark]:
    source = open_source(published / "fluent_mlama" / "fixed_data.zip")
    return {
        (lang, relation): read_benchmark(source, lang, relation, spec)
        for lang, relation, spec, _ in find_benchmarks(source)
    }


@pytest.fixture(scope="module")
def locators(
    benchmarks: dict[tuple[str, str], Benchmark], published: Path
) -> dict[tuple[str, str], Locator]:
    wanted = {
        (case.lang, case.relation)
        for case in [*gold_cases(published, benchmarks), *record_cases(published, benchmarks)]
    }
    return {
        key: (
            Locator(*key).fit([row_of(cells) for cells in benchmarks[key].table.to_dict("records")])
        )
        for key in sorted({*wanted, *SAMPLE})
    }


def test_readers_spans(benchmarks: dict, locators: dict, published: Path) -> None:
    cases = gold_cases(published, benchmarks)
    assert len(cases) == 154
    missed = Counter(
        case.group
        for case in cases
        if not case.accepts(locators[case.lang, case.relation].locate(case.row))
    )
    random = {group: count for group, count in missed.items() if group.startswith("random")}
    assert sum(random.values()) == 0
    assert missed["hard"] == 0
    assert missed["absent"] <= 1


def test_recorded_wrong_cuts(benchmarks: dict, locators: dict, published: Path) -> None:
    cases = record_cases(published, benchmarks)
    right = [
        case for case in cases if case.accepts(locators[case.lang, case.relation].locate(case.row))
    ]
    assert len(cases) == 30
    assert len(right) >= 29


def test_published_splits(benchmarks: dict, locators: dict) -> None:
    rows = found = regular = same = 0
    for key in SAMPLE:
        for cells in benchmarks[key].table.to_dict("records"):
            outcome = locators[key].locate(row_of(cells))
            span = published_span(cells)
            rows += 1
            found += outcome.found
            assert not outcome.found or outcome.object_form.strip()
            if span is not None and not in_failure_class(cells, span):
                regular += 1
                same += outcome.found and (outcome.start, outcome.end) == span
    assert rows > 2500 and rows - found <= 0.03 * rows
    assert same >= 0.999 * regular


def test_another_objects_names_are_not_found(benchmarks: dict[tuple[str, str], Benchmark]) -> None:
    rows, flagged, unflagged = Counter[str](), Counter[str](), Counter[str]()
    for (lang, relation), benchmark in benchmarks.items():
        if lang not in SWAPPED or relation not in SWAPPED_RELATIONS:
            continue
        file = [row_of(cells) for cells in benchmark.table.to_dict("records")]
        locator = Locator(lang, relation).fit(file)
        for row in swapped_rows(file, 80, f"{lang} {relation}"):
            outcome = locator.locate(row)
            rows[lang] += 1
            flagged[lang] += is_flagged(outcome)
            unflagged[lang] += outcome.found and not is_flagged(outcome)
    assert rows.total() >= 2000 and set(rows) == set(SWAPPED)
    assert all(unflagged[lang] <= 0.005 * rows[lang] for lang in SWAPPED), unflagged
    assert all(flagged[lang] <= 0.2 * rows[lang] for lang in SWAPPED), flagged
