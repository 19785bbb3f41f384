"""The real ``comet-score`` on a model with random weights; only where COMET is installed (`make
comet`).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.fluency.judges import COMET_COMMAND, CometJudge, SentencePair

COMMAND = Path(
    os.environ.get("FLUENT_COMET", Path(__file__).resolve().parent.parent / COMET_COMMAND)
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not COMMAND.is_file(), reason=f"COMET is not installed at {COMMAND} (make comet)"
    ),
]
PAIRS = [
    SentencePair(f"Person {n} was born in Avel .", f"Человек {n} родился в Авеле.")
    for n in range(5)
]


def run(words: list[str], folder: Path) -> None:
    subprocess.run(
        words, cwd=folder, check=True, capture_output=True, env=os.environ | {"HF_HUB_OFFLINE": "1"}
    )


def test_our_scores_are_those_that_comet_writes(tmp_path: Path) -> None:
    run(
        [
            str(COMMAND.parent / "python"),
            str(Path(__file__).with_name("make_tiny_comet.py")),
            str(tmp_path / "tiny"),
        ],
        tmp_path,
    )
    checkpoint = tmp_path / "tiny" / "checkpoints" / "model.ckpt"
    judge = CometJudge(str(checkpoint), command=COMMAND, pairs_per_call=3)
    scores = judge.score(PAIRS, tmp_path / "work", "ru_P19")
    assert judge.label == "tiny/checkpoints/model.ckpt, scale unknown"
    (tmp_path / "s.txt").write_text("".join(f"{pair.source}\n" for pair in PAIRS), encoding="utf-8")
    (tmp_path / "t.txt").write_text(
        "".join(f"{pair.sentence}\n" for pair in PAIRS), encoding="utf-8"
    )
    words = [
        str(COMMAND),
        "-s",
        "s.txt",
        "-t",
        "t.txt",
        "--model",
        str(checkpoint),
        "--gpus",
        "0",
        "--to_json",
        "o.json",
        "--quiet",
    ]
    run(words, tmp_path)
    theirs = [
        row["COMET"]
        for row in json.loads((tmp_path / "o.json").read_text(encoding="utf-8"))["t.txt"]
    ]
    assert len(scores) == 5 and len(set(theirs)) > 1
    assert scores == pytest.approx(theirs, abs=2e-3)  # half precision, other batches


def test_a_model_that_cannot_be_had_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(
        UserError,
        match="COMET cannot get model Unbabel/wmt22-cometkiwi-da: .* licence must be accepted",
    ):
        CometJudge("Unbabel/wmt22-cometkiwi-da", command=COMMAND).score(
            PAIRS, tmp_path / "work", "ru_P19"
        )
