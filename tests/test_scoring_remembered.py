"""The check at load, remembered: taken from an earlier run only where nothing that it depends on has changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import byte_level_tokenizer, tiny_model

from fluent_mlama.scoring import remembered, selfcheck
from fluent_mlama.scoring.causal import CausalScorer, load_scorer


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A cache of its own, and the checks that are made from here on."""
    monkeypatch.setenv("FLUENT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FLUENT_CHECK", raising=False)
    made: list[str] = []
    original = selfcheck.Check.trials

    def counted(self: selfcheck.Check, names: object, refused: object) -> object:
        made.append("check")
        return original(self, names, refused)  # type: ignore[arg-type]

    monkeypatch.setattr(selfcheck.Check, "trials", counted)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = byte_level_tokenizer()
    tiny_model("llama", len(tokenizer)).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def scores(scorer: CausalScorer) -> list[float]:
    from fluent_mlama.scoring.contract import Candidate, Request

    request = Request("Paris is", (Candidate(" the capital"), Candidate(" a city")))
    (found,) = scorer.score([request], tokenisation="joint")
    return [candidate.logprob for candidate in found.candidates]


def test_the_second_load_runs_no_forward_and_says_the_same(
    folder: Path, checks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_scorer(str(folder))
    told, numbers = first.describe("joint"), scores(first)
    forwards: list[str] = []
    hook = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, _: forwards.append(type(module).__name__)
    )
    try:
        second = load_scorer(str(folder))
    finally:
        hook.remove()
    assert (checks, forwards) == (["check"], [])
    assert second.describe("joint") == told
    assert scores(second) == numbers


def test_another_content_is_checked(folder: Path, checks: list[str]) -> None:
    load_scorer(str(folder))
    tiny_model("llama", len(byte_level_tokenizer()), seed=1).save_pretrained(folder)
    load_scorer(str(folder))
    assert len(checks) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"token_budget": 1024},
        {"path": "padded"},
        {"add_bos": True},
    ],
)
def test_other_options_are_checked(
    folder: Path, checks: list[str], change: dict[str, object]
) -> None:
    load_scorer(str(folder))
    load_scorer(str(folder), **change)  # type: ignore[arg-type]
    assert len(checks) == 2


def test_other_code_packages_threads_and_processors_are_checked(
    folder: Path, checks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load_scorer(str(folder))
    for name, value in (
        ("_code", lambda: "other"),
        ("versions", lambda: {"torch": "0"}),
        ("_processor", lambda device: ["other"]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(remembered, name, value)
            load_scorer(str(folder))
    assert len(checks) == 4


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"method": "tree"}', b'{"method": 1}'])
def test_a_damaged_file_is_as_if_it_were_not_there(
    folder: Path, checks: list[str], tmp_path: Path, damage: bytes
) -> None:
    load_scorer(str(folder))
    (kept,) = (tmp_path / "cache" / "checks").iterdir()
    kept.write_bytes(damage)
    load_scorer(str(folder))
    assert len(checks) == 2


def test_the_environment_asks_for_a_check_every_time(
    folder: Path, checks: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLUENT_CHECK", "always")
    load_scorer(str(folder))
    load_scorer(str(folder))
    assert len(checks) == 2
    assert not (tmp_path / "cache" / "checks").exists()


def test_longer_texts_than_the_remembered_reach_are_still_tried(
    folder: Path, checks: list[str]
) -> None:
    load_scorer(str(folder))
    scorer = load_scorer(str(folder))
    before = scorer.choice.reach.length
    scorer.choice.reach.most = None
    assert scorer.choice.reach.covers(before)
    tried = scorer.choice.reach.try_length(before)
    assert tried and checks == ["check"]
