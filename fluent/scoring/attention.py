"""Attention within trees: every token sees its ancestors and nothing else.

Trees of a pack lie one behind the other in one sequence. Each attends within its own block of positions, so no work is
done between trees; inside a block the ancestor mask decides. The function is registered with transformers'
``AttentionInterface`` and is set on a model only while one of our forwards runs: other code that used the model
meanwhile would silently lose its padding mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface

from fluent.scoring.trie import Tree

NAME = "fluent_tree"
_UNKNOWN = ("s_aux", "position_bias", "alibi", "head_mask", "relative_position_bias")


class PathRefused(Exception):
    """A path cannot serve this model; its text says why, and the next path is tried."""


@dataclass(slots=True)
class Blocks:
    """The trees of one forward: each one's span of positions, ancestor mask and depths; masks are made once per dtype.

    calls: attention layers that ran. windows: sliding windows that layers asked for (None for full attention).
    """

    spans: list[tuple[int, int]]
    allowed: list[Tensor]
    depths: list[Tensor]
    calls: int = 0
    windows: set[int | None] = field(default_factory=set)
    _masks: dict[tuple[int, int | None, torch.dtype, torch.device], Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> Blocks:
        """Blocks for trees laid one behind the other."""
        spans, start = [], 0
        for tree in trees:
            spans.append((start, start + tree.size))
            start += tree.size
        return cls(spans, [torch.from_numpy(t.ancestors()) for t in trees], [torch.from_numpy(t.depths) for t in trees])

    def mask(self, number: int, window: int | None, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Additive mask ``[n, n]`` of block ``number``; a token sees at most ``window`` tokens, itself included."""
        depths = self.depths[number]
        if window is not None and int(depths.max()) < window:
            window = None
        key = (number, window, dtype, device)
        if key not in self._masks:
            allowed = self.allowed[number]
            if window is not None:
                allowed = allowed & (depths[:, None] - depths[None, :] < window)
            additive = torch.zeros(allowed.shape, dtype=dtype).masked_fill_(~allowed, torch.finfo(dtype).min)
            self._masks[key] = additive.to(device)
        return self._masks[key]


_blocks: ContextVar[Blocks | None] = ContextVar("fluent_tree_blocks", default=None)


def tree_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    sliding_window: int | None = None,
    **unused: Any,
) -> tuple[Tensor, None]:
    """``[1, heads, T, d]`` queries and ``[1, key heads, T, d]`` keys and values ▶ ``[1, T, heads, d]``, block by block."""
    blocks = _blocks.get()
    if blocks is None:
        raise RuntimeError(f"attention implementation {NAME} was left on a model outside the scoring engine")
    unknown = [name for name in _UNKNOWN if unused.get(name) is not None]
    if unknown:
        raise PathRefused(f"attention wants {', '.join(unknown)}, which tree masks do not know")
    blocks.calls += 1
    blocks.windows.add(sliding_window)
    groups = query.shape[1] // key.shape[1]
    out = query.new_empty((1, query.shape[2], query.shape[1], value.shape[3]))
    for number, (start, end) in enumerate(blocks.spans):
        mask = blocks.mask(number, sliding_window, query.dtype, query.device)
        q, k, v = query[:, :, start:end], key[:, :, start:end], value[:, :, start:end]
        if groups > 1:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        if softcap is None:
            block = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling)
        else:
            block = _soft_capped(q, k, v, mask, scaling, softcap)
        out[:, start:end] = block.transpose(1, 2)
    return out, None


def _soft_capped(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None, softcap: float) -> Tensor:
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    scores = torch.tanh(scores / softcap) * softcap + mask
    return torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype) @ value


AttentionInterface.register(NAME, tree_attention)


@contextmanager
def attending(model: Any, blocks: Blocks) -> Iterator[None]:
    """Run the model's forwards with tree attention over ``blocks``; its own implementation is back afterwards."""
    before = model.config._attn_implementation
    token = _blocks.set(blocks)
    try:
        model.set_attn_implementation(NAME)
        yield
    finally:
        model.set_attn_implementation(before)
        _blocks.reset(token)
