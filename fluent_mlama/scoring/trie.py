"""Token sequences that share beginnings, as one tree in which every shared token is computed once.

    prompt ── A ── B          sequences  prompt A B, prompt A C, prompt D
           │    └─ C          fed        prompt, A           (nodes that something follows)
           └─ D               edges      B and C read at A, A and D read at the prompt's last token

A leaf is read, never fed: the probability of a last token stands in the row of the token before it.
One edge belongs to each tree node but the roots; the score of a sequence is the sum over its edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Ids = tuple[int, ...]
NODE_LIMIT = 512
"""Fed nodes per tree, since attention within a tree grows with its square; larger sets are cut."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree over ``sequences``.

    token_ids, depths: of the n fed nodes, parents before children; a root's depth is 0.
    ancestors ``[n, max_length]``: the nodes from a node's root down to itself, then -1.
    edge_rows, edge_tokens: an edge reads token ``edge_tokens[e]`` in the row of fed node
    ``edge_rows[e]``.
    paths: for sequence s, the edges of its tokens 2..n.
    """

    sequences: tuple[Ids, ...]
    token_ids: NDArray[np.int64]
    depths: NDArray[np.int64]
    ancestors: NDArray[np.int64]
    edge_rows: NDArray[np.int64]
    edge_tokens: NDArray[np.int64]
    paths: tuple[NDArray[np.int64], ...]

    @property
    def size(self) -> int:
        """Number of fed nodes."""
        return len(self.token_ids)

    @property
    def max_length(self) -> int:
        """Tokens of the longest sequence."""
        return max(map(len, self.sequences))

    def ancestor_mask(self) -> NDArray[np.bool_]:
        """``[n, n]``: row i is True at i and at everything on the way from its root to it."""
        mask = np.zeros((self.size, self.size + 1), dtype=np.bool_)
        # The -1 after a node falls into the last column, which is cut off.
        mask[np.arange(self.size)[:, None], self.ancestors] = True
        return mask[:, :-1]


def build_tree(sequences: Sequence[Ids]) -> Tree:
    """The tree over ``sequences`` (of at least one token each; duplicates and prefixes are fine).

    In sorted order a sequence shares with its neighbour whatever it shares with any before it: the
    rest of it is new.
    """
    order = sorted(range(len(sequences)), key=sequences.__getitem__)
    lengths = np.array([len(sequences[s]) for s in order])
    places = np.arange(lengths.max())
    inside = places < lengths[:, None]
    # One row per sequence in sorted order, one column per depth, -1 after a sequence's end:
    #     P A B      new    P A B      numbers  0 1 2      walks  0 1 2
    #     P A C                 C               0 0 3             0 1 3
    #     P D -               D                 0 4 0             0 4 -
    grid = np.full(inside.shape, -1, dtype=np.int64)
    grid[inside] = np.fromiter(chain.from_iterable(sequences[s] for s in order), dtype=np.int64)
    shared = np.zeros_like(inside)
    np.logical_and.accumulate(inside[1:] & (grid[1:] == grid[:-1]), axis=1, out=shared[1:])
    new = inside & ~shared
    rows, depths = np.nonzero(new)
    tokens, has_parent = grid[new], depths > 0
    numbers = np.zeros_like(grid)
    numbers[new] = np.arange(len(rows))
    # A shared node is the youngest of its depth, because neighbours share all there is to share.
    walks = np.maximum.accumulate(numbers, axis=0)
    parents = walks[rows[has_parent], depths[has_parent] - 1]
    fed = np.zeros(len(rows), dtype=np.bool_)  # nodes with a child
    fed[parents] = True
    row = np.cumsum(fed) - 1
    # Every node but a root has one edge, numbered in the order of the nodes.
    edges = (np.cumsum(has_parent) - 1)[walks]
    place = np.argsort(order)
    return Tree(
        sequences=tuple(sequences),
        token_ids=tokens[fed],
        depths=depths[fed],
        ancestors=np.where(places <= depths[fed][:, None], row[walks[rows[fed]]], -1),
        edge_rows=row[parents],
        edge_tokens=tokens[has_parent],
        paths=tuple(
            edges[i, 1:length]
            for i, length in zip(place.tolist(), lengths[place].tolist(), strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class Part:
    """Sequences that go into one tree, the prompt first, and how many nodes that tree feeds."""

    sequences: tuple[Ids, ...]
    size: int


def cut(prompt: Ids, candidates: Iterable[Ids], limit: int = NODE_LIMIT) -> list[Part]:
    """Cut a candidate set so that each part's tree, prompt included, feeds at most ``limit`` nodes.

    Sorted, so that neighbours share beginnings; the short prompt is fed again in every part. A
    prompt of more than half the limit raises the limit to twice its length, and a single longer
    sequence makes a part of its own.
    """
    limit = max(limit, 2 * len(prompt))
    distinct = {prompt, *candidates}
    # Where every sequence begins with the prompt, its tokens need not be compared again.
    all_share = all(sequence[: len(prompt)] == prompt for sequence in distinct)
    shared_prefix = len(prompt) if all_share else 0
    parts: list[Part] = []
    inside: list[Ids] = []
    size = 0
    before: Ids = ()
    for sequence in sorted(distinct, key=lambda sequence: sequence[shared_prefix:]):
        new = _new_nodes(before, sequence, shared_prefix)
        if inside and size + new > limit:
            parts.append(Part((prompt, *inside), size))
            inside, size, new = [], len(prompt) - 1, _new_nodes(prompt, sequence, shared_prefix)
        if sequence != prompt:
            inside.append(sequence)
        size += new
        before = sequence
    parts.append(Part((prompt, *inside), size))
    return parts


def _new_nodes(before: Ids, sequence: Ids, shared_prefix: int) -> int:
    """Proper beginnings of ``sequence`` that ``before``, its neighbour in order, lacks.

    shared_prefix: tokens at the beginning that are known to be common (unless ``before`` is empty).
    """
    shared = common_length(before, sequence, shared_prefix) if before else 0
    return len(sequence) - 1 - min(shared, max(0, len(before) - 1))


def common_length(left: Ids, right: Ids, known: int = 0) -> int:
    """Length of the common beginning, of which ``known`` tokens need not be looked at."""
    for place, (a, b) in enumerate(zip(left[known:], right[known:], strict=False), start=known):
        if a != b:
            return place
    return min(len(left), len(right))
