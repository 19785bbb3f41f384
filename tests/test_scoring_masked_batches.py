"""Masked models in batches give what each sequence gives alone, whatever the model makes of padding and of its batch."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import BertForMaskedLM

from fluent_mlama.console import UserError
from fluent_mlama.scoring.masked import MaskedScorer
from fluent_mlama.scoring.masked_network import REACH, Copy
from fluent_mlama.scoring.models import LoadedModel
from tests.mlama_world import wordpiece
from tests.tiny_masked import MASKED, POSITIONS, tiny_masked_model

WORDS = ("Paris", "is", "in")
PADDING_LEAKS = {
    "big_bird",
    "convbert",
    "eurobert-long-rope",
    "fnet",
    "mobilebert",
    "nystromformer",
    "reformer",
}
GAP = 1e-4


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny matrices are fastest on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@cache
def tokenizer() -> Any:
    return wordpiece(WORDS)


def model_of(architecture: str = "bert", **changes: Any) -> Any:
    return tiny_masked_model(architecture, len(tokenizer()), **changes)


def scorer_of(
    model: Any, *, tokens: Any = None, token_budget: int = 256, packed: bool = True
) -> MaskedScorer:
    number_type = str(model.dtype).removeprefix("torch.")
    loaded = LoadedModel(
        "tiny", "random", model, tokens or tokenizer(), torch.device("cpu"), number_type
    )
    return MaskedScorer(loaded, token_budget=token_budget, packed=packed)


def sentences(lengths: Sequence[int]) -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    drawn = (
        torch.randint(5, len(tokenizer()), (length - 3,), generator=generator).tolist()
        for length in lengths
    )
    return [[2, 4, *ids, 3] for ids in drawn]


def batched(scorer: MaskedScorer, asked: Sequence[list[int]]) -> list[Tensor]:
    """Log-probabilities ``[2, vocabulary]`` of each sentence at its mask and its last token."""
    found: dict[int, Tensor] = {}
    copies = [
        Copy(
            ids, [1, len(ids) - 1], lambda rows, number=number: found.update({number: rows.clone()})
        )
        for number, ids in enumerate(asked)
    ]
    scorer.network.run(copies)
    return [found[number] for number in range(len(asked))]


def alone(model: Any, ids: list[int]) -> Tensor:
    """The same by one forward; BigBird must not have seen shorter sentences."""
    fresh = copy.deepcopy(model) if hasattr(model.base_model, "set_attention_type") else model
    with torch.inference_mode():
        return fresh(input_ids=torch.tensor([ids])).logits[0, [1, -1]].float().log_softmax(-1)


def largest_gap(scorer: MaskedScorer, model: Any, lengths: Sequence[int]) -> float:
    asked = sentences(lengths)
    pairs = zip(batched(scorer, asked), (alone(model, ids) for ids in asked), strict=True)
    return max(float((mine - plain).abs().max()) for mine, plain in pairs)


@pytest.mark.parametrize("architecture", MASKED)
def test_batches_equal_plain_forwards(architecture: str) -> None:
    model = model_of(architecture)
    scorer = scorer_of(copy.deepcopy(model))
    assert largest_gap(scorer, model, [3, 5, 5, 12, 13, 20, POSITIONS - 2, 29, 12]) < GAP
    description = scorer.describe()
    assert description.path == ("equal-lengths" if architecture in PADDING_LEAKS else "padded")
    assert description.self_check["float32"]["largest_gap"] < GAP
    assert ("padded: scores are" in description.path_reason) == (architecture in PADDING_LEAKS)
    packed = description.self_check["packed_linear"]
    assert (
        ("no: model tiny cannot take" in packed)
        if architecture == "mobilebert"
        else packed.endswith(" layers")
    )


class IgnoresMask(BertForMaskedLM):
    """Attends to its padding. share: how much of that is in the logits."""

    share = 1.0

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **more: Any) -> Any:
        right = super().forward(input_ids=input_ids, attention_mask=attention_mask, **more)
        if self.share and attention_mask is not None and self.leaks(input_ids):
            right.logits = torch.lerp(
                right.logits, super().forward(input_ids=input_ids, **more).logits, self.share
            )
        return right

    def leaks(self, input_ids: Tensor) -> bool:
        return True


class LeaksALittle(IgnoresMask):
    share = 0.01


class LeaksInLargeBatches(IgnoresMask):
    def leaks(self, input_ids: Tensor) -> bool:
        return input_ids.numel() > 1500


class TakesNoMask(BertForMaskedLM):
    def forward(self, input_ids: Tensor) -> Any:
        return super().forward(input_ids=input_ids)


class OverTheBatch(nn.Module):
    """A norm that forgot which dimension is which."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden - hidden.mean(0, keepdim=True) / 2


