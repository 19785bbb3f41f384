"""Weights in oneDNN's order, the head in slices, layers in place: the same numbers as the plain model gives."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from types import MethodType
from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaMLP

from fluent.scoring import packed_linear as packed_module
from fluent.scoring import selfcheck
from fluent.scoring.contract import Arithmetic, Candidate, Request
from fluent.scoring.in_place import write_apart, write_over
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
    assert torch.allclose(packed.log_probabilities(hidden, rows, tokens), head(hidden).log_softmax(-1)[rows, tokens], atol=1e-4)
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
def test_a_head_in_slices_is_right_where_logits_are_far_apart(tokens: Sequence[int], value: float) -> None:
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
@pytest.mark.parametrize(
    ("architecture", "taken"),
    [
        ("llama", {"norm": 5, "gated": 2, "attention": 2, "layer": 2}),
        ("qwen2", {"norm": 5, "gated": 2}),
        ("gemma2", {}),
        ("gpt2", {}),
        ("mamba2", {"norm": 3}),  # its other norms take a gate
    ],
)
def test_layers_work_in_place_only_where_they_give_the_same_numbers(architecture: str, taken: dict[str, int]) -> None:
    model = tiny_model(architecture, 300)
    ids = torch.tensor([[5, 7, 9, 250], [8, 8, 8, 2]])
    before = model(ids).logits
    assert write_over(model) == sum(taken.values())
    assert write_over(model) == 0
    forwards = Counter(vars(module)["forward"].__name__ for module in model.modules() if "forward" in vars(module))
    assert forwards == {f"_{name}": count for name, count in taken.items()}
    assert torch.allclose(model(ids).logits, before, atol=1e-4)
    assert torch.equal(model(ids).logits, model(ids).logits)
    write_apart(model)
    assert torch.equal(model(ids).logits, before)
    assert not any("forward" in vars(module) for module in model.modules())


@torch.inference_mode()
def test_attention_in_place_leaves_a_cache_with_the_models_own_keys() -> None:
    model = tiny_model("llama", 300)
    ids = torch.tensor([[5, 7, 9, 250]])
    own = model(ids, use_cache=True).past_key_values
    write_over(model)
    cached = model(ids[:, :3], use_cache=True).past_key_values
    assert torch.allclose(model(ids[:, 3:], cache=cached).logits[:, -1], model(ids).logits[:, -1], atol=1e-4)
    for ours, theirs in zip(cached.layers, own.layers, strict=True):
        assert torch.allclose(ours.keys, theirs.keys, atol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("part", ["norm", "gated", "attention"])
def test_a_module_that_would_give_other_numbers_stays_as_it_is(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model("llama", 300)
    layer = model.model.layers[0]
    module = {"norm": layer.input_layernorm, "gated": layer.mlp, "attention": layer.self_attn}[part]
    own = type(module).forward

    def otherwise(self: Any, *args: Any, **more: Any) -> Any:
        result = own(self, *args, **more)
        return (result[0] + 0.01, *result[1:]) if isinstance(result, tuple) else result + 0.01

    monkeypatch.setattr(type(module), "forward", otherwise)
    write_over(model)
    assert "forward" not in vars(module)
    assert ("forward" in vars(layer)) == (part == "norm")


class Gated(torch.nn.Module):
    """A norm with a gate, of which ``LlamaRMSNorm`` has none."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8))
        self.variance_epsilon = 1e-6

    def forward(self, hidden: torch.Tensor, gate: torch.Tensor | None = None) -> torch.Tensor:
        scaled = hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * (scaled if gate is None else scaled * gate)


class Refusing(Gated):
    """One that wants rows of another size."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return hidden.view(7, 7)


@pytest.mark.parametrize("kind", [Gated, Refusing])
def test_a_module_that_only_looks_like_a_known_one_stays_as_it_is(kind: type[torch.nn.Module]) -> None:
    module = kind()
    assert write_over(module) == 0
    assert "forward" not in vars(module)


@torch.inference_mode()
@pytest.mark.parametrize("activation", ["gelu", "gelu_pytorch_tanh", "relu"])
def test_gated_layers_with_another_activation_stay_as_they_are_however_small_their_weights(activation: str) -> None:
    layer = LlamaMLP(LlamaConfig(hidden_size=32, intermediate_size=64, hidden_act=activation))
    for parameter in layer.parameters():
        parameter.normal_(std=0.003)
    assert write_over(layer) == 0
    layer.act_fn = torch.nn.SiLU()
    assert write_over(layer) == 1


def test_the_check_at_load_takes_back_what_works_in_place_before_it_gives_up_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, hidden: torch.Tensor) -> torch.Tensor:
        return torch.full_like(hidden, float("nan"))

    def write_wrong(model: Any) -> int:
        model.model.norm.forward = MethodType(wrong, model.model.norm)
        return 1

    monkeypatch.setattr(selfcheck, "write_over", write_wrong)
    monkeypatch.setattr(selfcheck, "write_apart", lambda model: vars(model.model.norm).pop("forward"))
    record = tiny_scorer("llama", byte_level_tokenizer()).describe().self_check["packed_linear"]
    assert record.startswith("15 layers, 0 modules in place, largest gap")
