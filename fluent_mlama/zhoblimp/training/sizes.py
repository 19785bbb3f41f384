"""Named model sizes (GPT-NeoX, the shapes of Pythia: Biderman et al. 2023, table 1) and amounts of tokens.

The names are Pythia's: what a size really counts depends on the tokenizer's vocabulary, and is told when training starts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fluent_mlama.console import UserError, split_list

if TYPE_CHECKING:
    from transformers import GPTNeoXConfig


@dataclass(frozen=True)
class Size:
    """Layers, width, attention heads, and the learning rate's peak."""

    layers: int
    width: int
    heads: int
    learning_rate: float


SIZES: dict[str, Size] = {
    "tiny": Size(2, 128, 4, 2e-3),
    "14M": Size(6, 128, 4, 1e-3),
    "70M": Size(6, 512, 8, 1e-3),
    "160M": Size(12, 768, 12, 6e-4),
    "410M": Size(24, 1024, 16, 3e-4),
    "1B": Size(16, 2048, 8, 3e-4),
    "1.4B": Size(24, 2048, 16, 2e-4),
}
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9}


def configuration(
    size: str, vocabulary_size: int, context: int, bos: int, eos: int
) -> GPTNeoXConfig:
    """The transformers configuration of a named size."""
    from transformers import GPTNeoXConfig

    shape = SIZES[size]
    return GPTNeoXConfig(
        vocab_size=vocabulary_size,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
        max_position_embeddings=context,
        bos_token_id=bos,
        eos_token_id=eos,
        tie_word_embeddings=False,
    )


def parse_tokens(text: str) -> int:
    """``3B``, ``100M``, ``50k`` or a plain number of tokens, at least 1."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmb]?)", text.strip().lower())
    amount = round(float(match[1]) * _UNITS[match[2]]) if match else 0
    if amount < 1:
        raise UserError(f"'{text}' is no amount of tokens; write e.g. 3B, 100M, 50k or 20000")
    return amount


def checkpoint_steps(checkpoints: str, budget: int, tokens_per_step: int) -> dict[int, int]:
    """Step -> tokens seen, for every wanted checkpoint and the end of the budget (rounded up to whole steps)."""
    wanted = sorted({parse_tokens(part) for part in split_list(checkpoints)} | {budget})
    if wanted[-1] > budget:
        raise UserError(
            f"--checkpoints asks for {wanted[-1]} tokens, --tokens allows {budget}; raise --tokens or leave it out"
        )
    steps = {-(-amount // tokens_per_step) for amount in wanted}
    return {step: step * tokens_per_step for step in sorted(steps)}


def checkpoint_name(tokens: int) -> str:
    """Folder name of the checkpoint after so many tokens; sorts by number."""
    return f"tokens-{tokens:012d}"


def tokens_of(name: str) -> int | None:
    """Tokens seen, from a checkpoint's folder name; None for any other name."""
    match = re.fullmatch(r"tokens-(\d+)", name)
    return int(match[1]) if match else None
