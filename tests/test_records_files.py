"""Benchmark, dump, scores and run files: what is read is what was written, published files included."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fluent_mlama.console import UserError
from fluent_mlama.files import format_table, open_source
from fluent_mlama.records.benchmark import (
    find_benchmarks,
    make_benchmark,
    read_benchmark,
    write_benchmark,
)
from fluent_mlama.records.results import (
    RunRecord,
    file_sha256,
    find_dumps,
    format_dump,
    is_as_written,
    read_dump,
    read_run,
    read_scores,
    run_path,
    write_run,
    write_scores,
)

COUNTS = {"stats.zip": 91, "stats_wide.zip": 30}
WITH_CARRIAGE_RETURNS = {
    "cs_P19_template_gt_chatgpt.tsv"
}  # the published narrow file went through a spreadsheet
WITHOUT_ROW_NUMBERS = {"ru_P19_template_gt_chatgpt.tsv"}


def test_published_benchmarks_are_written_back_byte_for_byte(
    published: Path, tmp_path: Path
) -> None:
    source = open_source(published / "fluent_mlama" / "fixed_data.zip")
    entries = find_benchmarks(source)
    assert len(entries) == 91
    for lang, relation, spec, name in entries:
        benchmark = read_benchmark(source, lang, relation)
        assert benchmark.spec == spec
        assert benchmark.verbalisations == (
            ("template", "gt", "chatgpt") if spec == "20prompt" else ("template", "gt")
        )
        assert write_benchmark(benchmark, tmp_path).read_bytes() == source.read(name)
        assert file_sha256(tmp_path / name) == benchmark.sha256


@pytest.mark.parametrize("archive", COUNTS)
def test_published_dumps_are_written_back_byte_for_byte(published: Path, archive: str) -> None:
    source = open_source(published / "fluent_mlama" / archive)
    entries = find_dumps(source)
    assert len(entries) == COUNTS[archive]
    for _, _, name in entries:
        dump = read_dump(source, name)
        data = source.read(name)
        if archive == "stats.zip" and name in WITH_CARRIAGE_RETURNS:
            assert b"\r\n" in data
            data = data.replace(b"\r\n", b"\n") + b"\n"  # and lost its last line end
            assert dump.table.index.name == "Column1"
        assert format_dump(dump).encode("utf-8") == data
        assert dump.numbered == (archive != "stats.zip" or name not in WITHOUT_ROW_NUMBERS)


def test_scores_come_back_equal_and_bytes_are_deterministic(tmp_path: Path) -> None:
    frame = pd.DataFrame({
        "row": [3, 3], "sub_uri": ["Q1", "Q1"], "obj_uri": ["Q2", "Q2"], "verbalisation": ["template"] * 2, "candidate": ["NA", ""],
        "role": ["correct", "distractor"], "entity": ["", ""], "own": [True, False],
        "prompt_tokens": [7, 7], "prompt_logprob": [-9.5, -9.5], "token_ids": [[1, 2], [3]],
        "token_logprobs": [[-0.1, float("-inf")], [-1e-300]], "tail_tokens": [0, 0], "logprob": [float("-inf"), -1e-300],
    })  # fmt: skip
    write_scores(tmp_path / "a.scores.parquet", frame)
    write_scores(tmp_path / "b.scores.parquet", frame)
    assert (tmp_path / "a.scores.parquet").read_bytes() == (
        tmp_path / "b.scores.parquet"
    ).read_bytes()
    pd.testing.assert_frame_equal(
        read_scores(tmp_path / "a.scores.parquet"), frame.astype({"sub_uri": "str"})
    )
    (tmp_path / "c.scores.parquet").write_bytes((tmp_path / "a.scores.parquet").read_bytes()[:-20])
    with pytest.raises(UserError, match="not a readable scores file"):
        read_scores(tmp_path / "c.scores.parquet")


def test_run_record_comes_back_and_tells_a_changed_dump(tmp_path: Path) -> None:
    dump = tmp_path / "ru_P19_template_gt.tsv"
    dump.write_text("one\n", encoding="utf-8")
    record = RunRecord(
        lang="ru", relation="P19", verbalisations=("template", "gt"), model="some model", revision="", dtype="float32", device="cpu",
        arithmetic="float32", path="trie", path_reason="self-check passed", tokenisation="separate", bos="1", protocol="paper",
        pool_size=50, ties="correct-first", limit=None, data_name="ru_P19_20prompt.tsv", data_sha256="0123456789abcdef" * 4,
        rows_in=3, rows_scored=2, rows_left_out={"gt: ERROR": 1}, dump_sha256=file_sha256(dump), self_check={"largest gap": 1e-5},
    )  # fmt: skip
    assert record.signature == (
        "some_model@local|float32|float32|trie|tok:separate|bos:1|paper|pool:50|ties:correct-first|limit:none|data:01234567|v1.0.0"
    )
    write_run(run_path(dump), record)
    assert run_path(dump).name == "ru_P19_template_gt.run.json"
    assert read_run(run_path(dump)) == record
    assert is_as_written(dump, record)
    dump.write_text("two\n", encoding="utf-8")
    assert not is_as_written(dump, record)


def test_two_files_for_one_relation_ask_for_spec(tmp_path: Path) -> None:
    columns = (
        "sub_uri",
        "sub_label",
        "obj_uri",
        "obj_label",
        "template",
        "template_prompt",
        "aliases",
    )
    table = pd.DataFrame(
        [["Q1", "NA", "Q2", "null", "NA je null.", "NA je ", "None|||nan"]], columns=columns
    )
    for spec in ("one", "two"):
        write_benchmark(make_benchmark("cs", "P36", spec, table), tmp_path)
    with pytest.raises(UserError, match=r"--spec \(one, two\)"):
        read_benchmark(open_source(tmp_path), "cs", "P36")
    assert format_table(
        read_benchmark(open_source(tmp_path), "cs", "P36", "one").table
    ) == format_table(table)
