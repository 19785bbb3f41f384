"""Dumps and benchmarks made here: both protocols, awkward labels, and every bad cell named by file, row and column."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluent_mlama.console import UserError
from fluent_mlama.files import open_source, write_text
from fluent_mlama.records.benchmark import (
    find_benchmarks,
    is_usable,
    make_benchmark,
    read_benchmark,
    write_benchmark,
)
from fluent_mlama.records.results import (
    Dump,
    aliases_of,
    dump_columns,
    dump_name,
    find_dumps,
    format_dump,
    read_dump,
    with_row_numbers,
    write_dump,
)

COLUMNS = [
    "sub_uri",
    "sub_label",
    "obj_uri",
    "obj_label",
    "template",
    "template_prompt",
    "gt_translation",
    "gt_prompt",
    "gt_infl_object",
]
LABELS = [
    "NA",
    "null",
    "None",
    "nan",
    "007",
    "1e5",
    "True",
    '"',
    "a\tb",
    "a\nb",
    "",
    "-inf",
    "it's",
    "\\",
    "Řím",
]
labels = st.one_of(
    st.sampled_from(LABELS),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
)


def facts(*rows: tuple[str, str]) -> pd.DataFrame:
    """Benchmark rows from (subject, object) alone."""
    return pd.DataFrame(
        [
            [
                f"Q{n}",
                sub,
                f"Q9{n}",
                obj,
                f"{sub}: {obj}.",
                f"{sub}: ",
                f"{sub} – {obj}.",
                f"{sub} – ",
                obj,
            ]
            for n, (sub, obj) in enumerate(rows)
        ],
        columns=COLUMNS,
    )


def paper_dump(
    rows: list[tuple[str, str]], ranks: list[dict[str, int]], prob: float = -1.5
) -> Dump:
    table = facts(*rows).astype("object")
    table["aliases"] = pd.Series([[obj, "|||", "'"] for _, obj in rows], dtype="object")
    for verbalisation in ("template", "gt"):
        table[f"{verbalisation}_true_ranks"] = pd.Series(ranks, dtype="object")
        table[f"{verbalisation}_top1_correct"] = 0
        table[f"{verbalisation}_prompt_prob"] = prob
        table[f"{verbalisation}_top3_correct"] = 1
    return Dump(
        "cs", "P36", ("template", "gt"), "paper", table.set_axis(range(3, 3 + 2 * len(rows), 2))
    )


def again(dump: Dump, folder: Path) -> Dump:
    """Written and read back."""
    write_dump(dump, folder)
    return read_dump(open_source(folder), dump.name)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(labels, labels), min_size=1, max_size=4),
    st.floats(max_value=0, allow_nan=False),
)
def test_any_label_survives_in_a_dump(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], prob: float
) -> None:
    dump = paper_dump(rows, [{obj: 2, f"{obj}x": 1} for _, obj in rows], prob)
    read = again(dump, tmp_path_factory.mktemp("dump"))
    assert (read.lang, read.relation, read.verbalisations, read.protocol, read.name) == (
        "cs",
        "P36",
        ("template", "gt"),
        "paper",
        dump.name,
    )
    assert read.table.index.tolist() == dump.table.index.tolist()
    assert read.table.astype("object").to_dict("list") == dump.table.to_dict("list")
    assert format_dump(read) == format_dump(dump)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=4))
def test_any_label_survives_in_a_benchmark(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("benchmark")
    made = make_benchmark(
        "cs", "P36", "own", facts(*rows).assign(aliases="a|||b", gt_status="ok;alias", gt_tail=".")
    )
    write_benchmark(made, folder)
    read = read_benchmark(open_source(folder), "cs", "P36")
    assert read.sha256 == made.sha256
    assert read.table.to_dict("list") == made.table.to_dict("list")
    assert read.verbalisations == ("template", "gt")
    assert read.columns("gt") == (
        "gt_translation",
        "gt_prompt",
        "gt_infl_object",
        "gt_tail",
        "gt_status",
    )
    assert read.columns("template") == ("template", "template_prompt", "obj_label", None, None)


def test_a_benchmark_with_a_nul_is_not_written(tmp_path: Path) -> None:
    made = make_benchmark("cs", "P36", "own", facts(("NA", "Li\0ma")).assign(aliases="a"))
    with pytest.raises(UserError, match="a cell of line 2 holds a NUL"):
        write_benchmark(made, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_corrected_dump_comes_back(tmp_path: Path) -> None:
    table = facts(("Čad", "NA"), ("Peru", "Lima")).astype("object")
    table["aliases"] = pd.Series([[], ["Lima"]], dtype="object")
    numbers = {"rank": [1.5, 2.0], "rank_min": [1, 2], "rank_max": [2, 2], "all_forms_rank": [math.nan, 1.0], "logprob": [-3.25, -1e-30],
               "top1_correct": [0, 0], "top3_correct": [1, 1], "prompt_prob": [0.0, -math.inf]}  # fmt: skip
    for part, values in numbers.items():
        table[f"gt_{part}"] = values
    table["n_distractors"] = [50, 4]
    dump = Dump("cs", "P36", ("gt",), "corrected", table)
    assert list(table.columns)[-9:] == dump_columns("corrected", ["gt"])
    read = again(dump, tmp_path)
    assert (read.protocol, read.verbalisations) == ("corrected", ("gt",))
    pd.testing.assert_frame_equal(
        read.table[list(table.columns[-9:])], table[list(table.columns[-9:])]
    )
    assert read.table["aliases"].tolist() == [[], ["Lima"]]
    assert "\t1.5\t1\t2\t\t-3.25\t0\t1\t0.0\t50\n" in format_dump(read)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "{'Lima': 1}",
            "{'Lima': -inf}",
            r"row 3, column template_true_ranks: cannot read \"\{'Lima': -inf\}\"",
        ),
        ("{'Lima': 1}", "{'Lima': 0}", "row 3, column template_true_ranks"),
        ("{'Lima': 1}", "{'Lima': 1, 'Nauru': 1}", "row 3, column template_true_ranks"),
        ("{'Lima': 1}", "__import__('os').getcwd()", "row 3, column template_true_ranks"),
        ("{'Lima': 1}", "{'Lima': 1", "row 3, column template_true_ranks"),
        ("{'Lima': 1}", "[" * 400, "row 3, column template_true_ranks"),
        ("['Lima', '|||', \"'\"]", "Lima|||x", "row 3, column aliases: .* as a list of strings"),
        (
            "\t0\t-1.5",
            "\t2\t-1.5",
            "row 3, column template_top1_correct: cannot read '2' as a flag 0 or 1",
        ),
        (
            "\t0\t-1.5",
            "\t0\t-1,5",
            "row 3, column template_prompt_prob: cannot read '-1,5' as a number",
        ),
        ("\n3\t", "\nthree\t", r"row 0, column row number \(first column\): cannot read 'three'"),
        (
            "template_top3_correct",
            "top3",
            "no column 'template_top3_correct', which a dump of protocol paper has",
        ),
        ("gt_translation", "translation_gt", "no column 'gt_translation'"),
    ],
)
def test_a_bad_cell_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    dump = paper_dump([("Peru", "Lima")], [{"Lima": 1}])
    text = format_dump(dump)
    quoted = '"' + old.replace('"', '""') + '"' if '"' in old else old
    assert quoted in text
    write_text(tmp_path / dump.name, text.replace(quoted, new, 1))
    with pytest.raises(UserError, match=message) as caught:
        read_dump(open_source(tmp_path), dump.name)
    assert dump.name in str(caught.value) and "\n" not in str(caught.value)


def test_a_row_number_that_stands_twice_is_told(tmp_path: Path) -> None:
    dump = paper_dump([("Peru", "Lima"), ("Čad", "NA")], [{"Lima": 1}, {"NA": 1}])
    write_text(tmp_path / dump.name, format_dump(dump).replace("\n5\t", "\n3\t"))
    with pytest.raises(UserError, match="row number 3 stands twice"):
        read_dump(open_source(tmp_path), dump.name)


def test_a_benchmark_and_a_dump_are_not_mistaken_for_each_other(tmp_path: Path) -> None:
    dump = paper_dump([("Peru", "Lima")], [{"Lima": 1}])
    write_dump(dump, tmp_path)
    with pytest.raises(UserError, match="is a rank dump, not a benchmark file"):
        read_benchmark(open_source(tmp_path), "cs", "P36")
    made = make_benchmark("ru", "P36", "own", facts(("Peru", "Lima")).assign(aliases=""))
    write_benchmark(made, tmp_path)
    with pytest.raises(UserError, match="this is no rank dump"):
        read_dump(open_source(tmp_path), made.name)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    whole = facts(("Peru", "Lima")).assign(aliases="")
    for column in ("obj_label", "aliases", "gt_prompt"):
        write_text(
            tmp_path / "cs_P36.tsv",
            "\t".join(whole.columns.drop(column)) + "\n" + "\t".join(["x"] * 9) + "\n",
        )
        with pytest.raises(UserError, match=f"no column '{column}'"):
            read_benchmark(open_source(tmp_path), "cs", "P36")


def test_file_names(tmp_path: Path) -> None:
    names = [
        "cs_P36.tsv",
        "ru_P19_20prompt.tsv",
        "ru_place_of_birth_nogpt.tsv",
        "ceb_P1_a_b.tsv",
        "P36.tsv",
        "ru_P19.txt",
        "ru_P19_x.tsv.bak",
    ]
    for name in names:
        write_text(tmp_path / name, "")
    found = find_benchmarks(open_source(tmp_path))
    assert [entry[:3] for entry in found] == [
        ("ceb", "P1", "a_b"), ("cs", "P36", ""), ("ru", "P19", "20prompt"), ("ru", "place_of_birth", "nogpt"),
    ]  # fmt: skip
    assert [name for _, _, name in find_dumps(open_source(tmp_path))] == [
        "ceb_P1_a_b.tsv",
        names[1],
        names[2],
    ]
    with pytest.raises(UserError, match="no benchmark file for cs P36 with spec nogpt"):
        read_benchmark(open_source(tmp_path), "cs", "P36", "nogpt")
    with pytest.raises(UserError, match="cannot stand in a file name"):
        dump_name("cs", "P36", ["template", "a:b"])
    with pytest.raises(UserError, match="is not a name for a benchmark file"):
        make_benchmark("cs", "../P36", "own", facts(("Peru", "Lima")).assign(aliases=""))


def test_status_and_aliases_of_cells() -> None:
    assert [is_usable(status) for status in ("ok", "ok;alias;not-final", "not-found", "")] == [
        True,
        True,
        False,
        False,
    ]
    assert (aliases_of("a|||b"), aliases_of(["a|||b"]), aliases_of("")) == (
        ["a", "b"],
        ["a|||b"],
        [],
    )


def test_the_dump_without_row_numbers_gets_its_benchmarks(published: Path) -> None:
    benchmarks = open_source(published / "fluent_mlama" / "fixed_data.zip")
    benchmark = read_benchmark(benchmarks, "ru", "P19")
    name = dump_name("ru", "P19", benchmark.verbalisations)
    narrow, wide = (
        read_dump(open_source(published / "fluent_mlama" / f"{kind}.zip"), name)
        for kind in ("stats", "stats_wide")
    )
    assert (narrow.numbered, wide.numbered) == (False, True)
    assert with_row_numbers(narrow, benchmark).table.index.tolist() == wide.table.index.tolist()
    assert len(narrow.table) == 493
    other = make_benchmark("ru", "P19", "own", benchmark.table.iloc[1:])
    with pytest.raises(UserError, match="row 0 has no counterpart"):
        with_row_numbers(narrow, other)
