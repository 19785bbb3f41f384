"""Trees by a scoring method within the memory there is: forwards of bounded size, halved where memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.contract import Arithmetic
from fluent_mlama.scoring.devices import give_back_freed, release_memory
from fluent_mlama.scoring.failures import is_out_of_memory
from fluent_mlama.scoring.methods import Edges, PaddedMethod, ScoringMethod
from fluent_mlama.scoring.trie import Ids, Tree, build_tree

LOGITS_BYTES = 1 << 28
"""Most that a forward may spend on logits where the model makes all wanted rows at once."""
GIVE_BACK_EVERY = 8
"""Forwards after which freed memory goes back to the system."""


class Runner:
    """Runs trees, by ``method`` as far as it ``covers`` their lengths, and by ``plain`` beyond.

    forwards, splits, beyond: forwards so far, those halved for memory, and sequences that the method did not cover.
    """

    def __init__(
        self,
        method: ScoringMethod,
        plain: PaddedMethod,
        token_budget: int,
        covers: Callable[[int], bool],
    ) -> None:
        self.method = method
        self.plain = plain
        self.token_budget = token_budget
        self.covers = covers
        self.forwards = 0
        self.splits = 0
        self.beyond = 0

    def trees(self, sequences: Sequence[Ids]) -> list[Tree]:
        """The sequences that the method covers in one tree, every other in its own; the first one begins the first tree.

        Beyond its reach a method may be wrong because the model's arithmetic depends on the sequence's length, so that
        nothing read in one sequence is true of another.
        """
        together = [sequence for sequence in sequences if self.covers(len(sequence))]
        apart = [sequence for sequence in sequences if not self.covers(len(sequence))]
        groups = [[sequence] for sequence in apart]
        if together:
            groups.insert(0 if together[0] == sequences[0] else 1, together)
        return [build_tree(group) for group in groups]

    def run(self, trees: Sequence[Tree], arithmetic: Arithmetic) -> list[Edges]:
        """Edge log-probabilities of every tree, in order."""
        results: list[Edges] = [np.empty(0)] * len(trees)
        for method, forward in self._forwards(trees):
            for number, edges in zip(
                forward, self._run(method, [trees[n] for n in forward], arithmetic), strict=True
            ):
                results[number] = edges
            self.forwards += 1
            if self.forwards % GIVE_BACK_EVERY == 0:
                give_back_freed()
        return results

    def _forwards(self, trees: Sequence[Tree]) -> list[tuple[ScoringMethod, list[int]]]:
        """Tree numbers by forward: next fit into the budget. What the method does not cover comes last."""
        budget = self.token_budget
        if not self.method.network.head_by_hand:
            budget = min(budget, max(1, LOGITS_BYTES // (4 * self.method.network.vocabulary)))
        forwards: list[tuple[ScoringMethod, list[int]]] = []
        beyond: list[int] = []
        used = 0
        for number, tree in enumerate(trees):
            if tree.size == 0:  # a prompt of one token without candidates: nothing to read
                continue
            if not self.covers(tree.max_length):
                beyond.append(number)
                self._count(tree.max_length)
                continue
            if not forwards or used + tree.size > budget:
                forwards.append((self.method, []))
                used = 0
            forwards[-1][1].append(number)
            used += tree.size
        return forwards + [(self.plain, [number]) for number in beyond]

    def _count(self, length: int) -> None:
        self.beyond += 1
        if self.beyond == 1:
            note(
                f"scoring method {self.method.name} cannot be shown right for a prompt with candidate of {length} tokens:"
                " such texts are scored one by one (counted in run.json)"
            )

    def _run(
        self, method: ScoringMethod, trees: Sequence[Tree], arithmetic: Arithmetic
    ) -> list[Edges]:
        try:
            with torch.inference_mode():
                return method.run(trees, arithmetic)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        release_memory()
        self.splits += 1
        if self.splits == 1:
            note(
                "out of memory: this forward is halved; its scores may differ by 5e-4 from an undivided run's (told in run.json)"
            )
        if len(trees) > 1:
            middle = len(trees) // 2
            return self._run(method, trees[:middle], arithmetic) + self._run(
                method, trees[middle:], arithmetic
            )
        return [self._halved(method, trees[0], arithmetic)]

    def _halved(self, method: ScoringMethod, tree: Tree, arithmetic: Arithmetic) -> Edges:
        """One tree as two, put together again."""
        if len(tree.sequences) < 3:
            raise UserError(
                "too little memory for even one candidate; close other programs, or choose a smaller model or --dtype"
            )
        first, *others = tree.sequences
        middle = len(others) // 2
        result = np.empty(len(tree.edge_rows))
        where = {sequence: s for s, sequence in enumerate(tree.sequences)}
        for half in (others[:middle], others[middle:]):
            part = build_tree([first, *half])
            (edges,) = self._run(method, [part], arithmetic)
            for sequence, edge_path in zip(part.sequences, part.paths, strict=True):
                result[tree.paths[where[sequence]]] = edges[edge_path]
        return result
