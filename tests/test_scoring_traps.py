"""Traps that other tools fell into: lengths, caches that mix models, scores that say nothing, state between files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.linking import evidence, parse_linking
from fluent_mlama.runner.run import PackStore, fingerprint
from fluent_mlama.scoring.causal import check
from fluent_mlama.scoring.contract import Candidate, CandidateScore, Request, RequestScore
from tests.tiny import byte_level_tokenizer, tiny_scorer

ASKED = [Request("He lives in", (Candidate(" Paris"), Candidate(" the city of Paris")))]


def test_three_reductions_are_three_declared_numbers() -> None:
    (found,) = tiny_scorer("llama", byte_level_tokenizer()).score(ASKED, tokenisation="joint")
    texts = [candidate.text.strip() for candidate in ASKED[0].candidates]
    known = evidence(
        [one.logprob for one in found.candidates],
        [len(one.token_ids) for one in found.candidates],
        characters=[len(text) for text in texts],
    )
    for one in found.candidates:
        assert one.logprob == pytest.approx(
            sum(one.token_logprobs)
        )  # the engine's own number is the sum
    for number, (one, text) in enumerate(zip(found.candidates, texts, strict=True)):
        by_name = {
            name: parse_linking(name).score(known)[number] for name in ("lp", "mean", "per-char")
        }
        total = sum(one.token_logprobs)
        assert by_name == pytest.approx(
            {"lp": total, "mean": total / len(one.token_ids), "per-char": total / len(text)}
        )
        assert len(set(by_name.values())) == 3


def changes(scorer: Any) -> dict[str, str]:
    """The key of stored packs when one thing after the other is different."""
    description, plan = scorer.describe(), scorer.plan(ASKED, "separate")
    fewer = [replace(ASKED[0], candidates=ASKED[0].candidates[:1])]
    return {
        "nothing": fingerprint(plan, description, "float32"),
        **{
            name: fingerprint(plan, replace(description, **{name: value}), "float32")
            for name, value in {
                "model": "B", "revision": "2", "dtype": "bfloat16", "device": "cuda:0", "path": "plain", "bos": "<s>"
            }.items()
        },
        "arithmetic": fingerprint(plan, description, "published-fp16"),
        "tokenisation": fingerprint(scorer.plan(ASKED, "joint"), description, "float32"),
        "candidates": fingerprint(scorer.plan(fewer, "separate"), description, "float32"),
    }  # fmt: skip


def test_stored_scores_of_one_model_are_never_those_of_another(tmp_path: Path) -> None:
    a = tiny_scorer("llama", byte_level_tokenizer())
    keys = changes(a)
    assert len(set(keys.values())) == len(keys)
    plan = a.plan(ASKED, "separate")
    first = PackStore(tmp_path / "x.packs", keys["nothing"])
    first.save(0, a.score_pack(plan, 0))
    assert PackStore(tmp_path / "x.packs", keys["nothing"]).finished() == {0: a.score_pack(plan, 0)}
    other = PackStore(tmp_path / "x.packs", keys["model"])
    assert (other.discarded, other.finished()) == (1, {})


@pytest.mark.parametrize("value", [0.0, -1.5])
def test_scores_that_are_all_alike_are_an_error_and_no_chance_level(value: float) -> None:
    asked = Request("a prompt", tuple(map(Candidate, "xyz")))
    same = RequestScore(
        (0,), (), 0.0, tuple(CandidateScore((i,), (value,), value) for i in range(3))
    )
    with pytest.raises(UserError, match="'a prompt'"):
        check(asked, same)


def test_scores_are_log_probabilities_and_no_losses() -> None:
    scorer = tiny_scorer("llama", byte_level_tokenizer())
    (found,) = scorer.score(ASKED, tokenisation="separate")
    assert all(value < 0 for one in found.candidates for value in one.token_logprobs)
    alphabet = [Request("ab", tuple(Candidate(chr(code)) for code in range(33, 127)))]
    (all_next,) = scorer.score(alphabet, tokenisation="separate")
    assert (
        0 < sum(2.718281828459045**one.logprob for one in all_next.candidates) < 1
    )  # a part of all that may follow


def test_order_of_files_changes_nothing_and_the_model_is_left_as_it_was() -> None:
    scorer = tiny_scorer("llama", byte_level_tokenizer())
    files = [
        [
            Request(f"{name} {number} is", (Candidate(" a"), Candidate(" bcd")))
            for number in range(3)
        ]
        for name in ("P19", "P36", "P103")
    ]
    model = scorer.loaded.model
    before = (
        model.config._attn_implementation,
        {name: tensor.clone() for name, tensor in model.state_dict().items()},
    )
    forwards = [scorer.score(one, tokenisation="joint") for one in files]
    backwards = [scorer.score(one, tokenisation="joint") for one in reversed(files)][::-1]
    assert forwards == backwards == [scorer.score(one, tokenisation="joint") for one in files]
    assert model.config._attn_implementation == before[0]
    assert all(
        tensor.equal(before[1][name])
        for name, tensor in model.state_dict().items()
        if not tensor.is_mkldnn
    )
