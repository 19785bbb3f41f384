"""Attention within trees: every token sees its ancestors and nothing else.

Trees of a pack lie one behind the other in one sequence. Rows are taken in blocks; a block's keys
are the ancestors of its rows, gathered, so that work is done neither between trees nor between
branches that cannot see each other. Blocks with about as many keys share one call. The function is
registered with transformers' ``AttentionInterface`` and is set on a model only while one of our
forwards runs: other code that used the model meanwhile would silently lose its padding mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface

from fluent_mlama.scoring.trie import Tree

NAME = "fluent_tree"
BLOCK_ROWS = 16
KEY_STEP = 16
"""Numbers of keys are rounded up to this, so that few calls serve many blocks."""
_UNKNOWN = ("s_aux", "position_bias", "alibi", "head_mask", "relative_position_bias")


class MethodRefused(Exception):
    """A scoring method cannot serve this model; its text says why, and the next one is tried."""


Block = tuple[NDArray[Any], ...]
"""One block's row of each field of ``Bucket``, in order."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """B blocks of K keys each: rows of one tree, and all keys that any of them sees.

    queries ``[B, BLOCK_ROWS]``, keys ``[B, K]``: positions in the sequence. The last block of a
    tree repeats its last row; keys that no row sees fill up to a multiple of ``KEY_STEP``. allowed
    ``[B, BLOCK_ROWS, K]``: who sees what. query_depths ``[B, BLOCK_ROWS]``, key_depths ``[B, K]``:
    in the tree.
    """

    queries: Tensor
    keys: Tensor
    allowed: Tensor
    query_depths: Tensor
    key_depths: Tensor

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Bucket:
        """One bucket of blocks with as many keys."""
        return cls(*(torch.from_numpy(np.stack(rows)) for rows in zip(*blocks, strict=True)))

    def nearer_than(self, window: int) -> Tensor:
        """``[B, BLOCK_ROWS, K]``: keys fewer than ``window`` tokens before their query."""
        return self.query_depths[:, :, None] - self.key_depths[:, None, :] < window


@dataclass(slots=True)
class Blocks:
    """The trees of one forward, cut into buckets of blocks; masks are made once per dtype.

    calls: attention layers that ran.
    """

    buckets: list[Bucket]
    calls: int = 0
    _made: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> Blocks:
        """Blocks for trees laid one behind the other."""
        by_width: dict[int, list[Block]] = {}
        first = 0
        for tree in trees:
            for block in _cut(tree, first):
                by_width.setdefault(len(block[1]), []).append(block)
            first += tree.size
        return cls([Bucket.of(blocks) for blocks in by_width.values()])

    def gathers(self, number: int, heads: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Bucket ``number``'s rows of ``[T * heads, d]`` queries, and its keys ``[B * K]``."""
        key = (number, heads, device)
        if key not in self._made:
            bucket = self.buckets[number]
            rows = bucket.queries[:, None] * heads + torch.arange(heads)[:, None]
            self._made[key] = rows.flatten().to(device), bucket.keys.flatten().to(device)
        return self._made[key]

    def places(self, heads: int, device: torch.device) -> Tensor:
        """``[T * heads]``: where each position's result is in the buckets' joined results."""
        key = ("places", heads, device)
        if key not in self._made:
            queries = torch.cat([bucket.queries.flatten() for bucket in self.buckets]).numpy()
            # The first will do: a tree's repeated last row has the same result each time.
            _, first = np.unique(queries, return_index=True)
            # gathers:  block 0 [ head 0: 16 rows | head 1: 16 rows | ... ]  block 1 [ ... ]
            block, row = np.divmod(first[:, None], BLOCK_ROWS)
            places = (block * heads + np.arange(heads)) * BLOCK_ROWS + row
            self._made[key] = torch.from_numpy(places.ravel()).to(device)
        return self._made[key]

    def mask(
        self, number: int, window: int | None, groups: int, dtype: torch.dtype, device: torch.device
    ) -> Tensor:
        """Additive mask ``[B, 1, groups * BLOCK_ROWS, K]``; ``window`` includes the token itself."""
        key = (number, window, groups, dtype, device)
        if key not in self._made:
            bucket = self.buckets[number]
            allowed = (
                bucket.allowed if window is None else bucket.allowed & bucket.nearer_than(window)
            )
            additive = torch.zeros(allowed.shape, dtype=dtype).masked_fill_(
                ~allowed, torch.finfo(dtype).min
            )
            self._made[key] = additive.repeat(1, groups, 1)[:, None].to(device)
        return self._made[key]


