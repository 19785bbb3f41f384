"""Packs of a real run's size equal one forward a candidate, whatever a model does at some length, place or layer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.checking import first_layers
from fluent_mlama.scoring.contract import Candidate, Request
from fluent_mlama.scoring.selfcheck import Reach
from tests.long_tail import LONG_TAIL
from tests.tiny import ARCHITECTURES, LIMITED, byte_level_tokenizer, tiny_model, tiny_scorer

GAP = 5e-4
EXPECTED = {
    "gpt_neo": ("shared-prefix", 512),
    "gpt_neo-late": ("shared-prefix", 512),
    "long-rope": ("tree", 64),
    "phi3-long-rope": ("tree", 64),
    "llama4-temperature": ("shared-prefix", 512),
    "llama4-temperature-of-packs": ("shared-prefix", 512),
    "llama4-chunks": ("shared-prefix", 512),
    "qwen2-late-window": ("tree", 512),
    "cohere2": ("tree", 512),
    "gemma3": ("tree", 512),
}
"""Path, and how far it reaches: half of what fails, or all that was tried."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny matrices are fastest on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def asked(longest: int) -> list[Request]:
    """Some 3,000 fed tokens (a byte each): one long prompt, lengths around 64, and many short ones."""
    draw = random.Random(0)

    def text(count: int) -> str:
        return "".join(draw.choices("abcdefghij klmnop", k=count))

    requests = []
    for length in (
        longest,
        100,
        64,
        62,
        60,
        57,
        30,
        1,
        *(draw.randrange(1, 40) for _ in range(30)),
    ):
        shared = text(2)
        texts = [
            shared,
            shared + text(3),
            shared + text(9),
            *(text(draw.randrange(1, 9)) for _ in range(9)),
        ]
        requests.append(Request(text(length), tuple(map(Candidate, dict.fromkeys(texts)))))
    return requests


def largest_gap(scorer: CausalScorer, requests: list[Request], candidates: int) -> float:
    """Against a forward of its own for the longest and a few other candidates of every request."""
    scores = scorer.score(requests, tokenisation="separate")
    gap = 0.0
    for number, (tokens, score) in enumerate(
        zip(scorer.tokeniser.tokenise(requests, "separate"), scores, strict=True)
    ):
        by_length = sorted(
            range(len(tokens.candidates)), key=lambda i, t=tokens: -len(t.candidates[i].sequence)
        )
        for place in {
            by_length[0],
            *(number % len(by_length) + i - candidates for i in range(1, candidates)),
        }:
            gap = max(
                gap,
                abs(
                    alone(scorer.loaded.model, tokens.candidates[place])
                    - score.candidates[place].logprob
                ),
            )
    return gap


def alone(model: Any, tokens: Any) -> float:
    """A candidate's log-probability by one plain forward."""
    with torch.inference_mode():
        logprobs = model(torch.tensor([tokens.sequence])).logits[0].log_softmax(-1)
    return sum(
        logprobs[i - 1, tokens.sequence[i]].item()
        for i in range(tokens.start, len(tokens.sequence))
    )


@pytest.mark.parametrize("architecture", LIMITED)
def test_packs_of_real_size_equal_plain_forwards(architecture: str) -> None:
    scorer = tiny_scorer(architecture, byte_level_tokenizer())
    assert largest_gap(scorer, asked(200), candidates=2) < GAP
    check = scorer.describe().self_check
    assert (scorer.describe().path, check["reach"]) == EXPECTED[architecture]
    assert (check["beyond_reach"] > 0) == (check["reach"] == 64)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", LONG_TAIL)
def test_every_architecture_equals_plain_forwards(architecture: str) -> None:
    assert (
        largest_gap(tiny_scorer(architecture, byte_level_tokenizer()), asked(200), candidates=3)
        < GAP
    )


@pytest.mark.parametrize("path", ["tree", "shared-prefix", "padded", "plain"])
def test_a_long_rope_model_is_right_by_every_path_that_is_asked_for(path: str) -> None:
    scorer = tiny_scorer("long-rope", byte_level_tokenizer(), path=path)
    assert largest_gap(scorer, asked(80)[:8], candidates=8) < GAP
    assert scorer.describe().self_check["reach"] == 64


def test_sequences_beyond_the_reach_are_counted_and_share_nothing() -> None:
    scorer = tiny_scorer("long-rope", byte_level_tokenizer())
    request = Request(
        "x" * 61, tuple(map(Candidate, ("a", "ab", "abc", "abcd", "b")))
    )  # BOS and 61; 64 is the limit
    plan = scorer.plan([request], "separate")
    scores = scorer.score_pack(plan, 0)[0].candidates
    assert scorer.describe().self_check["beyond_reach"] == 2
    assert scores[2].token_logprobs[0] != pytest.approx(scores[1].token_logprobs[0], abs=1e-3)
    assert largest_gap(scorer, [request], candidates=5) < GAP


def test_a_path_reaches_further_when_longer_texts_come_until_it_fails() -> None:
    tried: list[int] = []

    def up_to_2048(length: int) -> bool:
        tried.append(length)
        return length <= 2048

    reach = Reach(512, up_to_2048)
    assert reach.covers(512) and tried == []
    assert reach.covers(1025) and tried == [1024, 2048]
    assert not reach.covers(2049) and not reach.covers(9000) and tried == [1024, 2048, 4096]
    assert reach.covers(2048)
    few = Reach(512, up_to_2048, most=700)
    assert few.covers(700) and few.length == 700


def test_a_window_longer_than_what_is_tried_at_load_is_met_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = {
        **LIMITED["llama4-chunks"][1],
        "attention_chunk_size": 600,
        "max_position_embeddings": 2048,
    }
    monkeypatch.setitem(LIMITED, "later", ("Llama4Text", sizes))
    scorer = tiny_scorer("later", byte_level_tokenizer())
    assert (scorer.describe().path, scorer.describe().self_check["reach"]) == ("tree", 512)
    assert largest_gap(scorer, asked(650)[:3], candidates=4) < GAP
    assert scorer.describe().self_check["reach"] == 512
    assert scorer.describe().self_check["beyond_reach"] == 13


@pytest.mark.parametrize(
    ("architecture", "layers"),
    [
        ("llama", 2),
        ("gpt_neo", 2),
        ("gpt_neo-late", 4),
        ("llama4-chunks", 4),
        ("gemma3", 6),
        ("qwen2-late-window", 4),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_copy_has_every_kind_of_layer_and_is_in_float32(
    architecture: str, layers: int, dtype: torch.dtype
) -> None:
    sizes = (ARCHITECTURES | LIMITED)[architecture][1]
    model = tiny_model(architecture, 300).to(dtype)
    small, shown = first_layers(model)
    total = sizes.get("num_hidden_layers", sizes.get("num_layers", 2))
    assert shown == f"its first {layers} of {total} layers"
    ids = torch.tensor([[5, 7, 9, 250]])
    with torch.inference_mode():
        assert small(ids).logits.dtype == torch.float32
        if layers == total:
            assert torch.allclose(
                small(ids).logits,
                model(ids).logits.float(),
                atol=1e-4 if dtype == torch.float32 else 2.0,
            )
    own = {parameter.data_ptr() for parameter in model.parameters()}
    assert (own >= {parameter.data_ptr() for parameter in small.parameters()}) == (
        dtype == torch.float32
    )