class HeadOfNeighbours(nn.Module):
    """A head whose logits depend on the position before."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, hidden: Tensor) -> Tensor:
        return self.head(hidden + hidden.roll(1, dims=1))


def test_weights_that_mix_the_batch_are_scored_alone() -> None:
    model = model_of()
    model.bert.embeddings.LayerNorm = OverTheBatch()
    scorer = scorer_of(copy.deepcopy(model))
    assert scorer.network.batching == "plain"
    assert set(scorer.choice.record["refused"]) == {"padded", "equal-lengths"}
    assert "equal-lengths: scores are" in scorer.describe().path_reason
    assert largest_gap(scorer, model, [4, 4, 9, 9, 20]) < GAP


@pytest.mark.parametrize("kind", [IgnoresMask, LeaksInLargeBatches, TakesNoMask])
def test_padding_that_is_not_masked_is_left_out(kind: type[BertForMaskedLM]) -> None:
    model = model_of(kind=kind)
    scorer = scorer_of(copy.deepcopy(model), token_budget=2048)
    assert scorer.network.batching == "equal-lengths"
    assert largest_gap(scorer, model, [*range(3, 20)] * 10) < GAP


def test_a_head_that_reads_neighbours_gets_every_row() -> None:
    model = model_of()
    model.cls = HeadOfNeighbours(model.cls)
    scorer = scorer_of(copy.deepcopy(model))
    assert (scorer.network.batching, scorer.choice.record["head"]) == ("padded", "all rows")
    assert largest_gap(scorer, model, [3, 5, 12, 20]) < GAP


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bit_models_are_also_checked_in_float32(dtype: torch.dtype) -> None:
    name = str(dtype).removeprefix("torch.")
    check = scorer_of(model_of("modernbert").to(dtype)).describe().self_check
    assert (
        check["float32_checked_on"] == "its first 4 of 4 layers"
        and check["float32"]["largest_gap"] < GAP
    )
    assert check[name]["largest_gap"] < 1.0
    leaking = scorer_of(model_of(kind=LeaksALittle).to(dtype))  # far below what 16 bit rounds
    assert leaking.network.batching == "equal-lengths"


def test_sixteen_bit_models_whose_layers_cannot_be_copied_are_scored_alone() -> None:
    class CannotBeCopied(BertForMaskedLM):
        def __deepcopy__(self, memo: Any) -> Any:
            raise NotImplementedError

    scorer = scorer_of(model_of(kind=CannotBeCopied).to(torch.bfloat16))
    assert scorer.network.batching == "plain"
    assert "could not be tried in float32" in scorer.describe().path_reason


def test_a_model_that_does_not_repeat_itself_is_refused() -> None:
    model = model_of().train()  # dropout
    with pytest.raises(UserError, match="model tiny does not repeat its own scores"):
        scorer_of(model)


def test_a_model_that_takes_no_plain_sentence_is_one_line() -> None:
    with pytest.raises(
        UserError, match="model tiny cannot take a sentence of 34 tokens .RuntimeError: shape"
    ):
        scorer_of(model_of("nystromformer", segment_means_seq_len=16))


def test_sequences_longer_than_the_check_tried_are_fed_alone() -> None:
    class LeaksWhenLong(IgnoresMask):
        def leaks(self, input_ids: Tensor) -> bool:
            return input_ids.shape[1] > REACH

    model = model_of(kind=LeaksWhenLong, max_position_embeddings=REACH + 20)
    scorer = scorer_of(copy.deepcopy(model), token_budget=1024)
    assert scorer.network.batching == "padded"
    assert largest_gap(scorer, model, [REACH + 9, REACH + 9, REACH + 5, REACH, 100, 5]) < GAP


@pytest.mark.parametrize("pad", [None, "<extra>"])
def test_a_padding_token_that_the_model_does_not_have(pad: str | None) -> None:
    model = model_of("roberta", pad_token_id=1)
    without = copy.deepcopy(tokenizer())
    without.pad_token = pad
    if pad is not None:
        without.add_special_tokens({"pad_token": pad})
        assert without.pad_token_id >= model.config.vocab_size
    scorer = scorer_of(copy.deepcopy(model), tokens=without)
    assert scorer.network.batching == "padded"
    assert largest_gap(scorer, model, [3, 5, 12, 20]) < GAP


@pytest.mark.parametrize("architecture, forwards", [("bert", 2), ("fnet", 9)])
def test_good_models_keep_their_large_batches(architecture: str, forwards: int) -> None:
    scorer = scorer_of(model_of(architecture), token_budget=512)
    fed: list[int] = []
    scorer.loaded.model.register_forward_pre_hook(
        lambda _module, _positional, named: fed.append(len(named["input_ids"])), with_kwargs=True
    )
    batched(
        scorer, sentences([*range(4, 13)] * 9)
    )  # 81 sentences of 9 lengths, 648 tokens, 972 padded
    assert (len(fed), sum(fed)) == (forwards, 81)
