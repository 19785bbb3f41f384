"""A path against plain forwards: the same sequences, each alone, through the model's own head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from fluent_mlama.console import UserError
from fluent_mlama.scoring.comparing import Comparison, agree
from fluent_mlama.scoring.fixture import Pack
from fluent_mlama.scoring.network import Network
from fluent_mlama.scoring.paths import Edges, PaddedPath
from fluent_mlama.scoring.running import Runner
from fluent_mlama.scoring.trie import build_tree

_SUMMED = 16
"""Tokens whose log-probabilities are added before they are compared: more than a candidate has."""

Alone = Mapping[tuple[int, int], Edges]
"""(tree, sequence) -> log-probabilities of its tokens 2..n, from a plain forward of that sequence."""


def plain_path(network: Network) -> PaddedPath:
    """One sequence at a time."""
    return PaddedPath(network, 1, 0, one_by_one=True)


def alone(network: Network, made: Pack) -> Alone:
    """Plain forwards of the chosen sequences of a pack, through the model's own head."""
    by_hand, network.head_by_hand = network.head_by_hand, False
    result = {}
    with torch.inference_mode():
        for t, s in made.chosen:
            single = build_tree([made.trees[t].sequences[s]])
            result[t, s] = plain_path(network).run([single], "float32")[0][single.paths[0]]
    network.head_by_hand = by_hand
    if any(np.isnan(values).any() for values in result.values()):
        raise UserError(
            "the model gives NaN for a plain sentence; its files may be damaged, or try --dtype float32"
        )
    return result


def compare(
    build: Callable[[], Runner], made: Pack, reference: Alone, tolerance: float
) -> Comparison:
    """Run the path that ``build`` makes and hold it against the reference: the ends of sequences, ranked, and the rest."""
    compared = sorted({t for t, _ in made.chosen})

    def score() -> list[Edges]:
        runner = build()
        numbers = range(len(made.trees)) if runner.path.mixes else compared
        edges = dict(
            zip(numbers, runner.run([made.trees[t] for t in numbers], "float32"), strict=True)
        )
        return _sums({(t, s): edges[t][made.trees[t].paths[s]] for t, s in made.chosen}, compared)

    return agree(score, _sums(reference, compared), tolerance)


def _sums(values: Alone, trees: Sequence[int]) -> list[Edges]:
    """Of each tree, its sequences' last tokens together; then every sequence's tokens, some at a time, each sum by itself."""
    ends = [
        np.array([one[-_SUMMED:].sum() for (t, _), one in values.items() if t == tree])
        for tree in trees
    ]
    stretches = [np.add.reduceat(one, range(0, len(one), _SUMMED)) for one in values.values()]
    return ends + [part for one in stretches for part in np.split(one, len(one))]
