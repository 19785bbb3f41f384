"""The engine benchmark's own arithmetic and report, on made-up timings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import scoring
from benchmarks.scoring_parts import own
from benchmarks.scoring_parts.report import compare, goals_of, write_report

PEERS = (
    "lm-eval, same ids",
    "lm-eval, same ids, batch 1",
    "lm-eval, text",
    "minicons",
    "LM-Pub-Quiz",
)


def timing(seconds: float) -> list[dict[str, Any]]:
    scores = [[-9.0, -1.0, -2.0, -3.0], [-9.0, -4.0, -2.5, -3.0]]
    return [{"seconds": seconds, "foreign": 0.01, "memory": 1000.0, "scores": scores}]


def made_up_results() -> dict[str, Any]:
    """Ours takes a second for everything, all others a hundred."""

    def of(names: Any, sets: tuple[str, ...]) -> dict[str, Any]:
        return {
            name: {one: timing(1.0 if name.startswith("ours") else 100.0) for one in sets}
            for name in names
        }

    grown = [
        {
            "pool": pool,
            "prompt": prompt,
            "budget": 2048,
            "nodes": pool * 3,
            "seconds": pool / 100,
            "memory": 900.0,
            "foreign": 0.0,
        }
        for pool in (10, 50)
        for prompt in (8, 50)
    ]
    return {
        "small": of((*own.VARIANTS, *PEERS), scoring.SMALL),
        "large": of(scoring.ON_LARGE, scoring.LARGE),
        "kernels": {"linear": 90.0, "packed": 100.0, "faster": 100.0, "flop_per_node": 1e9},
        "needed": dict.fromkeys(scoring.LARGE, {"nodes": 80, "attention_flop": 10e9}),
        "many": {"candidates": 940, "seconds": 4.7, "per_second": 200.0, "memory": 1100.0},
        "host": {
            f"{name} {how}": {"ms_per_fact": 1.5, "foreign": 0.0}
            for name in scoring.LARGE
            for how in ("separate", "joint")
        },
        "growth": grown,
        "budgets": [{**one, "budget": 512} for one in grown if one["prompt"] == 50],
        "minutes": 33.3,
    }


def test_report_keeps_both_runs_and_its_plots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in (1, 2, 1):
        assert write_report(made_up_results(), run, tmp_path) == 0
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert [text.count(f"<!-- begin scoring {run} -->") for run in (1, 2)] == [1, 1]
    assert {path.name for path in tmp_path.glob("*.png")} == {
        "scoring_speed.png",
        "scoring_growth.png",
    }
    assert "| against the reference, es " in capsys.readouterr().out


def test_missed_goal_is_told_and_is_the_exit_status(tmp_path: Path) -> None:
    results = made_up_results()
    assert all(reached for *_, reached in goals_of(results))
    results["host"]["ru20 joint"]["ms_per_fact"] = 2.1
    assert [what for what, *_, reached in goals_of(results) if not reached] == [
        "host work, largest"
    ]
    assert write_report(results, 1, tmp_path) == 1


def test_only_neighbours_closer_than_a_thousandth_may_swap() -> None:
    ours = [[0.0, -1.0, -2.0, -2.0004], [0.0, -1.0, -2.0, -3.0]]
    near = [[0.0, -1.0, -2.0003, -2.0001], [0.0, -1.0, -2.0, -3.0]]
    assert compare(ours, near)[1:] == (2, 2, 1)
    assert compare(ours, [near[0], [0.0, -2.0, -1.0, -3.0]])[1:] == (1, 2, 1)


def test_rehearsal_keeps_every_set_small() -> None:
    sets = {
        name: [{"prompt": "a", "candidates": list("abcdefghij" * 9)}] * 5
        for name in ("es4", "pool")
    }
    assert {
        name: [len(one["candidates"]) for one in kept]
        for name, kept in scoring.shorten(sets).items()
    } == {
        "es4": [6, 6],
        "pool": [50, 50],
    }
