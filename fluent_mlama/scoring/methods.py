"""From trees to edge log-probabilities. All methods give the same numbers; they differ in what they compute twice.

tree           several trees in one sequence, attention block by block (``attention.py``)
shared-prefix  the trees' common beginning once, its cache repeated for every continuation
padded         every sequence whole, right-padded batches
plain          every sequence whole and by itself
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from fluent_mlama.scoring.attention import Blocks, MethodRefused, attending
from fluent_mlama.scoring.contract import Arithmetic
from fluent_mlama.scoring.network import Network, read_edges
from fluent_mlama.scoring.trie import Tree

Edges = NDArray[np.float64]


class ScoringMethod(Protocol):
    """One way to score trees. mixes: several of them in one forward."""

    name: str
    mixes: bool
    network: Network

    def run(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        """Log-probability of every edge of every tree, tree by tree."""


@dataclass(slots=True)
class Work:
    """Rows of one batch of one tree, and the edges read in it: edge ``edges[i]`` at (``rows[i]``, ``positions[i]``)."""

    fed: list[Sequence[int]] = field(default_factory=list)
    edges: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)

    def add(self, fed: Sequence[int], edges: NDArray[np.int64], result: Edges) -> None:
        """A row that feeds ``fed`` and reads ``edges`` (one a token); edges that have their place already are left out."""
        new = [
            (position, edge)
            for position, edge in enumerate(edges.tolist())
            if np.isnan(result[edge])
        ]
        if not new:
            return
        for position, edge in new:
            result[edge] = 0.0
            self.edges.append(edge)
            self.rows.append(len(self.fed))
            self.positions.append(position)
        self.fed.append(fed)

    def padded(self, pad_token: int) -> tuple[Tensor, Tensor]:
        """Ids and attention mask ``[rows, longest]``, padded on the right."""
        width = max(len(fed) for fed in self.fed)
        ids = torch.full((len(self.fed), width), pad_token, dtype=torch.long)
        mask = torch.zeros((len(self.fed), width), dtype=torch.long)
        for row, fed in enumerate(self.fed):
            ids[row, : len(fed)] = torch.tensor(fed)
            mask[row, : len(fed)] = 1
        return ids, mask

    def read(
        self,
        network: Network,
        inputs: dict[str, Any],
        tree: Tree,
        arithmetic: Arithmetic,
        result: Edges,
    ) -> None:
        """Run one forward over ``inputs`` and put the edges' log-probabilities into ``result``."""
        chunks = network.rows(
            inputs, torch.tensor(self.rows), torch.tensor(self.positions), arithmetic
        )
        result[self.edges] = read_edges(
            chunks, np.arange(len(self.edges)), tree.edge_tokens[self.edges], arithmetic
        )


def make_batches(
    tree: Tree, shared_prefix: int, end: int | None, token_budget: int, result: Edges
) -> list[Work]:
    """Batches of a tree's ``sequences[shared_prefix:end]``, whose padded size fits the budget.

    Longest first: shorter beginnings are then read in rows that are there anyway.
    """
    batches = [Work()]
    for s in sorted(range(len(tree.sequences)), key=lambda s: -len(tree.sequences[s])):
        fed = tree.sequences[s][shared_prefix:end]
        longest = len(batches[-1].fed[0]) if batches[-1].fed else len(fed)
        if (
            batches[-1].fed
            and (len(batches[-1].fed) + 1) * (shared_prefix + longest) > token_budget
        ):
            batches.append(Work())
        if fed:
            batches[-1].add(fed, tree.paths[s][shared_prefix:], result)
    return [batch for batch in batches if batch.edges]


