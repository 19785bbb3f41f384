"""Processor: what a dump holds, how a run goes on after it was stopped, and which folders are refused. No model."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fluent_mlama.console import UserError
from fluent_mlama.files import open_source
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.outputs import check_folder, format_summaries
from fluent_mlama.ranking.paper import gather_forms, select_rows
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.ranking.task import narrow_from_wide
from fluent_mlama.records.benchmark import Benchmark, make_benchmark, write_benchmark
from fluent_mlama.records.results import Dump, file_sha256, read_dump, read_run, read_scores
from tests.stand_in import StandInScorer, city_benchmark, small_benchmark

NAME = "cs_P19_template_gt.tsv"


def settings(folder: Path, **changes: object) -> Settings:
    return replace(Settings(model="stand-in", out=folder / "stats"), **changes)  # type: ignore[arg-type]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below ``folder`` with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def rank(
    folder: Path, benchmark: Benchmark, scorer: StandInScorer | None = None, **changes: object
) -> Processor:
    processor = Processor(benchmark, settings(folder, **changes))
    processor.rank(scorer or StandInScorer())
    return processor


def dump_of(folder: Path, name: str = NAME) -> Dump:
    return read_dump(open_source(folder), name)


def test_a_dump_its_twin_its_scores_and_its_record(tmp_path: Path) -> None:
    benchmark = city_benchmark()
    processor = rank(tmp_path, benchmark)
    names = {f"stats/{NAME}", f"stats_wide/{NAME}"} | {
        f"stats/cs_P19_template_gt.{end}" for end in ("run.json", "scores.parquet")
    }
    assert set(tree(tmp_path)) == {*names, "stats_wide/cs_P19_template_gt.run.json"}
    narrow, wide = dump_of(tmp_path / "stats"), dump_of(tmp_path / "stats_wide")
    kept = select_rows(benchmark, ("template", "gt")).kept
    assert narrow.table.index.tolist() == wide.table.index.tolist() == list(kept)
    ranked = ["true_ranks", "top1_correct", "prompt_prob", "top3_correct"]
    assert list(narrow.table.columns) == [
        *benchmark.table.columns,
        *(f"{v}_{part}" for v in ("template", "gt") for part in ranked),
    ]
    forms = gather_forms(benchmark, ("template", "gt"), kept)
    for row in kept:
        for v in ("template", "gt"):
            few, all_ranks = (
                narrow.table.loc[row, f"{v}_true_ranks"],
                wide.table.loc[row, f"{v}_true_ranks"],
            )
            assert set(few) == set(forms[row].correct)
            assert set(all_ranks) == {*forms[row].correct, *forms[row].aliases}
            assert list(narrow_from_wide(all_ranks, list(few)).items()) == list(few.items())
            assert narrow.table.loc[row, f"{v}_top1_correct"] == int(min(few.values()) == 1)
    record = read_run(processor.outputs.run)
    assert (record.rows_in, record.rows_scored, record.rows_left_out) == (
        30,
        27,
        {"gt: object not found": 3},
    )
    assert record.dump_sha256 == file_sha256(tmp_path / "stats" / NAME)
    assert record.signature.startswith(
        "stand-in@local|float32|float32|hash|tok:separate|bos:0|paper|rules:1|pool:50|sample:sha256-of-form|ties:correct-first|limit:none|data:"
    )
    scores = read_scores(processor.outputs.scores)
    assert set(scores["row"]) == set(kept)
    first = scores[(scores["row"] == 0) & (scores["verbalisation"] == "gt")]
    assert first["candidate"].tolist() == list(forms[0].candidates)
    assert first["role"].tolist()[:4] == ["correct", "correct", "alias", "distractor"]
    assert first["candidate"][first["own"]].tolist() == ["Praze"]
    asked = StandInScorer()._score(processor.task().questions[1].request)
    assert first["logprob"].tolist() == [part.logprob for part in asked.candidates]
    assert narrow.table.loc[0, "gt_prompt_prob"] == asked.prompt_logprob


def test_a_prompt_or_form_of_zero_tokens_leaves_the_row_out(tmp_path: Path) -> None:
    benchmark = city_benchmark(8)
    benchmark.table.loc[2, "template_prompt"] = ""
    record = read_run(rank(tmp_path, benchmark).outputs.run)
    assert record.rows_left_out == {"template: a prompt of zero tokens": 1}
    assert dump_of(tmp_path / "stats").table.index.tolist() == [0, 1, 3, 4, 5, 6, 7]


def test_what_cannot_be_ranked_at_all_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no row can be ranked .1 × gt: object not found"):
        rank(tmp_path, small_benchmark("Praha|v |ERROR|"))
    assert tree(tmp_path) == {}


def test_some_verbalisations_only(tmp_path: Path) -> None:
    processor = rank(tmp_path, city_benchmark(10), verbalisations=("template",))
    assert processor.outputs.dump.name == "cs_P19_template.tsv"
    assert len(dump_of(tmp_path / "stats", "cs_P19_template.tsv").table) == 10
    with pytest.raises(UserError, match="no verbalisation 'nllb'.*template, gt"):
        Processor(city_benchmark(10), settings(tmp_path, verbalisations=("gt", "nllb")))


def test_a_neutral_prompt_is_scored_for_every_candidate(tmp_path: Path) -> None:
    processor = rank(tmp_path, city_benchmark(10), neutral_prompt="Něco: ")
    scores = read_scores(processor.outputs.scores)
    assert scores.groupby("candidate")["neutral_logprob"].nunique().eq(1).all()
    without = read_scores(rank(tmp_path / "other", city_benchmark(10)).outputs.scores)
    assert scores["logprob"].tolist() == without["logprob"].tolist()


def test_limit_cuts_the_rows_and_never_the_pool(tmp_path: Path) -> None:
    benchmark = city_benchmark()
    limited = rank(tmp_path, benchmark, limit=4)
    record = read_run(limited.outputs.run)
    assert (record.rows_scored, record.rows_beyond_limit) == (4, 23)
    assert "|limit:4|" in record.signature
    few = dump_of(tmp_path / "stats").table
    full = Processor(benchmark, settings(tmp_path))
    assert full.state() == "replace"  # a full run never takes a limited dump for done
    assert Processor(benchmark, settings(tmp_path, limit=9)).state() == "replace"
    assert Processor(benchmark, settings(tmp_path, limit=3)).state() == "finished"
    full.rank(StandInScorer())
    assert dump_of(tmp_path / "stats").table.loc[few.index].equals(few)
    assert full.state() == "finished"
    assert Processor(benchmark, settings(tmp_path, limit=4)).state() == "finished"


def test_a_stopped_run_goes_on_with_its_packs_and_writes_the_same_bytes(tmp_path: Path) -> None:
    benchmark = city_benchmark()
    rank(tmp_path / "whole", benchmark)
    scored: list[int] = []
    for _ in range(3):
        scorer = StandInScorer(stop_after=2)
        with pytest.raises(RuntimeError, match="the machine stops"):
            rank(tmp_path / "stopped", benchmark, scorer)
        scored += scorer.packs_scored
        assert "stats/cs_P19_template_gt.tsv" not in tree(tmp_path / "stopped")
    (tmp_path / "stopped/stats/cs_P19_template_gt.packs/pack-000001.parquet").write_bytes(b"torn")
    last = StandInScorer()
    progress: list[tuple[int, int]] = []
    Processor(benchmark, settings(tmp_path / "stopped")).rank(
        last, lambda done, total: progress.append((done, total))
    )
    assert scored == [0, 1, 2, 3, 4, 5]
    assert last.packs_scored == [1, 6, 7]
    assert tree(tmp_path / "stopped") == tree(tmp_path / "whole")
    assert progress[0][0] > 0 and progress[-1] == (27, 27)


def test_stopped_before_any_file_is_moved_into_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = city_benchmark(12)
    rank(tmp_path / "whole", benchmark)
    move, moves = os.replace, 0

    def failing_move(source: object, target: object, *, fail_at: int) -> None:
        nonlocal moves
        moves += 1
        if moves == fail_at:
            raise KeyboardInterrupt
        move(source, target)  # type: ignore[arg-type]

    finished, fail_at = False, 0
    while not finished:
        fail_at, moves = fail_at + 1, 0
        folder = tmp_path / f"stopped-{fail_at}"
        with monkeypatch.context() as patch:
            patch.setattr(
                os,
                "replace",
                lambda source, target, at=fail_at: failing_move(source, target, fail_at=at),
            )
            try:
                rank(folder, benchmark)
                finished = True
            except KeyboardInterrupt:
                pass
        if not finished:
            assert Processor(benchmark, settings(folder)).state() == "missing"
            rank(folder, benchmark)
        assert tree(folder) == tree(tmp_path / "whole")
    assert fail_at > 8


_RUNNER = """
import sys, time
from pathlib import Path
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.benchmark import read_benchmark
from fluent_mlama.files import open_source
from fluent_mlama.processor import Processor
from tests.stand_in import StandInScorer

