"""Evaluation: one pass, every linking function, each grouping; resume; bad input in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fluent_mlama.console import UserError
from fluent_mlama.linking import KINDS, Kind, Linking, parse_linking
from fluent_mlama.outcomes import read_outcomes
from fluent_mlama.runner.run import Busy, locked, run_job
from fluent_mlama.scoring.contract import (
    Arithmetic,
    CandidateScore,
    Plan,
    Request,
    RequestScore,
    ScorerDescription,
    Tokenisation,
)
from fluent_mlama.zhoblimp import scores as scoring
from fluent_mlama.zhoblimp.__main__ import main
from fluent_mlama.zhoblimp.data import PairRow, read_pairs
from fluent_mlama.zhoblimp.measures import (
    agreement,
    by_length,
    by_phenomenon,
    linking_functions,
    make_result,
    overall,
    published_key,
    sweep,
)
from fluent_mlama.zhoblimp.scores import Place, find_targets, score_pairs


class CharacterScorer:
    """A token is a character of log-probability ``cost``; fails after ``stop_after`` packs."""

    def __init__(
        self,
        cost: Callable[[str, int], float] = lambda text, end: -1.0,
        stop_after: int | None = None,
    ) -> None:
        self.cost, self.stop_after, self.packs_scored = cost, stop_after, 0

    def describe(self, tokenisation: Tokenisation = "separate") -> ScorerDescription:
        return ScorerDescription(
            "characters", "", "float32", "cpu", "none", "a stand-in", "1", {}, {}
        )

    def plan(self, requests: Sequence[Request], tokenisation: Tokenisation) -> Plan:
        assert tokenisation == "joint" and all(
            request.prompt == "" and len(request.candidates) == 2 for request in requests
        )
        numbers = range(len(requests))
        return Plan(
            tuple(requests),
            tokenisation,
            tuple(tuple(numbers[start : start + 2]) for start in numbers[::2]),
            {},
        )

    def score_packs(self, plan: Any, numbers: Any, arithmetic: Any = "float32") -> Any:
        for number in numbers:
            yield number, self.score_pack(plan, number, arithmetic)

    def score_pack(
        self, plan: Plan, number: int, arithmetic: Arithmetic = "float32"
    ) -> dict[int, RequestScore]:
        if self.stop_after is not None and self.packs_scored >= self.stop_after:
            raise RuntimeError("the machine stops")
        self.packs_scored += 1
        return {
            index: RequestScore((0,), (), 0.0, tuple(map(self._one, self._texts(plan, index))))
            for index in plan.packs[number]
        }

    @staticmethod
    def _texts(plan: Plan, index: int) -> list[str]:
        return [candidate.text for candidate in plan.requests[index].candidates]

    def _one(self, text: str) -> CandidateScore:
        values = tuple(self.cost(text, end) for end in range(len(text)))
        return CandidateScore(tuple(map(ord, text)), values, sum(values))


def row(uid: str, number: int, good: str, bad: str, phenomenon: str = "p") -> PairRow:
    source = {
        "UID": uid,
        "phenomenon": phenomenon,
        "sentence_good": good,
        "sentence_bad": bad,
        "pairID": number,
    }
    return PairRow(uid, phenomenon, good, bad, number, source)


ROWS = [
    row("a", 0, "aab", "aabb"),
    row("a", 1, "ab", "ba"),
    row("b", 0, "abb", "bb", "q"),
    row("c", 0, "a", "aa", "q"),
    row("c", 1, "b", "aa", "q"),
]


def test_lengths_ties_and_groups_are_counted(tmp_path: Path) -> None:
    frame = score_pairs(CharacterScorer(), ROWS, Place(tmp_path, "main"), "toy")
    result = make_result("toy", frame)
    lp, mean = Linking("lp"), Linking("mean")
    assert result.frame["length"].tolist() == [
        "bad is longer",
        "equal length",
        "good is longer",
        "bad is longer",
        "bad is longer",
    ]
    assert result.correct(lp).tolist() == [True, False, False, True, True] and result.ties(lp) == 1
    assert not result.correct(mean).any() and result.ties(mean) == 5
    table = overall(result, [lp, mean], {})
    assert table["micro"].tolist() == [0.6, 0.0]
    assert table["macro paradigms"].tolist() == [0.5, 0.0] and table[
        "macro phenomena"
    ].tolist() == [0.5, 0.0]
    assert by_phenomenon(result, [lp])["lp"].to_dict() == {"p": 0.5, "q": 0.5}
    assert by_length(result, [lp])["pairs"].tolist() == [1, 1, 3]
    assert sweep(result)["all"].tolist() == [0.6] * 20 + [0.0]


def test_a_log_probability_of_zero_is_a_token(tmp_path: Path) -> None:
    scorer = CharacterScorer(lambda text, end: 0.0 if end == 0 else -1.0)
    result = make_result(
        "toy", score_pairs(scorer, [row("a", 0, "ab", "abc")], Place(tmp_path, "main"), "toy")
    )
    assert (
        result.good.tokens.tolist() == [2]
        and Linking("mean").kind
        and result.scores(Linking("mean"))[0].tolist() == [-0.5]
    )


def test_all_gives_the_published_grids_once_each() -> None:
    functions = linking_functions(["all"])
    kinds = [one.kind for one in functions]
    assert (
        kinds.count("slln"),
        kinds.count("log"),
        kinds.count("morcela"),
        len(set(functions)),
    ) == (9, 3, 110, len(functions))
    assert (
        published_key(parse_linking("slln:0.5")) == "pow0.5_norm_lp"
        and published_key(parse_linking("morcela:0.5:4")) == "morcela_0.5_4"
    )
    with pytest.raises(UserError, match="pmi"):
        linking_functions(["lp", "pmi"])


def test_pairs_in_the_layout_of_blimp_are_read(tmp_path: Path) -> None:
    line = {
        "sentence_good": "Cats sleep.",
        "sentence_bad": "Cats sleeps.",
        "field": "morphology",
        "linguistics_term": "agreement",
    }
    (tmp_path / "sv.jsonl").write_text(
        json.dumps({**line, "UID": "sv", "pairID": "17"}) + "\n", encoding="utf-8"
    )
    (one,) = read_pairs(tmp_path)["sv"]
    assert (one.phenomenon, one.number, one.good, one.source["field"]) == (
        "agreement",
        17,
        "Cats sleep.",
        "morphology",
    )


def test_agreement_is_spearman_over_the_uids_in_common() -> None:
    accuracy = pd.Series({"a": 0.1, "b": 0.5, "c": 0.9, "d": 0.2})
    assert agreement(accuracy, {"a": 0.7, "b": 0.8, "c": 0.9, "z": 0.1}) == (pytest.approx(1.0), 3)
    rho, joined = agreement(accuracy, {"a": 0.9})
    assert np.isnan(rho) and joined == 1


def test_an_interrupted_pass_goes_on_and_gives_the_same(tmp_path: Path) -> None:
    def cost(text: str, end: int) -> float:
        return -0.1 * (ord(text[end]) % 7 + 1) / (end + 1)

    undisturbed = score_pairs(CharacterScorer(cost), ROWS, Place(tmp_path / "a", "main"), "toy")
    place = Place(tmp_path / "b", "main")
    with pytest.raises(RuntimeError):
        score_pairs(CharacterScorer(cost, stop_after=2), ROWS, place, "toy")
    resumed = CharacterScorer(cost)
    assert (
        score_pairs(resumed, ROWS, place, "toy").equals(undisturbed) and resumed.packs_scored == 1
    )


@dataclass
class World:
    """The command with stand-ins for models: which were loaded, which fail, and what they are."""

    folder: Path
    loaded: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    identity: str = "first"

    def load(self, target: scoring.Target, _: object) -> CharacterScorer:
        if target.name in self.broken:
            raise UserError(f"{target.name} is damaged")
        self.loaded.append(target.name)
        return CharacterScorer(lambda text, end: -1.0 - (ord(text[end]) % 5) / 10)

    def run(self, *words: str) -> int:
        data, out = self.folder / "pairs.jsonl", self.folder / "out"
        return main(["evaluate", "--data", str(data), "--out", str(out), *words])


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(scoring, "load", made.load)
    monkeypatch.setattr(scoring, "model_identity", lambda *_: made.identity)
    lines = [json.dumps(one.source) + "\n" for one in ROWS]
    (tmp_path / "pairs.jsonl").write_text("".join(lines), encoding="utf-8")
    return made


def test_the_command_writes_tables_pairs_and_plots_and_does_not_score_twice(
    world: World, tmp_path: Path
) -> None:
    out, loaded = tmp_path / "out", world.loaded
    (tmp_path / "human.csv").write_text("UID,acc\na,1.0\nb,0.5\nc,0.75\n", encoding="utf-8")
    words = ["--model", "one,org/two", "--linking", "all", "--human", str(tmp_path / "human.csv")]
    assert world.run(*words) == 0 and len(loaded) == 2
    before = {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    assert world.run(*words) == 0 and len(loaded) == 2
    assert before == {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    names = {path.relative_to(out).as_posix() for path in before}
    assert {
        "one/main.jsonl",
        "org--two/main.jsonl",
        "tables/overall.tex",
        "plots/alpha.pdf",
        "plots/phenomena.png",
        "plots/human.png",
    } <= names
    first = json.loads((out / "one" / "main.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (
        first["UID"] == "a"
        and first["length"] == "bad is longer"
        and first["lp_good"] > first["lp_bad"]
    )
    assert "pow0.5_norm_lp_good" in first and "morcela_0.5_4_good" not in first
    overall_table = (out / "tables" / "overall.tsv").read_text(encoding="utf-8").splitlines()
    assert len(overall_table) == 1 + 2 * len(linking_functions(["all"]))
    run = json.loads((out / "one" / "main.run.json").read_text(encoding="utf-8"))
    assert run["extras"]["settings"]["identity"] == "first"
    assert run["signature"].startswith(
        "characters@local|float32|float32|none|tok:joint|bos:1|zhoblimp|pool:2|ties:wrong|"
    )
    world.identity = "second"
    assert world.run(*words) == 0 and len(loaded) == 4


def test_a_model_that_fails_does_not_stop_the_others(world: World, tmp_path: Path) -> None:
    world.broken.add("two")
    words = ["--model", "one", "--model", "two,three", "--no-plots"]
    with pytest.raises(UserError, match="1 of 3 models failed, .*two is damaged"):
        world.run(*words)
    table = read_outcomes(tmp_path / "out").rows
    assert {name.partition(":")[0] for name in table["condition"]} == {"one", "three"}
    world.broken.clear()
    assert world.run(*words) == 0 and world.loaded == ["one", "three", "two"]


def test_scores_are_made_by_one_run_at_a_time(tmp_path: Path) -> None:
    job = scoring.Pairs(ROWS, Place(tmp_path, "main"), "toy", {"pairs_sha256": "0"})
    with locked(job.target), pytest.raises(Busy, match="another run is at work"):
        run_job(job, CharacterScorer())
    assert run_job(job, CharacterScorer()) and not run_job(job, CharacterScorer())


def test_a_linking_function_is_one_row_which_other_code_may_add(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = Kind(lambda known, p: -np.abs(known.tokens - p[0]), (3.0,))
    monkeypatch.setitem(KINDS, "near", added)
    assert world.run("--model", "one", "--linking", "near,lp,near:2", "--no-plots") == 0
    rows = read_outcomes(tmp_path / "out").rows
    right = rows[rows["condition"] == "near:3"]["rank"] == 1
    lengths = [(len(one.good), len(one.bad)) for one in ROWS]
    assert right.tolist() == [abs(good - 3) < abs(bad - 3) for good, bad in lengths]
    first = (tmp_path / "out" / "one" / "main.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert json.loads(first)["near:2_bad"] == -2.0


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--revisions", "ALL"], "--revisions ALL needs a local folder"),
        (["--model", "other/model"], "two models would both be called"),
    ],
)
def test_models_not_found_or_of_one_name_are_one_line(
    more: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.jsonl").write_text(json.dumps(ROWS[0].source) + "\n", encoding="utf-8")
    with pytest.raises(UserError) as error:
        main(["evaluate", "--model", "some/model", "--data", "pairs.jsonl", "--out", "out", *more])
    assert complaint in str(error.value) and not (tmp_path / "out").exists()


def test_checkpoints_of_a_folder_come_in_order(tmp_path: Path) -> None:
    for name in ("step10", "step9", "step100", "step²"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}", encoding="utf-8")
    assert [target.revision for target in find_targets([str(tmp_path)], ["ALL"])] == [
        "step9",
        "step10",
        "step100",
        "step²",
    ]
    with pytest.raises(UserError, match="no checkpoint 'step1'; there are: step9"):
        find_targets([str(tmp_path)], ["step1"])


def test_a_uniform_model_is_right_exactly_where_the_bad_sentence_is_longer(
    published: Path, tmp_path: Path
) -> None:
    paradigms = read_pairs(published / "zhoblimp" / "ZhoBLiMP.tar.gz")
    rows = [one for rows in paradigms.values() for one in rows]
    assert (len(paradigms), len({one.phenomenon for one in rows}), len(rows)) == (118, 15, 35400)
    lengths = {
        "good_ids": [range(len(one.good)) for one in rows],
        "bad_ids": [range(len(one.bad)) for one in rows],
    }
    values = {
        "good_logprobs": [[-1.0] * len(one.good) for one in rows],
        "bad_logprobs": [[-1.0] * len(one.bad) for one in rows],
    }
    texts = pd.DataFrame([(one.uid, one.phenomenon, one.number, one.good, one.bad) for one in rows])
    frame = texts.set_axis(["uid", "phenomenon", "number", "good", "bad"], axis=1).assign(
        **lengths, **values
    )
    result = make_result("uniform", frame)
    table = overall(result, [Linking("lp"), Linking("mean")], {}).set_index("function")
    assert (
        table["micro"].to_dict() == {"lp": pytest.approx(5855 / 35400), "mean": 0.0}
        and table.loc["mean", "ties"] == 35400
    )
    assert by_length(result, [Linking("lp")])["pairs"].tolist() == [23347, 6198, 5855]
    assert by_phenomenon(result, [Linking("lp")])["lp"].round(4).to_dict() == {
        "BA": 0.3846, "anaphor": 0.1667, "argument_structure": 0.0, "classifier": 0.3333, "control_raising": 0.1492, "ellipsis": 0.5822,
        "fci_licensing": 0.2, "nominal_expression": 0.4545, "npi_licensing": 0.0, "passive": 0.0, "quantifiers": 0.0, "question": 0.1035,
        "relativization": 0.5, "topicalization": 0.0, "verb_phrase": 0.0,
    }  # fmt: skip
