"""The probes and ``datamodifier.py``, killed at random moments: what they leave in the end is what an undisturbed run leaves."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fluent_mlama.cpopqa.__main__ import main as cpopqa
from tests.fault_world import ROOT, finish, leave_packs, leftovers, outputs
from tests.mlama_world import write_toy
from tests.translating_world import PEOPLE, translate, write_mlama

KILLS = 12

BEGIN = """
import os, sys, time
from fluent_mlama.console import run_main
pause = float(os.environ["PAUSE"])
"""
ZHOBLIMP = (
    BEGIN
    + """
import fluent_mlama.zhoblimp.scores as scores
from fluent_mlama.zhoblimp.__main__ import main
from tests.test_zhoblimp_evaluate import CharacterScorer

class Slow(CharacterScorer):
    def score_pack(self, *arguments):
        time.sleep(pause)
        return super().score_pack(*arguments)

scores.model_identity = lambda *_: "first"
scores.load = lambda *_: Slow(lambda text, end: -(ord(text[end]) % 13) / 7 - end)
"""
)
CPOPQA = (
    BEGIN
    + """
import fluent_mlama.cpopqa.rank as rank
import fluent_mlama.scoring.causal as causal
from fluent_mlama.cpopqa.__main__ import main
from tests.stand_in import StandInScorer

class Slow(StandInScorer):
    def score_pack(self, *arguments):
        time.sleep(pause)
        return super().score_pack(*arguments)

rank.model_identity = lambda *_: "first"
causal.load_scorer = lambda name, **_: Slow(name)
"""
)
MLAMA = (
    BEGIN
    + """
import fluent_mlama.mlama.query as query
from fluent_mlama.mlama.__main__ import main
from tests.mlama_world import tiny_masked

def load(options):
    scorer = tiny_masked()
    typed = scorer.typed
    scorer.typed = lambda *arguments, **options: (time.sleep(pause), typed(*arguments, **options))[1]
    return scorer

query.load = load
"""
)
DATAMODIFIER = (
    BEGIN
    + """
from fluent_mlama.datamodifier import main
from fluent_mlama.translating import file

