"""From trees to edge log-probabilities: four methods, the same numbers at different costs.

tree           several trees in one sequence, attention block by block (``attention.py``)
shared-prefix  a tree's common beginning once, its cache repeated for every continuation
padded         every sequence whole, right-padded batches
plain          every sequence whole and by itself
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from fluent_mlama.scoring.attention import Blocks, MethodRefused, attending
from fluent_mlama.scoring.contract import Arithmetic
from fluent_mlama.scoring.network import HeadRows, Network, read_edges
from fluent_mlama.scoring.trie import Tree, common_length

Edges = NDArray[np.float64]


class ScoringMethod(Protocol):
    """One way to score trees. mixes: several of them in one forward."""

    name: str
    mixes: bool
    network: Network

    def run(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        """Log-probability of every edge of every tree, tree by tree."""


class TreeMethod:
    """Several trees in one sequence, with attention block by block (``attention.py``)."""

    name = "tree"
    mixes = True

    def __init__(self, network: Network) -> None:
        _require(network, "position_ids")
        if not getattr(network.model, "_supports_attention_backend", False):
            raise MethodRefused(
                f"{type(network.model).__name__} does not use transformers' attention interface"
            )
        self.network = network

    def run(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        """See ``ScoringMethod``."""
        blocks = Blocks.of(trees)
        with attending(self.network.model, blocks):
            result = self._forward(trees, arithmetic)
        # A layer that bypasses the interface would have let every token see every other.
        expected = self.network.model.config.get_text_config().num_hidden_layers
        if blocks.calls != expected:
            raise MethodRefused(f"tree attention ran in {blocks.calls} of {expected} layers")
        return result

    def _forward(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        def one_row(parts: list[NDArray[np.int64]]) -> Tensor:
            return torch.from_numpy(np.concatenate(parts)).to(self.network.device)[None]

        # Positions are depths: tokens of the same depth in different branches have the same one.
        inputs = {
            "input_ids": one_row([tree.token_ids for tree in trees]),
            "position_ids": one_row([tree.depths for tree in trees]),
        }
        starts = np.cumsum([0, *(tree.size for tree in trees)])
        rows = np.concatenate(
            [tree.edge_rows + start for tree, start in zip(trees, starts, strict=False)]
        )
        tokens = np.concatenate([tree.edge_tokens for tree in trees])
        # Only nodes with a child are fed, so something is read in every row.
        positions = torch.arange(int(starts[-1]))
        chunks = self.network.rows(inputs, torch.zeros_like(positions), positions, arithmetic)
        edges = read_edges(chunks, rows, tokens, arithmetic)
        return np.split(edges, np.cumsum([len(tree.edge_rows) for tree in trees])[:-1])


@dataclass(slots=True)
class Batch:
    """Rows of one batch of a tree; edge ``edges[i]`` is read at (``rows[i]``, ``positions[i]``)."""

    fed: list[Sequence[int]] = field(default_factory=list)
    edges: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)

    def add(self, fed: Sequence[int], edges: NDArray[np.int64], result: Edges) -> None:
        """Add a row that feeds ``fed`` and reads those of ``edges`` that no row reads yet."""
        new = np.flatnonzero(np.isnan(result[edges])).tolist()
        if not new:
            return
        result[edges[new]] = 0.0  # taken: no longer NaN
        self.edges += edges[new].tolist()
        self.rows += [len(self.fed)] * len(new)
        self.positions += new
        self.fed.append(fed)

    def padded(self, pad_token: int) -> tuple[Tensor, Tensor]:
        """Ids and attention mask ``[rows, width]``, padded on the right."""
        width = max(map(len, self.fed))
        ids = torch.full((len(self.fed), width), pad_token, dtype=torch.long)
        mask = torch.zeros((len(self.fed), width), dtype=torch.long)
        for row, fed in enumerate(self.fed):
            ids[row, : len(fed)] = torch.tensor(fed)
            mask[row, : len(fed)] = 1
        return ids, mask


class PaddedMethod:
    """Whole sequences, one tree after the other, in right-padded batches.

    one_by_one: ``plain``, each sequence alone and fed to its last token, as usual.
    Nothing is read at the last token, but a model may choose its arithmetic by the length of what
    it is given.
    """

    name = "padded"
    mixes = False

    def __init__(
        self, network: Network, token_budget: int, pad_token: int, *, one_by_one: bool = False
    ) -> None:
        self.network = network
        self.token_budget = 1 if one_by_one else token_budget
        self.pad_token = pad_token
        self.end = None if one_by_one else -1
        if one_by_one:
            self.name = "plain"

    def run(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        """See ``ScoringMethod``. Every edge is read once, in the longest sequence that has it."""
        return [self._one(tree, arithmetic) for tree in trees]

    def _one(self, tree: Tree, arithmetic: Arithmetic) -> Edges:
        """Log-probability of every edge of one tree."""
        result = np.full(len(tree.edge_rows), np.nan)
        for batch in self._batches(tree, 0, result):
            ids, mask = batch.padded(self.pad_token)
            self._read(batch, {"input_ids": ids, "attention_mask": mask}, tree, arithmetic, result)
        return result

    def _batches(self, tree: Tree, shared_prefix: int, result: Edges) -> list[Batch]:
        """Batches of what follows the first ``shared_prefix`` tokens, within the budget.

        Longest first: shorter beginnings are then read in rows that are there anyway.
        """
        batches = [Batch()]
        for s in sorted(range(len(tree.sequences)), key=lambda s: -len(tree.sequences[s])):
            fed = tree.sequences[s][shared_prefix : self.end]
            rows = batches[-1].fed
            width = shared_prefix + len(rows[0] if rows else fed)
            if rows and (len(rows) + 1) * width > self.token_budget:
                batches.append(Batch())
            if fed:
                batches[-1].add(fed, tree.paths[s][shared_prefix:], result)
        return [batch for batch in batches if batch.edges]

    def _read(
        self,
        batch: Batch,
        inputs: dict[str, Any],
        tree: Tree,
        arithmetic: Arithmetic,
        result: Edges,
    ) -> None:
        """Run one forward over ``inputs`` and put the batch's log-probabilities into ``result``."""
        device = self.network.device
        inputs = {
            name: value.to(device) if isinstance(value, Tensor) else value
            for name, value in inputs.items()
        }
        where = torch.tensor(batch.rows), torch.tensor(batch.positions)
        chunks = self.network.rows(inputs, *where, arithmetic)
        result[batch.edges] = read_edges(
            chunks, np.arange(len(batch.edges)), tree.edge_tokens[batch.edges], arithmetic
        )