class Slow(StandInScorer):
    def score_pack(self, *arguments):
        time.sleep(0.01)
        return super().score_pack(*arguments)

benchmark = read_benchmark(open_source(sys.argv[1]), "cs", "P19")
print("begins", flush=True)
Processor(benchmark, Settings(model="stand-in", out=Path(sys.argv[2]) / "stats")).rank(Slow())
"""


def test_killed_at_ten_random_moments_the_files_are_the_same(tmp_path: Path, root: Path) -> None:
    benchmark = city_benchmark(300)
    write_benchmark(benchmark, tmp_path / "data")
    rank(tmp_path / "whole", benchmark)
    moments = random.Random(6)
    killed = 0
    command = [sys.executable, "-c", _RUNNER, str(tmp_path / "data"), str(tmp_path / "killed")]
    while True:
        process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "begins\n"
        if killed < 10:
            time.sleep(moments.uniform(0.0, 0.25))
            process.kill()
        status = process.wait()
        process.stdout.close()
        if status == 0:
            break
        assert status == -9
        killed += 1
    assert killed == 10
    left = {
        name: data
        for name, data in tree(tmp_path / "killed").items()
        if not name.endswith(".partial")
    }
    assert left == tree(tmp_path / "whole")


def test_packs_of_another_model_are_not_put_together(tmp_path: Path) -> None:
    benchmark = city_benchmark()
    with pytest.raises(RuntimeError):
        rank(tmp_path, benchmark, StandInScorer("other", stop_after=3))
    scorer = StandInScorer()
    rank(tmp_path, benchmark, scorer)
    assert scorer.packs_scored == list(range(8))
    rank(tmp_path / "whole", benchmark)
    assert tree(tmp_path / "stats") == tree(tmp_path / "whole/stats")


def test_a_dump_changed_by_hand_is_known(tmp_path: Path) -> None:
    processor = rank(tmp_path, city_benchmark())
    assert processor.state() == "finished"
    path = processor.outputs.dump
    path.write_text(path.read_text(encoding="utf-8").replace("Praha", "Prag"), encoding="utf-8")
    assert processor.state() == "changed"
    limited = rank(tmp_path / "limited", city_benchmark(), limit=3)
    limited.outputs.dump.write_text("mine", encoding="utf-8")
    with pytest.raises(
        UserError, match="changed or damaged since it was written; move it away or give --overwrite"
    ):
        Processor(city_benchmark(), settings(tmp_path / "limited")).state()
    assert (
        Processor(city_benchmark(), settings(tmp_path / "limited", overwrite=True)).state()
        == "missing"
    )


def test_a_lost_twin_is_made_anew(tmp_path: Path) -> None:
    processor = rank(tmp_path, city_benchmark())
    before = tree(tmp_path)
    assert processor.outputs.wide is not None
    processor.outputs.wide.unlink()
    assert processor.state() == "replace"
    processor.rank(StandInScorer())
    assert tree(tmp_path) == before


def test_folders_that_hold_something_else_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    benchmark = city_benchmark()
    write_benchmark(benchmark, tmp_path / "data")
    source = open_source(tmp_path / "data")
    here = settings(tmp_path)
    check_folder(here, source, [])
    processor = rank(tmp_path, benchmark)
    check_folder(here, source, [])
    for changes, words in (
        (
            {"model": "meta-llama/Llama-2-7b-hf"},
            "another model: stand-in, not meta-llama/Llama-2-7b-hf .*--out stats/llama-2-7b-hf,",
        ),
        (
            {"protocol": "corrected"},
            "another protocol: paper, not corrected .*--out stats/stand-in-corrected,",
        ),
        ({"arithmetic": "published-fp16"}, "another arithmetic"),
        ({"drop_empty_objects": True}, "another row filter"),
    ):
        with pytest.raises(UserError, match=words):
            check_folder(replace(here, **changes), source, [])  # type: ignore[arg-type]
        check_folder(replace(here, **changes), source, [processor.outputs])  # type: ignore[arg-type]
    with pytest.raises(UserError, match="another dtype: float32, not bfloat16"):
        check_folder(here, source, [], StandInScorer(dtype="bfloat16").describe())
    write_benchmark(city_benchmark(20), tmp_path / "other")
    with pytest.raises(UserError, match="dumps of other data: .*--out stats/stand-in-other,"):
        check_folder(here, open_source(tmp_path / "other"), [])
    processor.outputs.run.unlink()
    with pytest.raises(
        UserError,
        match="did not make .cs_P19_template_gt.tsv has no run record.*such as the published",
    ):
        check_folder(here, source, [])


def test_where_the_wide_twin_goes() -> None:
    def twin(out: str) -> str:
        return str(Settings(out=Path(out)).wide)

    assert twin("stats") == "stats_wide"
    assert twin("stats/X") == "stats_wide/X"
    assert twin("a/stats/x/y") == "a/stats_wide/x/y"
    assert twin("elsewhere") == "elsewhere_wide"
    assert Settings(protocol="corrected").wide is None


def test_the_corrected_protocol_from_the_same_class(tmp_path: Path) -> None:
    benchmark = city_benchmark(30)
    processor = rank(tmp_path, benchmark, protocol="corrected")
    assert set(tree(tmp_path)) == {
        f"stats/cs_P19_template_gt.{end}" for end in ("tsv", "run.json", "scores.parquet")
    }
    dump = dump_of(tmp_path / "stats")
    kept = [row for row in range(30) if row % 10 != 9 and row % 7 != 6]
    assert (dump.protocol, dump.table.index.tolist()) == ("corrected", kept)
    assert (dump.table["n_distractors"] == 5).all()
    record = read_run(processor.outputs.run)
    assert record.rows_left_out == {"gt: blank-prompt": 4, "gt: not-found": 3}
    assert (
        "|tok:joint|bos:0|corrected|rules:2|pool:50|sample:sha256-by-subject,seed:0,valid:"
        in record.signature
    )
    assert (record.extras["rows_with_few_distractors"], record.extras["straddling_candidates"]) == (
        23,
        0,
    )
    scores = read_scores(processor.outputs.scores)
    fact = scores[(scores["row"] == 0) & (scores["verbalisation"] == "gt")]
    assert fact["own"].all() and not fact["entity"].duplicated().any()
    best = fact.set_index("entity")["logprob"].sort_values(ascending=False)
    gold = benchmark.table.loc[0, "obj_uri"]
    assert dump.table.loc[0, "gt_rank"] == 1 + best.index.get_loc(gold)
    assert dump.table.loc[0, "gt_logprob"] == best[gold]
    assert dump.table["gt_all_forms_rank"].isna().all()
    assert processor.summary().few_distractors == 23


def test_equal_prompts_are_warned_of_below_the_table(tmp_path: Path) -> None:
    """In a verb-final language what differs comes behind the object, which protocol `paper` does not score."""
    rows = [f"Město{n}|t{n} |Městě{n}|" for n in range(8)]
    same = rank(tmp_path / "same", small_benchmark(*rows)).summary()
    assert same.same_prompts == {("template", "gt"): 8}
    told = format_summaries([same])
    assert "cs P19: template and gt have the same prompt in 8 of 8 rows" in told
    assert "take --protocol corrected" in told
    different = small_benchmark(*(row.replace("|t", "|s") for row in rows))
    assert rank(tmp_path / "other", different).summary().same_prompts == {}
    careful = rank(tmp_path / "careful", small_benchmark(*rows), protocol="corrected").summary()
    assert careful.same_prompts == {}


def test_a_fact_that_stands_twice_is_ranked_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = city_benchmark(6)
    twice = make_benchmark(
        benchmark.lang,
        benchmark.relation,
        benchmark.spec,
        pd.concat([benchmark.table, benchmark.table.iloc[[2]]]),
    )
    summary = Processor(twice, Settings(model="stand-in", out=tmp_path / "stats")).rank(
        StandInScorer("stand-in")
    )
    assert summary.rows_scored == 7
    assert "1 rows state a fact once more (the first: row 6, Q2 " in capsys.readouterr().err