class BatchedMethod(ABC):
    """One tree after the other, each in batches of at most ``token_budget`` tokens, right-padded."""

    name: str
    mixes = False

    def __init__(self, network: Network, token_budget: int, pad_token: int) -> None:
        self.network = network
        self.token_budget = token_budget
        self.pad_token = pad_token

    def run(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        """See ``ScoringMethod``. Every edge is read once, in the longest sequence that runs through it."""
        return [self._one(tree, arithmetic) for tree in trees]

    @abstractmethod
    def _one(self, tree: Tree, arithmetic: Arithmetic) -> Edges:
        """Log-probability of every edge of one tree."""


class PaddedMethod(BatchedMethod):
    """Whole sequences; ``plain`` if batches hold one, which is then fed to its last token, as one would by hand.

    Nothing is read at the last token, but a model may choose its arithmetic by the length of what it is given.
    """

    def __init__(
        self, network: Network, token_budget: int, pad_token: int, *, one_by_one: bool = False
    ) -> None:
        super().__init__(network, 1 if one_by_one else token_budget, pad_token)
        self.name = "plain" if one_by_one else "padded"
        self.end = None if one_by_one else -1

    def _one(self, tree: Tree, arithmetic: Arithmetic) -> Edges:
        result = np.full(len(tree.edge_rows), np.nan)
        for batch in make_batches(tree, 0, self.end, self.token_budget, result):
            ids, mask = batch.padded(self.pad_token)
            inputs = {
                "input_ids": ids.to(self.network.device),
                "attention_mask": mask.to(self.network.device),
            }
            batch.read(self.network, inputs, tree, arithmetic, result)
        return result


class TreeMethod:
    """Several trees in one sequence, attention block by block through transformers' attention interface."""

    name = "tree"
    mixes = True

    def __init__(self, network: Network) -> None:
        require(network, "position_ids")
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
        expected = self.network.model.config.get_text_config().num_hidden_layers
        if blocks.calls != expected:
            raise MethodRefused(f"tree attention ran in {blocks.calls} of {expected} layers")
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


class SharedPrefixMethod(BatchedMethod):
    """A tree's common beginning once; its cache, repeated, in front of right-padded batches of the rest."""

    name = "shared-prefix"

    def __init__(self, network: Network, token_budget: int, pad_token: int) -> None:
        require(network, "attention_mask")
        names = [name for name in ("cache", "past_key_values") if name in network.accepts]
        if not names:
            raise MethodRefused(f"{type(network.model).__name__} keeps no key-value cache")
        self.cache_argument: str = names[0]
        super().__init__(network, token_budget, pad_token)
        self.without_prefix = PaddedMethod(network, token_budget, pad_token)

    def _one(self, tree: Tree, arithmetic: Arithmetic) -> Edges:
        shared_prefix = _shared_prefix(tree)
        if not shared_prefix:  # a prompt of one token, and a candidate that merges with it
            return self.without_prefix.run([tree], arithmetic)[0]
        result = np.full(len(tree.edge_rows), np.nan)
        prefix = tree.sequences[0][:shared_prefix]
        in_prefix = np.flatnonzero(
            tree.edge_rows < shared_prefix
        )  # parents come first, so the shared_prefix is rows 0 .. shared_prefix - 1
        cache, chunks = self._prefill(
            prefix, torch.from_numpy(tree.edge_rows[in_prefix]), arithmetic
        )
        result[in_prefix] = read_edges(
            chunks, np.arange(len(in_prefix)), tree.edge_tokens[in_prefix], arithmetic
        )
        for batch in make_batches(tree, shared_prefix, -1, self.token_budget, result):
            if cache is None:
                cache, _ = self._prefill(prefix, None, arithmetic)
            cache.batch_repeat_interleave(len(batch.fed))
            ids, mask = batch.padded(self.pad_token)
            full = torch.cat(
                [torch.ones((len(batch.fed), shared_prefix), dtype=torch.long), mask], dim=1
            )
            device = self.network.device
            inputs = {
                "input_ids": ids.to(device),
                "attention_mask": full.to(device),
                self.cache_argument: cache,
            }
            inputs["position_ids"] = (
                (torch.arange(ids.shape[1]) + shared_prefix).expand(ids.shape).to(device)
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


def _shared_prefix(tree: Tree) -> int:
    """Fed nodes that all sequences share: the chain from the root to the first branching or the first end."""
    shortest = min(len(sequence) for sequence in tree.sequences)
    first = tree.sequences[0]
    same = next(
        (i for i in range(shortest) if any(sequence[i] != first[i] for sequence in tree.sequences)),
        shortest,
    )
    return min(same, tree.size)


def require(network: Network, *arguments: str) -> None:
    """Refuse the method for a model whose forward does not take these arguments."""
    missing = [name for name in arguments if name not in network.accepts]
    if missing:
        raise MethodRefused(f"{type(network.model).__name__} takes no {' or '.join(missing)}")