class SharedPrefixMethod(PaddedMethod):
    """The common beginning once; its cache, repeated, before right-padded batches of the rest."""

    name = "shared-prefix"

    def __init__(self, network: Network, token_budget: int, pad_token: int) -> None:
        _require(network, "attention_mask")
        names = [name for name in ("cache", "past_key_values") if name in network.accepts]
        if not names:
            raise MethodRefused(f"{type(network.model).__name__} keeps no key-value cache")
        self.cache_argument: str = names[0]
        super().__init__(network, token_budget, pad_token)

    def _one(self, tree: Tree, arithmetic: Arithmetic) -> Edges:
        shared = _shared_prefix(tree)
        if not shared:  # a prompt of one token, and a candidate that merges with it
            return super()._one(tree, arithmetic)
        result = np.full(len(tree.edge_rows), np.nan)
        prefix = tree.sequences[0][:shared]
        # Parents come first, so the shared prefix is the fed nodes 0 to shared - 1.
        in_prefix = np.flatnonzero(tree.edge_rows < shared)
        rows = torch.from_numpy(tree.edge_rows[in_prefix])
        cache, chunks = self._prefill(prefix, rows, arithmetic)
        result[in_prefix] = read_edges(
            chunks, np.arange(len(in_prefix)), tree.edge_tokens[in_prefix], arithmetic
        )
        for batch in self._batches(tree, shared, result):
            if cache is None:
                cache, _ = self._prefill(prefix, torch.tensor([0]), arithmetic)
            cache.batch_repeat_interleave(len(batch.fed))
            ids, mask = batch.padded(self.pad_token)
            inputs = {
                "input_ids": ids,
                "attention_mask": torch.cat([mask.new_ones(len(mask), shared), mask], dim=1),
                "position_ids": (torch.arange(ids.shape[1]) + shared).expand(ids.shape),
                self.cache_argument: cache,
            }
            self._read(batch, inputs, tree, arithmetic, result)
            cache = None  # the forward has appended to it
        return result

    def _prefill(
        self, prefix: Sequence[int], rows: Tensor, arithmetic: Arithmetic
    ) -> tuple[Any, Iterator[Tensor | HeadRows]]:
        """The cache after ``prefix``, and its logits at ``rows``."""
        cache = DynamicCache(config=self.network.model.config)
        ids = torch.tensor([prefix]).to(self.network.device)
        inputs = {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "position_ids": torch.arange(len(prefix), device=ids.device)[None],
            self.cache_argument: cache,
        }
        # list() runs the forward now: the cache is filled even where nobody reads the logits.
        chunks = list(self.network.rows(inputs, torch.zeros_like(rows), rows, arithmetic))
        return cache, iter(chunks)


def _shared_prefix(tree: Tree) -> int:
    """Fed nodes that all sequences share: from the root to the first branching or the first end."""
    # In sorted order the first and the last sequence differ earliest.
    return min(common_length(min(tree.sequences), max(tree.sequences)), tree.size)


def _require(network: Network, *arguments: str) -> None:
    """Refuse the method for a model whose forward does not take these arguments."""
    missing = [name for name in arguments if name not in network.accepts]
    if missing:
        raise MethodRefused(f"{type(network.model).__name__} takes no {' or '.join(missing)}")
