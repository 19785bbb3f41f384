"""Weights in oneDNN's order, the head in slices, gated layers in place: the same numbers as the plain model gives."""

from __future__ import annotations

import pytest
import torch

from fluent.scoring import packed_linear as packed_module
from fluent.scoring.contract import Arithmetic, Candidate, Request
from fluent.scoring.gated_mlp import write_apart, write_over
from fluent.scoring.packed_linear import SLICE, PackedHead, can_pack, pack, unpack
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
    assert torch.allclose(packed.log_probabilities(hidden, rows, tokens), head(hidden).log_softmax(-1)[rows, tokens], atol=1e-4)
    assert torch.equal(packed.unpacked().weight, head.weight)


@pytest.mark.parametrize("arithmetic", ["float32", "published-fp16"])
def test_a_packed_head_scores_as_a_plain_one(monkeypatch: pytest.MonkeyPatch, arithmetic: Arithmetic) -> None:
    monkeypatch.setattr(packed_module, "SLICE", 64)
    asked = [Request("a prompt of some length", CANDIDATES), Request("another", CANDIDATES[:3])]
    scores = []
    for packed in (True, False):
        scorer = tiny_scorer("llama", byte_level_tokenizer(), packed=packed)
        scores.append(scorer.score(asked, tokenisation="separate", arithmetic=arithmetic))
    tolerance = GAP if arithmetic == "float32" else 0.1  # half a unit of fp16 at -50 is 0.016, and several are added
    for one, other in zip(*scores, strict=True):
        assert [c.logprob for c in one.candidates] == pytest.approx([c.logprob for c in other.candidates], abs=tolerance)


@torch.inference_mode()
def test_gated_layers_work_in_place_only_where_they_give_the_same_numbers() -> None:
    hidden = torch.randn(1, 5, tiny_model("llama", 300).config.hidden_size)
    for architecture, taken in (("llama", True), ("qwen2", True), ("gemma2", False), ("gpt2", False)):
        model = tiny_model(architecture, 300)
        layers = sum(module.__class__.__name__.endswith("MLP") for module in model.modules())
        assert write_over(model) == (layers if taken else 0)
        assert write_over(model) == 0
        if taken:
            layer = model.model.layers[0].mlp
            after = layer(hidden)
            write_apart(model)
            assert torch.allclose(after, layer(hidden), atol=1e-5)
            assert "forward" not in vars(layer)
