"""Token sequences that share beginnings, as one tree in which every shared token is computed once.

    prompt ── A ── B          sequences  prompt A B, prompt A C, prompt D
           │    └─ C          fed        prompt, A           (nodes that something follows)
           └─ D               edges      B and C read at A, A and D read at the prompt's last token

A leaf is read, never fed: the probability of a last token stands in the row of the token before it. One edge belongs to
each tree node but the roots; the score of a sequence is the sum over its edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = tuple[int, ...]
NODE_LIMIT = 512
"""Fed nodes a tree may have (attention within a tree grows with its square); large candidate sets are cut."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree over ``sequences``.

    token_ids, parents, depths: of the n fed nodes, parents before children; a root's parent is -1, its depth 0.
    edge_rows, edge_tokens: an edge reads token ``edge_tokens[e]`` in the row of fed node ``edge_rows[e]``.
    paths: for sequence s, the edges of its tokens 2..n.
    """

    sequences: tuple[Ids, ...]
    token_ids: NDArray[np.int64]
    parents: NDArray[np.int64]
    depths: NDArray[np.int64]
    edge_rows: NDArray[np.int64]
    edge_tokens: NDArray[np.int64]
    paths: tuple[NDArray[np.int64], ...]

    @property
    def size(self) -> int:
        """Number of fed nodes."""
        return len(self.token_ids)

    def ancestors(self) -> NDArray[np.bool_]:
        """``[n, n]``: row i is True at i and at everything on the way from its root to it."""
        mask = np.zeros((self.size, self.size), dtype=np.bool_)
        chain = self.parents == np.arange(self.size) - 1  # a prompt is a chain: its part is a triangle
        trunk = self.size if chain.all() else int(chain.argmin())
        mask[:trunk, :trunk] = np.tri(trunk, dtype=np.bool_)
        for node, parent in enumerate(self.parents[trunk:].tolist(), start=trunk):
            if parent >= 0:
                mask[node] = mask[parent]
            mask[node, node] = True
        return mask


def build_tree(sequences: Sequence[Ids]) -> Tree:
    """The tree over ``sequences`` (each of at least one token; doubles and prefixes of others are welcome)."""
    children: dict[tuple[int, int], int] = {}
    tokens: list[int] = []
    parents: list[int] = []
    walks: list[list[int]] = []
    trunk = sequences[0]
    trunk_walk: list[int] = []
    for sequence in sequences:
        shared = _common(trunk, sequence) if trunk_walk else 0
        walk = trunk_walk[:shared]
        node = walk[-1] if walk else -1
        for token in sequence[shared:]:
            key = (node, token)
            child = children.get(key)
            if child is None:
                child = children[key] = len(tokens)
                tokens.append(token)
                parents.append(node)
            node = child
            walk.append(node)
        if not trunk_walk:
            trunk_walk = walk
        walks.append(walk)
    return _number(tuple(sequences), np.array(tokens, dtype=np.int64), np.array(parents, dtype=np.int64), walks)


def _number(sequences: tuple[Ids, ...], tokens: NDArray[np.int64], parents: NDArray[np.int64], walks: list[list[int]]) -> Tree:
    """Number the fed nodes (those with a child) and the edges (nodes with a parent) from the tree's nodes."""
    has_parent = parents >= 0
    fed = np.zeros(len(tokens), dtype=np.bool_)
    fed[parents[has_parent]] = True
    row = np.cumsum(fed) - 1
    edge = np.cumsum(has_parent) - 1
    fed_parents = parents[fed]
    depths = np.zeros(int(fed.sum()), dtype=np.int64)
    fed_rows = np.where(fed_parents >= 0, row[fed_parents], -1)
    for node, parent in enumerate(fed_rows.tolist()):
        if parent >= 0:
            depths[node] = depths[parent] + 1
    return Tree(
        sequences=sequences,
        token_ids=tokens[fed],
        parents=fed_rows,
        depths=depths,
        edge_rows=row[parents[has_parent]],
        edge_tokens=tokens[has_parent],
        paths=tuple(edge[np.array(walk[1:], dtype=np.int64)] for walk in walks),
    )


@dataclass(frozen=True, slots=True)
class Part:
    """Sequences that go into one tree, the prompt first, and how many nodes that tree feeds."""

    sequences: tuple[Ids, ...]
    size: int


def cut(prompt: Ids, candidates: Iterable[Ids], limit: int = NODE_LIMIT) -> list[Part]:
    """Cut a candidate set so that each part's tree, prompt included, feeds at most ``limit`` nodes.

    Sorted, so that neighbours share beginnings; the short prompt is fed again in every part. A prompt of more than half
    the limit raises the limit to twice its length, and a single longer sequence makes a part of its own.
    """
    limit = max(limit, 2 * len(prompt))
    parts: list[Part] = []
    inside: list[Ids] = []
    size = 0
    before: Ids = ()
    for sequence in sorted({prompt, *candidates}):
        new = _new_nodes(before, sequence)
        if inside and size + new > limit:
            parts.append(Part((prompt, *inside), size))
            inside, size, new = [], len(prompt) - 1, _new_nodes(prompt, sequence)
        if sequence != prompt:
            inside.append(sequence)
        size += new
        before = sequence
    parts.append(Part((prompt, *inside), size))
    return parts


def _new_nodes(before: Ids, sequence: Ids) -> int:
    """Proper beginnings of ``sequence`` that are not proper beginnings of ``before``, its neighbour in sorted order."""
    return len(sequence) - 1 - min(_common(before, sequence), max(0, len(before) - 1))


def _common(left: Ids, right: Ids) -> int:
    """Length of the common beginning."""
    if left[: len(right)] == right:
        return len(right)
    if right[: len(left)] == left:
        return len(left)
    start = min(len(left), len(right)) - 1  # behind a prompt's trailing blank, all but the last token agree
    if left[:start] == right[:start]:
        return start
    return next(i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b)
