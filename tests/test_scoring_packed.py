"""Weights in oneDNN's order, the head in slices: the same numbers as the plain model gives."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch

from fluent_mlama.scoring import network as packed_module
from fluent_mlama.scoring.contract import Arithmetic, Candidate, Request
from fluent_mlama.scoring.network import SLICE, PackedHead, can_pack, pack, unpack
from tests.tiny import byte_level_tokenizer, tiny_model, tiny_scorer

GAP = 5e-4
CANDIDATES = tuple(map(Candidate, (*"abcdefgh", "abc", "abd", "yz")))


@torch.inference_mode()
@pytest.mark.parametrize("sliced", [True, False])
def test_packed_layers_can_be_unpacked(sliced: bool) -> None:
    model = tiny_model("llama", 300)
    ids = torch.tensor([[5, 7, 9]])
    before = model(ids).logits
    if can_pack(model) is None:
        assert pack(model, model.get_output_embeddings() if sliced else None) == 15
        assert can_pack(model) == "they are already"
        assert torch.allclose(model(ids).logits, before, atol=1e-4)
        assert unpack(model) == 15
    assert torch.equal(model(ids).logits, before)


@pytest.mark.parametrize("bias", [True, False])
def test_a_head_in_slices_reads_what_whole_logits_give(bias: bool) -> None:
    head = torch.nn.Linear(24, 2 * SLICE + 77, bias=bias).requires_grad_(False)
    if can_pack(head) is not None:
        pytest.skip("oneDNN's packed product is not available in this torch")
    hidden = torch.randn(9, 24) * 8
    rows = torch.tensor([0, 0, 3, 4, 8, 8, 8])
    tokens = torch.tensor([0, SLICE, SLICE - 1, 2 * SLICE + 76, 2 * SLICE, 5, 5])
    packed = PackedHead(head)
    assert len(packed.slices) == 3
    assert torch.allclose(packed(hidden), head(hidden), atol=1e-4)
    assert torch.allclose(
        packed.log_probabilities(hidden, rows, tokens),
        head(hidden).log_softmax(-1)[rows, tokens],
        atol=1e-4,
    )
    assert torch.equal(packed.unpacked().weight, head.weight)


@torch.inference_mode()
@pytest.mark.parametrize(
    ("tokens", "value"),
    [
        ([0, SLICE], -1e4),  # first of a slice, where once a normaliser was read
        ([0, SLICE, 5], -math.inf),
        (range(SLICE, 2 * SLICE), -math.inf),  # a whole slice
        ([3], 1e4),
        ([SLICE + 1, 7], 1e30),
    ],
)
def test_a_head_in_slices_is_right_where_logits_are_far_apart(
    tokens: Sequence[int], value: float
) -> None:
    head = torch.nn.Linear(8, 2 * SLICE + 77).requires_grad_(False)
    if can_pack(head) is not None:
        pytest.skip("oneDNN's packed product is not available in this torch")
    head.bias[list(tokens)] = value
    hidden = torch.randn(3, 8)
    asked = torch.tensor([0, 1, 3, SLICE - 1, SLICE, SLICE + 1, 2 * SLICE, 2 * SLICE + 76])
    rows, wanted = torch.arange(3).repeat_interleave(len(asked)), asked.repeat(3)
    right = head(hidden).double().log_softmax(-1)[rows, wanted]
    found = PackedHead(head).log_probabilities(hidden, rows, wanted).double()
    assert torch.equal(found.isinf(), right.isinf())
    assert torch.allclose(found, right, atol=2e-5, rtol=1e-6)


@pytest.mark.parametrize("arithmetic", ["float32", "published-fp16"])
def test_a_packed_head_scores_as_a_plain_one(
    monkeypatch: pytest.MonkeyPatch, arithmetic: Arithmetic
) -> None:
    monkeypatch.setattr(packed_module, "SLICE", 64)
    asked = [Request("a prompt of some length", CANDIDATES), Request("another", CANDIDATES[:3])]
    scores = []
    for packed in (True, False):
        scorer = tiny_scorer("llama", byte_level_tokenizer(), packed=packed)
        scores.append(scorer.score(asked, tokenisation="separate", arithmetic=arithmetic))
    tolerance = (
        GAP if arithmetic == "float32" else 0.1
    )  # half a unit of fp16 at -50 is 0.016, and several are added
    for one, other in zip(*scores, strict=True):
        assert [c.logprob for c in one.candidates] == pytest.approx(
            [c.logprob for c in other.candidates], abs=tolerance
        )


def test_weights_stay_as_they_are_where_the_packed_ones_fail_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        PackedHead,
        "log_probabilities",
        lambda self, hidden, rows, tokens: torch.full((len(rows),), math.nan),
    )
    scorer = tiny_scorer("llama", byte_level_tokenizer())
    assert scorer.describe().self_check["packed_linear"].startswith("no: ")
    assert type(scorer.loaded.model.get_output_embeddings()) is torch.nn.Linear
    (score,) = scorer.score([Request("a prompt", CANDIDATES)], tokenisation="separate")
    assert all(candidate.logprob < 0 for candidate in score.candidates)