def _cut(tree: Tree, first: int) -> Iterator[Block]:
    """The blocks of a tree whose first node is at position ``first``."""
    count = -(-tree.size // BLOCK_ROWS)
    rows = np.minimum(np.arange(count * BLOCK_ROWS), tree.size - 1).reshape(count, BLOCK_ROWS)
    seen = np.zeros((count, BLOCK_ROWS, -(-tree.size // KEY_STEP) * KEY_STEP), dtype=np.bool_)
    seen[:, :, : tree.size] = tree.ancestor_mask()[rows]
    by_any = seen.any(axis=1)
    # A stable sort puts a block's keys to the front and keeps them in the order of the tree.
    seen_first = np.argsort(~by_any, axis=1, kind="stable")
    for number, width in enumerate((-(-by_any.sum(axis=1) // KEY_STEP) * KEY_STEP).tolist()):
        columns = seen_first[number, :width]
        keys = np.minimum(columns, tree.size - 1)
        depths = tree.depths[rows[number]], tree.depths[keys]
        yield first + rows[number], first + keys, seen[number][:, columns], *depths


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
    """``[1, (key) heads, T, d]`` queries, keys and values ▶ ``[1, T, heads, d]``."""
    blocks = _blocks.get()
    if blocks is None:
        raise RuntimeError(
            f"attention implementation {NAME} was left on a model outside the scoring engine"
        )
    unknown = [name for name in _UNKNOWN if unused.get(name) is not None]
    if unknown:
        raise MethodRefused(f"attention wants {', '.join(unknown)}, which tree masks do not know")
    blocks.calls += 1
    heads, key_heads = query.shape[1], key.shape[1]
    groups = heads // key_heads
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))  # [T, heads, d]
    q = q.reshape(-1, q.shape[-1])
    found = []
    # One call of torch's kernel per bucket: its blocks are the batch, all with the same number of keys.
    for number in range(len(blocks.buckets)):
        rows, keys = blocks.gathers(number, heads, query.device)
        mask = blocks.mask(number, sliding_window, groups, query.dtype, query.device)
        count = len(mask)
        # query heads that share a key head are folded into the rows: their keys are then read once
        asked = q.index_select(0, rows).view(count, key_heads, groups * BLOCK_ROWS, -1)
        seen, values = (
            t.index_select(0, keys).view(count, -1, key_heads, t.shape[-1]).transpose(1, 2)
            for t in (k, v)
        )
        if softcap is None:
            block = functional.scaled_dot_product_attention(
                asked, seen, values, attn_mask=mask, scale=scaling
            )
        else:
            block = _soft_capped(asked, seen, values, mask, scaling, softcap)
        found.append(block.reshape(-1, value.shape[-1]))
    out = torch.cat(found).index_select(0, blocks.places(heads, query.device))
    return out.view(1, -1, heads, value.shape[-1]), None


def _soft_capped(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None, softcap: float
) -> Tensor:
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    scores = torch.tanh(scores / softcap) * softcap + mask
    return torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype) @ value


AttentionInterface.register(NAME, tree_attention)


@contextmanager
def attending(model: Any, blocks: Blocks) -> Iterator[None]:
    """Let the model's forwards use tree attention over ``blocks``, then restore its own."""
    before = model.config._attn_implementation
    token = _blocks.set(blocks)
    try:
        model.set_attn_implementation(NAME)
        yield
    finally:
        model.set_attn_implementation(before)
        _blocks.reset(token)
