"""The ways from trees to edge log-probabilities. All give the same numbers; they differ in what they compute twice.

tree           several trees in one sequence, attention block by block (``attention.py``)
dense-mask     the same with one dense 4D mask, public API only
shared-prefix  the trees' common beginning once, its cache repeated for every continuation
padded         every sequence whole, right-padded batches
plain          every sequence whole and alone: the reference
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from fluent.scoring.contract import Arithmetic
from fluent.scoring.network import Network, read_edges
from fluent.scoring.trie import Tree

Edges = NDArray[np.float64]


class Path(Protocol):
    """One way to score trees."""

    name: str

    def run(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        """Log-probability of every edge of every tree, tree by tree."""


class PaddedPath:
    """Whole sequences in right-padded batches of at most ``token_budget`` tokens; ``plain`` if batches hold one."""

    def __init__(self, network: Network, token_budget: int, pad_token: int, *, one_by_one: bool = False) -> None:
        self.name = "plain" if one_by_one else "padded"
        self.network = network
        self.token_budget = token_budget
        self.pad_token = pad_token
        self.one_by_one = one_by_one

    def run(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        """See ``Path``. Every edge is read once, in the longest sequence that runs through it."""
        results = [np.full(len(tree.edge_rows), np.nan) for tree in trees]
        for batch in self._batches(trees):
            self._score(batch, trees, results, arithmetic)
        return results

    def _batches(self, trees: Sequence[Tree]) -> list[list[tuple[int, int]]]:
        """(tree, sequence) pairs, longest first, in batches whose padded size fits the budget."""
        work = [(number, s) for number, tree in enumerate(trees) for s in range(len(tree.sequences)) if len(tree.sequences[s]) > 1]
        work.sort(key=lambda pair: -len(trees[pair[0]].sequences[pair[1]]))
        batches: list[list[tuple[int, int]]] = []
        for number, s in work:
            longest = len(trees[batches[-1][0][0]].sequences[batches[-1][0][1]]) if batches else 0
            if not batches or self.one_by_one or (len(batches[-1]) + 1) * (longest - 1) > self.token_budget:
                batches.append([])
            batches[-1].append((number, s))
        return batches

    def _score(self, batch: list[tuple[int, int]], trees: Sequence[Tree], results: list[Edges], arithmetic: Arithmetic) -> None:
        width = max(len(trees[number].sequences[s]) for number, s in batch) - 1
        ids = torch.full((len(batch), width), self.pad_token, dtype=torch.long)
        mask = torch.zeros((len(batch), width), dtype=torch.long)
        where: list[tuple[int, int, int]] = []  # tree, edge, row of the batch
        positions: list[int] = []
        for row, (number, s) in enumerate(batch):
            fed = trees[number].sequences[s][:-1]
            ids[row, : len(fed)] = torch.tensor(fed)
            mask[row, : len(fed)] = 1
            for position, edge in enumerate(trees[number].paths[s].tolist()):
                if np.isnan(results[number][edge]):
                    results[number][edge] = 0.0
                    where.append((number, edge, row))
                    positions.append(position)
        if not where:
            return
        device = self.network.device
        inputs = {"input_ids": ids.to(device), "attention_mask": mask.to(device)}
        tokens = np.array([trees[number].edge_tokens[edge] for number, edge, _ in where])
        chunks = self.network.rows(inputs, torch.tensor([row for *_, row in where]), torch.tensor(positions))
        values = read_edges(chunks, np.arange(len(where)), tokens, arithmetic)
        for (number, edge, _), value in zip(where, values, strict=True):
            results[number][edge] = value
