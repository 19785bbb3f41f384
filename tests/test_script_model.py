"""The whole way with the embedded model: ten facts equal the plain way, and a killed run equals an undisturbed one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.plain_scores import compare
from fluent_mlama.ranking.paper import paper_task
from fluent_mlama.records.benchmark import write_benchmark
from tests.stand_in import city_benchmark, small_benchmark

if TYPE_CHECKING:
    from fluent_mlama.scoring.causal import CausalScorer

TEN_FACTS = (
    "Вена|Франц Шуберт родился в |Вене|Vienna", "Вена|Карл Поппер родился в |Вене|Vienna", "Вена| Лиза Мейтнер родилась в |Вене|Vienna",
    "Madrid|Lope de Vega nació en |Madrid|Madrid", "Madrid|Plácido Domingo nació en |Madrid|Madrid",
    "Brno|Kurt Gödel se narodil v |Brně|Brno", "Brno|Milan Kundera se narodil v |Brně|Brno", "Brno| |Brně|Brno",
    "上海|姚明出生于|上海|Shanghai", "上海|刘翔出生于|上海|Shanghai",
)  # fmt: skip


@pytest.mark.model
def test_ten_facts_score_as_the_plain_way_does(smollm2: CausalScorer) -> None:
    task = paper_task(small_benchmark(*TEN_FACTS), ("gt",))
    assert len(task.rows) == 10
    result = compare(smollm2, task.requests())
    assert result.gap <= 5e-4
    assert result.wrong_lists == []
    assert (result.lists, result.candidates) == (10, 10 * 7)  # forms of `gt` and aliases


@pytest.mark.slow
@pytest.mark.model
def test_killed_with_the_embedded_model_the_files_are_the_same(tmp_path: Path, root: Path) -> None:
    write_benchmark(city_benchmark(14), tmp_path / "data")
    environment = os.environ | {"OMP_NUM_THREADS": "2", "HF_HUB_OFFLINE": "1"}

    def start(out: str) -> subprocess.Popen[bytes]:
        words = [
            "-l",
            "cs",
            "--data",
            str(tmp_path / "data"),
            "--model",
            "smollm2",
            "--out",
            str(tmp_path / out / "stats"),
        ]
        words += ["--token-budget", "256"]
        return subprocess.Popen(
            [sys.executable, "script.py", *words],
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
        )

    started = time.monotonic()
    assert start("whole").wait() == 0
    whole = time.monotonic() - started
    moments, killed = random.Random(10), 0
    while True:
        process = start("killed")
        if killed < 10:
            time.sleep(moments.uniform(0.4, 0.9) * whole)
            process.kill()
        status = process.wait()
        if status == 0:
            break
        assert status == -signal.SIGKILL
        killed += 1
    assert killed >= 2

    def tree(folder: Path) -> dict[str, bytes]:
        files = (
            path
            for path in folder.rglob("*")
            if path.is_file() and not path.name.endswith(".partial")
        )
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    assert tree(tmp_path / "killed") == tree(tmp_path / "whole")