translate = file.FileTranslator.translate
file.FileTranslator.costly = True  # kept in the store, as a service's answers are
file.FileTranslator.translate = lambda self, items: (one for one in translate(self, items) if time.sleep(pause) is None)
"""
)
END = "\nprint('begins', flush=True)\nrun_main(main)\n"


def start(code: str, words: list[str], pause: float = 0.02) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code + END, *words], cwd=ROOT, env=os.environ | {"PAUSE": str(pause)}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "begins\n"
    return process


def zhoblimp(folder: Path, out: Path) -> list[str]:
    data = folder / "pairs"
    data.mkdir(exist_ok=True)
    for uid in ("a", "b", "c"):
        texts = [(f"{uid} {number} 好", f"{number} {uid} 好") for number in range(20)]
        rows = [
            {
                "UID": uid,
                "phenomenon": uid,
                "sentence_good": good,
                "sentence_bad": bad,
                "pairID": number,
            }
            for number, (good, bad) in enumerate(texts)
        ]
        (data / f"{uid}.jsonl").write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
        )
    return ["evaluate", "--model", "toy", "--data", str(data), "--out", str(out), "--no-plots"]


def mlama(folder: Path, out: Path) -> list[str]:
    if not (folder / "toy").exists():
        write_toy(folder / "toy")
    return [
        "query",
        "--model",
        "toy",
        "--method",
        "tyq",
        "--data",
        str(folder / "toy"),
        "--out",
        str(out),
    ]


def datamodifier(folder: Path, out: Path) -> list[str]:
    if not (folder / "mlama").exists():
        write_mlama(folder / "mlama")
        cities = ["Paris", "Berlin", "Rome", "London", "Moscow", "Prague"] * 2
        sentences = [
            f"{who} was born in {city} ." for who, city in zip(PEOPLE, cities, strict=True)
        ]
        (folder / "own.tsv").write_text(
            "".join(f"{one}\t{translate(one)}\n" for one in sentences), encoding="utf-8"
        )
    words = [
        "-l",
        "ru",
        "--mlama",
        str(folder / "mlama"),
        "--translator",
        f"own=file:{folder / 'own.tsv'}",
        "--aliases",
        "none",
    ]
    return [*words, "--out", str(out), "--store", str(out.with_suffix(".sqlite"))]


def without_times(files: dict[str, bytes]) -> dict[str, bytes]:
    """Run records hold when they were made."""
    made = dict(files)
    for name, data in files.items():
        if name.endswith(".run.json"):
            made[name] = json.dumps(json.loads(data) | {"times": None}).encode()
    return made


CASES: dict[str, tuple[str, Callable[[Path, Path], list[str]]]] = {
    "zhoblimp evaluate": (ZHOBLIMP, zhoblimp),
    "mlama query": (MLAMA, mlama),
    "datamodifier": (DATAMODIFIER, datamodifier),
}


def kill_at_random(code: str, words: list[str], usual: float, moments: random.Random) -> int:
    """Kill the command until it has been killed KILLS times or ends by itself; returns how often it was killed."""
    for killed in range(KILLS):
        process = start(code, words)
        time.sleep(moments.uniform(0.0, usual))
        process.kill()
        status, err = finish(process)
        if status != -signal.SIGKILL:
            assert status == 0, err
            return killed
    status, err = finish(start(code, words, pause=0))
    assert status == 0, err
    return KILLS


@pytest.mark.parametrize(
    ("case", "record"), [("zhoblimp evaluate", "*.run.json"), ("mlama query", "toy/**/*.run.json")]
)
def test_packs_of_a_run_that_was_killed_just_before_it_forgot_them(
    case: str, record: str, tmp_path: Path
) -> None:
    code, words_for = CASES[case]
    out = tmp_path / "out"
    assert finish(start(code, words_for(tmp_path, out), pause=0))[0] == 0
    whole = outputs(out)
    records = list(out.rglob(record))
    for path in records:
        leave_packs(path.with_name(path.name.replace(".run.json", ".packs")))
    assert len(leftovers(out)) == len(records) > 0
    assert finish(start(code, words_for(tmp_path, out), pause=0))[0] == 0
    assert (leftovers(out), outputs(out)) == ([], whole)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_killed_at_random_moments_the_outputs_are_the_same(case: str, tmp_path: Path) -> None:
    code, words_for = CASES[case]
    process, started = start(code, words_for(tmp_path, tmp_path / "whole")), time.monotonic()
    assert finish(process)[0] == 0
    usual, moments, killed, round_ = time.monotonic() - started, random.Random(case), 0, 0
    while killed < KILLS:
        round_ += 1
        out = tmp_path / f"killed{round_}"
        killed += kill_at_random(code, words_for(tmp_path, out), usual, moments)
        assert without_times(outputs(out)) == without_times(outputs(tmp_path / "whole"))
        assert [name for name in leftovers(out) if not name.endswith(".partial")] == []


@pytest.mark.slow
def test_answers_of_a_killed_cpopqa_are_the_same(tmp_path: Path) -> None:
    names = ("one", "two", "three", "four", "five", "six", "seven")
    lines = [
        "item,group,US",
        *(f"{group}{name},{group},{place}" for group in "xy" for place, name in enumerate(names)),
    ]
    (tmp_path / "things.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = []
    for name in ("whole", "killed"):
        data = tmp_path / name
        build = [
            "build",
            "--concepts",
            str(tmp_path / "things.csv"),
            "--n",
            "2,3",
            "--rounds",
            "2",
            "--questions",
            "6",
            "--shots",
            "1",
        ]
        assert cpopqa([*build, "--wording", "{concepts}: {options}?", "--out", str(data)]) == 0
        words = ["rank", "--data", str(data), "--model", "toy"]
        if name == "whole":
            process, started = start(CPOPQA, words), time.monotonic()
            assert finish(process)[0] == 0
            usual = time.monotonic() - started
        else:
            kill_at_random(CPOPQA, words, usual, random.Random(12))
        (answers,) = (data / "answers").glob("*.jsonl")
        found.append(answers.read_bytes())
    assert found[0] == found[1] and found[0].count(b"\n") > 10
