"""The fast paths: trees in one forward, with attention block by block, and a common beginning computed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from fluent_mlama.scoring.attention import Blocks, PathRefused, attending
from fluent_mlama.scoring.contract import Arithmetic
from fluent_mlama.scoring.network import Network, read_edges
from fluent_mlama.scoring.paths import BatchedPath, Edges, PaddedPath, make_batches
from fluent_mlama.scoring.trie import Tree


class TreePath:
    """Several trees in one sequence, attention block by block through transformers' attention interface."""

    name = "tree"
    mixes = True

    def __init__(self, network: Network) -> None:
        require(network, "position_ids")
        if not getattr(network.model, "_supports_attention_backend", False):
            raise PathRefused(
                f"{type(network.model).__name__} does not use transformers' attention interface"
            )
        self.network = network

    def run(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        """See ``Path``."""
        blocks = Blocks.of(trees)
        with attending(self.network.model, blocks):
            result = self._forward(trees, arithmetic)
        expected = self.network.model.config.get_text_config().num_hidden_layers
        if blocks.calls != expected:
            raise PathRefused(f"tree attention ran in {blocks.calls} of {expected} layers")
        return result

    def _forward(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        device = self.network.device
        ids = torch.from_numpy(np.concatenate([tree.token_ids for tree in trees])).to(device)[None]
        positions = torch.from_numpy(np.concatenate([tree.depths for tree in trees])).to(device)[
            None
        ]
        starts = np.cumsum([0, *(tree.size for tree in trees)])
        rows = np.concatenate(
            [tree.edge_rows + start for tree, start in zip(trees, starts, strict=False)]
        )
        tokens = np.concatenate([tree.edge_tokens for tree in trees])
        wanted, local = np.unique(rows, return_inverse=True)
        position = torch.from_numpy(wanted)
        inputs = {"input_ids": ids, "position_ids": positions}
        chunks = self.network.rows(inputs, torch.zeros_like(position), position, arithmetic)
        edges = read_edges(chunks, local, tokens, arithmetic)
        return np.split(edges, np.cumsum([len(tree.edge_rows) for tree in trees])[:-1])


class SharedPrefixPath(BatchedPath):
    """A tree's common beginning once; its cache, repeated, in front of right-padded batches of the rest."""

    name = "shared-prefix"

    def __init__(self, network: Network, token_budget: int, pad_token: int) -> None:
        require(network, "attention_mask")
        names = [name for name in ("cache", "past_key_values") if name in network.accepts]
        if not names:
            raise PathRefused(f"{type(network.model).__name__} keeps no key-value cache")
        self.cache_argument: str = names[0]
        super().__init__(network, token_budget, pad_token)
        self.without_prefix = PaddedPath(network, token_budget, pad_token)

    def _one(self, tree: Tree, arithmetic: Arithmetic) -> Edges:
        trunk = _trunk(tree)
        if not trunk:  # a prompt of one token, and a candidate that merges with it
            return self.without_prefix.run([tree], arithmetic)[0]
        result = np.full(len(tree.edge_rows), np.nan)
        prefix = tree.sequences[0][:trunk]
        in_trunk = np.flatnonzero(
            tree.edge_rows < trunk
        )  # parents come first, so the trunk is rows 0 .. trunk - 1
        cache, chunks = self._prefill(
            prefix, torch.from_numpy(tree.edge_rows[in_trunk]), arithmetic
        )
        result[in_trunk] = read_edges(
            chunks, np.arange(len(in_trunk)), tree.edge_tokens[in_trunk], arithmetic
        )
        for batch in make_batches(tree, trunk, -1, self.token_budget, result):
            if cache is None:
                cache, _ = self._prefill(prefix, None, arithmetic)
            cache.batch_repeat_interleave(len(batch.fed))
            ids, mask = batch.padded(self.pad_token)
            full = torch.cat([torch.ones((len(batch.fed), trunk), dtype=torch.long), mask], dim=1)
            device = self.network.device
            inputs = {
                "input_ids": ids.to(device),
                "attention_mask": full.to(device),
                self.cache_argument: cache,
            }
            inputs["position_ids"] = (
                (torch.arange(ids.shape[1]) + trunk).expand(ids.shape).to(device)
            )
            batch.read(self.network, inputs, tree, arithmetic, result)
            cache = None  # it was changed in place
        return result

    def _prefill(
        self, prefix: Sequence[int], rows: Tensor | None, arithmetic: Arithmetic
    ) -> tuple[Any, Any]:
        cache = DynamicCache(config=self.network.model.config)
        device = self.network.device
        ids = torch.tensor([prefix]).to(device)
        inputs = {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            self.cache_argument: cache,
        }
        inputs["position_ids"] = torch.arange(len(prefix)).to(device)[None]
        position = torch.tensor([0]) if rows is None else rows
        return cache, iter(
            list(self.network.rows(inputs, torch.zeros_like(position), position, arithmetic))
        )


def _trunk(tree: Tree) -> int:
    """Fed nodes that all sequences share: the chain from the root to the first branching or the first end."""
    shortest = min(len(sequence) for sequence in tree.sequences)
    first = tree.sequences[0]
    same = next(
        (i for i in range(shortest) if any(sequence[i] != first[i] for sequence in tree.sequences)),
        shortest,
    )
    return min(same, tree.size)


def require(network: Network, *arguments: str) -> None:
    """Refuse the path for a model whose forward does not take these arguments."""
    missing = [name for name in arguments if name not in network.accepts]
    if missing:
        raise PathRefused(f"{type(network.model).__name__} takes no {' or '.join(missing)}")
