"""How long a text a model takes: its positions less those that its table of position embeddings keeps for itself."""

from __future__ import annotations

from typing import Any


def usable_positions(model: Any) -> int | None:
    """Number of tokens of the longest sequence that ``model`` takes; None if nothing limits it.

    RoBERTa and its kin count positions from ``padding_idx + 1``, so that many rows of their learned table are never a
    token's: 514 rows are 512 positions. OPT and BART add their offset to the table instead, and the config is right.
    """
    config = model.config.get_text_config()
    limits = [
        getattr(config, name, None) for name in ("max_position_embeddings", "max_seq_len")
    ]  # MPT has the second
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if (
            "position" in name.rpartition(".")[2]
            and isinstance(padding, int)
            and hasattr(module, "weight")
        ):
            limits.append(len(module.weight) - padding - 1)
    return min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=None)
