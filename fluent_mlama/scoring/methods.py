"""From trees to edge log-probabilities: four methods, the same numbers at different costs.

tree           several trees in one sequence, attention block by block (``attention.py``)
shared-prefix  a tree's common beginning once, its cache repeated for every continuation
padded         every sequence whole, right-padded batches
plain          every sequence whole and by itself

**Trees.** Token sequences that share beginnings, as one tree in which every shared token is computed once.

    prompt ── A ── B          sequences  prompt A B, prompt A C, prompt D
           │    └─ C          fed        prompt, A           (nodes that something follows)
           └─ D               edges      B and C read at A, A and D read at the prompt's last token

A leaf is read, never fed: the probability of a last token stands in the row of the token before it.
One edge belongs to each tree node but the roots; the score of a sequence is the sum over its edges.

**Attention.** Attention within trees: every token sees its ancestors and nothing else.

Trees of a pack lie one behind the other in one sequence. Rows are taken in blocks; a block's keys
are the ancestors of its rows, gathered, so that work is done neither between trees nor between
branches that cannot see each other. Blocks with about as many keys share one call. The function is
registered with transformers' ``AttentionInterface`` and is set on a model only while one of our
forwards runs: other code that used the model meanwhile would silently lose its padding mask.

**Running.** Trees by a scoring method within the memory there is: forwards of bounded size, halved where memory runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, DynamicCache

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.contract import Arithmetic
from fluent_mlama.scoring.devices import give_back_freed, release_memory
from fluent_mlama.scoring.failures import is_out_of_memory
from fluent_mlama.scoring.network import HeadRows, Network, read_edges

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


LOGITS_BYTES = 1 << 28
"""Most that a forward may spend on logits where the model makes all wanted rows at once."""
GIVE_BACK_EVERY = 8
"""Forwards after which freed memory goes back to the system."""


@dataclass(slots=True)
class Reach:
    """How long a text a method is right for; longer ones are tried when they come.

    try_length: whether the method is right for sequences of up to so many tokens. most: what the
    model has positions for.
    """

    length: int
    try_length: Callable[[int], bool]
    most: int | None = None
    closed: bool = False

    def covers(self, length: int) -> bool:
        """Whether the method is right for a sequence of ``length`` tokens."""
        while self.length < length and not self.closed:
            longer = (
                2 * self.length
                if self.most is None
                else min(2 * self.length, max(self.most, length))
            )
            if self.try_length(longer):
                self.length = longer
            else:
                self.closed = True
        return length <= self.length


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
