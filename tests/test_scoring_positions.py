"""The number of tokens that a model takes is the number that it takes when tried."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from fluent_mlama.scoring.network import usable_positions
from tests.tiny_masked import MASKED, POSITIONS, tiny_masked_model

CAUSAL: dict[str, dict[str, Any]] = {
    "OPT": {"ffn_dim": 24, "word_embed_proj_dim": 16},  # its table has two rows more
    "BioGpt": {},
    "GPT2LMHead": {},
    "Roberta": {"is_decoder": True},
    "Bart": {
        "d_model": 16,
        "decoder_layers": 1,
        "decoder_ffn_dim": 24,
        "decoder_attention_heads": 2,
    },
    "Mpt": {"d_model": 16, "n_heads": 2, "n_layers": 1, "max_seq_len": POSITIONS},
}
BEYOND = {
    "deberta",
    "eurobert",
    "eurobert-long-rope",
    "modernbert",
    "nystromformer",
}  # nothing fails beyond their positions


def takes(model: Any, length: int) -> bool:
    try:
        with torch.inference_mode():
            model(input_ids=torch.full((1, length), 7))
    except (IndexError, RuntimeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("architecture", sorted(set(MASKED) - BEYOND))
def test_usable_positions_of_masked_models_are_those_that_work(architecture: str) -> None:
    model = tiny_masked_model(architecture, 20)
    longest = usable_positions(model)
    assert longest == (POSITIONS - 2 if MASKED[architecture].get("pad_token_id") else POSITIONS)
    assert [takes(model, longest), takes(model, longest + 1)] == [True, False]


@pytest.mark.parametrize("architecture", CAUSAL)
def test_usable_positions_of_causal_models_are_those_that_work(architecture: str) -> None:
    kind = getattr(
        transformers,
        f"{architecture}Model" if "LM" in architecture else f"{architecture}ForCausalLM",
    )
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 24,
    }
    usual = {} if architecture == "Mpt" else {"max_position_embeddings": POSITIONS}
    model = kind(
        kind.config_class(vocab_size=20, pad_token_id=1, **sizes, **usual, **CAUSAL[architecture])
    ).eval()
    longest = usable_positions(model)
    assert longest == (POSITIONS - 2 if architecture == "Roberta" else POSITIONS)
    assert [takes(model, longest), takes(model, longest + 1)] == [True, False]


def test_models_without_a_limit_have_none() -> None:
    config = transformers.BloomConfig(vocab_size=20, hidden_size=16, n_layer=1, n_head=2)
    assert usable_positions(transformers.BloomForCausalLM(config)) is None
