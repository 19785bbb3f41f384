"""Protocol `paper` against the published dumps: rows, pool, distractors, narrow from wide. No model."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from fluent_mlama.files import open_source
from fluent_mlama.ranking.paper import gather_forms, pool_size, sampling_order, select_rows
from fluent_mlama.ranking.task import (
    narrow_from_wide,
    stable_ranks,
    tied_rank,
    top_flag,
    true_ranks,
)
from fluent_mlama.records.benchmark import Benchmark, find_benchmarks, read_benchmark
from fluent_mlama.records.results import Dump, dump_name, find_dumps, read_dump, with_row_numbers
from tests.stand_in import small_benchmark

DROPPED_EMPTY_OBJECTS = {"cs_P159": 1, "hr_P36": 8, "ru_P463": 1}
IDENTICAL = [
    "cs_P101",
    "cs_P108",
    "cs_P127",
    "cs_P1376",
    "cs_P364",
    "cs_P449",
    "cs_P463",
    "ru_P101",
    "ru_P108",
    "ru_P127",
    "ru_P20",
    "ru_P364",
]
TIE_ORDER = ["cs_P20", "cs_P407", "cs_P495", "cs_P740", "ru_P740"]


@pytest.fixture(scope="module")
def benchmarks(published: Path) -> dict[str, Benchmark]:
    source = open_source(published / "fluent_mlama" / "fixed_data.zip")
    found = find_benchmarks(source)
    assert len(found) == 91
    return {
        f"{lang}_{relation}": read_benchmark(source, lang, relation, spec)
        for lang, relation, spec, _ in found
    }


@pytest.fixture(scope="module")
def wide_dumps(published: Path) -> dict[str, Dump]:
    source = open_source(published / "fluent_mlama" / "stats_wide.zip")
    return {
        f"{lang}_{relation}": read_dump(source, name) for lang, relation, name in find_dumps(source)
    }


def test_row_filter_gives_the_index_of_every_published_dump(
    published: Path, benchmarks: dict[str, Benchmark]
) -> None:
    source = open_source(published / "fluent_mlama" / "stats.zip")
    differing = set()
    for key, benchmark in benchmarks.items():
        dump = with_row_numbers(
            read_dump(source, dump_name(*key.split("_"), benchmark.verbalisations)), benchmark
        )
        kept = select_rows(benchmark, benchmark.verbalisations).kept
        if list(kept) != dump.table.index.tolist():
            differing.add(key)
        if key in DROPPED_EMPTY_OBJECTS:
            strict = select_rows(benchmark, benchmark.verbalisations, drop_empty_objects=True)
            assert list(strict.kept) == dump.table.index.tolist()
            assert len(kept) - len(strict.kept) == DROPPED_EMPTY_OBJECTS[key]
            assert (
                sum("empty object" in reason for reason in strict.left_out.values())
                == DROPPED_EMPTY_OBJECTS[key]
            )
    assert differing == {*DROPPED_EMPTY_OBJECTS, "cs_P740"}
    only_ours = set(select_rows(benchmarks["cs_P740"], ("template", "gt", "chatgpt")).kept)
    theirs = set(read_dump(source, "cs_P740_template_gt_chatgpt.tsv").table.index)
    assert (only_ours - theirs, theirs - only_ours) == ({181}, {102})


def test_row_filter_gives_the_index_of_every_wide_dump(
    wide_dumps: dict[str, Dump], benchmarks: dict[str, Benchmark]
) -> None:
    assert len(wide_dumps) == 30
    differing = {
        key
        for key, dump in wide_dumps.items()
        if list(select_rows(benchmarks[key], benchmarks[key].verbalisations).kept)
        != dump.table.index.tolist()
    }
    assert differing == {"cs_P740"}


SAMPLER = [
    (
        "es_P19",
        919,
        888,
        "Q1886736",
        50,
        "Pittsburg, Amsterdam, EGoli, Gante, Sidney",
        "República de Madagascar",
        "ee8f91810b409db1",
    ),
    (
        "zh_P103",
        554,
        106,
        None,
        50,
        "俄文, 希腊语, 日本話, 泰卢固语, Romanian",
        "葡萄牙语",
        "f3ffd7b9411d619b",
    ),
    (
        "hr_P449",
        39,
        13,
        "Q13979",
        11,
        "HBO, History, CBS-u, MTV, CBS",
        "Netflix",
        "cd1b31385b43a452",
    ),
    (
        "ru_P101",
        605,
        304,
        "Q7251",
        50,
        "авиации, балета, manga, новеллист, stock",
        "топологии",
        "24d11e4aae8a85f4",
    ),
]


@pytest.mark.parametrize(
    ("key", "kept", "pool", "subject", "count", "first", "last", "digest"), SAMPLER
)
def test_sampler_draws_the_published_distractors(
    benchmarks: dict[str, Benchmark],
    key: str,
    kept: int,
    pool: int,
    subject: str | None,
    count: int,
    first: str,
    last: str,
    digest: str,
) -> None:
    benchmark = benchmarks[key]
    rows = select_rows(benchmark, benchmark.verbalisations).kept
    assert len(rows) == kept
    assert pool_size(benchmark, benchmark.verbalisations, rows) == pool
    drawn = gather_forms(benchmark, benchmark.verbalisations, rows)[rows[0]].distractors
    assert subject in (None, benchmark.table.loc[rows[0], "sub_uri"])
    assert len(drawn) == count
    assert ", ".join(drawn[:5]) == first
    assert drawn[-1] == last
    assert hashlib.sha256("\n".join(drawn).encode()).hexdigest()[:16] == digest


FEWER_THAN_50 = {
    "cs_P108": (49, 50), "cs_P449": (16, 18), "cs_P463": (23, 26), "hr_P108": (18, 20), "hr_P364": (42, 47), "hr_P449": (10, 11),
    "hr_P463": (19, 24), "ru_P449": (33, 37), "ru_P463": (45, 50), "uk_P449": (12, 14), "uk_P463": (25, 30), "id_P108": (31, 36),
    "ru_P264": (20, 22), "cs_P264": (0, 0), "hr_P264": (0, 0), "uk_P264": (0, 0),
}  # fmt: skip


def test_distractor_counts_of_every_published_file(benchmarks: dict[str, Benchmark]) -> None:
    counted = {}
    for key, benchmark in benchmarks.items():  # the counts are those of the narrow dumps
        rows = select_rows(
            benchmark, benchmark.verbalisations, drop_empty_objects=key in DROPPED_EMPTY_OBJECTS
        ).kept
        counts = [
            len(forms.distractors)
            for forms in gather_forms(benchmark, benchmark.verbalisations, rows).values()
        ]
        if min(counts) < 50:
            counted[key] = (min(counts), max(counts))
    assert counted == FEWER_THAN_50


def test_narrow_ranks_follow_from_wide_ones(published: Path, wide_dumps: dict[str, Dump]) -> None:
    source = open_source(published / "fluent_mlama" / "stats.zip")
    compared = 0
    for key in [*IDENTICAL, *TIE_ORDER]:
        wide = wide_dumps[key].table
        narrow = read_dump(source, wide_dumps[key].name).table
        for v in wide_dumps[key].verbalisations:
            for row in narrow.index.intersection(wide.index):
                published_ranks = narrow.loc[row, f"{v}_true_ranks"]
                derived = narrow_from_wide(wide.loc[row, f"{v}_true_ranks"], list(published_ranks))
                if key in IDENTICAL:
                    assert list(derived.items()) == list(published_ranks.items())
                assert min(derived.values()) == min(published_ranks.values())
                compared += 1
    assert compared > 10_000


def test_rows_are_kept_by_prompt_and_object() -> None:
    benchmark = small_benchmark(
        "Praha|Narodil se v |Praze|",
        "Brno||Brně|",
        "Brno|Byl v |ERROR|",
        "Brno| |Brně|",
        "Brno|Byl v ||",
        "|Byl v ||",
    )
    selection = select_rows(benchmark, ("template", "gt"))
    assert selection.kept == (0, 3, 4)
    assert selection.left_out == {
        1: "gt: empty prompt",
        2: "gt: object not found",
        5: "no object form in any verbalisation",
    }
    strict = select_rows(benchmark, ("template", "gt"), drop_empty_objects=True)
    assert strict.kept == (0, 3)
    assert strict.left_out[4] == "gt: empty object"
    assert select_rows(benchmark, ("template",)).kept == (0, 1, 2, 3, 4)


def test_a_status_column_names_its_own_reason() -> None:
    benchmark = small_benchmark(*["Brno|Byl v |ERROR|"] * 4, "Brno|Byl v |Brně|")
    benchmark.table["gt_status"] = ["empty", "length;no-stop", "markup", "", "ok;not-final"]
    assert select_rows(benchmark, ("template", "gt")).left_out == {
        0: "gt: empty", 1: "gt: length", 2: "gt: markup", 3: "gt: no status"
    }  # fmt: skip


def test_forms_of_a_row_and_what_its_pool_leaves_out() -> None:
    benchmark = small_benchmark(
        "Praha|v |Praze|Prague,Praha,Praga", "Brno|v |Brně|Brno", "Plzeň|v |ERROR|Pilsen"
    )
    forms = gather_forms(benchmark, ("template", "gt"), (0, 1))
    assert forms[0].correct == ("Praha", "Praze")
    assert forms[0].aliases == ("Prague", "Praga")
    assert set(forms[0].distractors) == {"Brno", "Brně"}
    assert list(forms[0].distractors) == sampling_order(["Brno", "Brně"])
    assert forms[1].correct == ("Brno", "Brně") and forms[1].aliases == ()
    assert set(forms[1].distractors) == {"Praha", "Praze", "Prague", "Praga"}


def test_sampling_order_is_that_of_the_hash() -> None:
    assert hashlib.sha256(b"Paris").hexdigest().startswith("5dd272b4f316")
    names = ["Paris", "London", "Roma", "", "Paris", "Wien"]
    assert sampling_order(names) == sorted(
        {"Paris", "London", "Roma", "Wien"},
        key=lambda n: int(hashlib.sha256(n.encode()).hexdigest(), 16),
    )


def test_a_tie_counts_for_what_comes_first() -> None:
    infinite = float("-inf")
    assert stable_ranks([-2.0, infinite, -2.0, infinite, -1.0]) == [2, 4, 3, 5, 1]
    ranks = true_ranks(["a", "b"], stable_ranks([infinite, -2.0, -2.0, infinite]))
    assert list(ranks.items()) == [("b", 1), ("a", 3)]
    assert (
        top_flag(ranks, 1),
        top_flag({"a": 3}, 1),
        top_flag({"a": 3}, 3),
        top_flag({"a": 4}, 3),
    ) == (1, 0, 1, 0)
    with pytest.raises(ValueError, match="NaN"):
        stable_ranks([float("nan")])


def test_three_that_tie_share_the_middle_rank() -> None:
    rank = tied_rank(-2.0, [-1.0, -2.0, -2.0, -3.0])
    assert (rank.mid, rank.lowest, rank.highest) == (3.0, 2, 4)
    alone = tied_rank(-1.0, [])
    assert (alone.mid, alone.lowest, alone.highest) == (1.0, 1, 1)
    with pytest.raises(ValueError, match="NaN"):
        tied_rank(-1.0, [float("nan")])
