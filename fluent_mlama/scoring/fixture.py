"""What the check at load scores: a few real sentences, and packs of the size and shape that a run has.

In a pack a token's place in the sequence, its depth in its tree and its place among the keys are three different
numbers. They must be far apart in the check too: models that confuse them are right on small inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fluent_mlama.console import UserError
from fluent_mlama.scoring.contract import Candidate, Request, Tokenisation
from fluent_mlama.scoring.tokens import PromptTokeniser
from fluent_mlama.scoring.trie import NODE_LIMIT, Ids, Tree, build_tree

_SENTENCES: tuple[tuple[Tokenisation, str], ...] = (
    ("separate", "The capital of France is"),
    ("joint", "Anna lives in the city of San Jos"),
)
_CANDIDATES = (" Paris", " the city of Paris", " the city of Rome", " the city of San José", "é")
_ENDINGS, _FILLING = 6, 60
"""Candidates behind a prompt, in trees that are compared and in those that only make the pack large."""
_LONGEST_ENDING = 7
_SHORT_TREES = 5
_LONGEST_PROMPT = 40
"""Of the trees other than the two first."""
_MOST_FILLING = 64


@dataclass(frozen=True, slots=True)
class Pack:
    """Trees of one forward; sequences ``chosen`` (tree, sequence) are scored plainly as well."""

    trees: tuple[Tree, ...]
    chosen: tuple[tuple[int, int], ...]


def sentences(tokeniser: PromptTokeniser, vocabulary: int, positions: int | None) -> Pack:
    """Two prompts, one in each tokenisation; candidates share beginnings, end inside each other, or begin in the prompt.

    Of words where the tokenizer knows them and the model has as many positions, else of arbitrary token ids.
    """
    trees = []
    for tokenisation, prompt in _SENTENCES:
        request = Request(prompt, tuple(Candidate(text) for text in _CANDIDATES))
        try:
            (tokens,) = tokeniser.tokenise([request], tokenisation)
        except UserError:  # no character offsets: there is no joint tokenisation
            continue
        sequences = list(
            dict.fromkeys(
                one.sequence for one in tokens.candidates if one.start < len(one.sequence)
            )
        )
        unknown = (
            len(tokens.prompt) < 2 or len(sequences) < 4 or max(map(max, sequences)) >= vocabulary
        )
        if unknown or (positions is not None and max(map(len, sequences)) > positions):
            return everything(
                pack_of(min(16, positions or 16), 0, vocabulary).trees[:2]
            )  # a ladder and a fan
        trees.append(build_tree([tokens.prompt, *sequences]))
    return everything(trees)


def everything(trees: Sequence[Tree]) -> Pack:
    """A pack of which every sequence is chosen."""
    pairs = [(t, s) for t, tree in enumerate(trees) for s in range(len(tree.sequences))]
    return Pack(tuple(trees), tuple((t, s) for t, s in pairs if len(trees[t].sequences[s]) > 1))


def pack_of(longest: int, budget: int, vocabulary: int) -> Pack:
    """Trees of ``budget`` fed tokens or more, of arbitrary ids; one sequence has ``longest`` tokens, none more.

    Long ones stand in front, short ones that are compared behind everything else: far from their own depth. The size is
    at least what one prompt of that length can take with all its candidates.
    """
    generator = np.random.default_rng(longest)

    def fan(length: int, endings: int) -> Tree:
        return build_tree(_fan(max(1, length), endings, longest, vocabulary, generator))

    def short() -> int:
        return int(generator.integers(1, max(2, min(_LONGEST_PROMPT, longest // 2))))

    ladder = build_tree(_ladder(longest, vocabulary, generator))
    compared = [
        fan(longest - _LONGEST_ENDING, _ENDINGS),
        fan(1, _ENDINGS),
        *(fan(short(), _ENDINGS) for _ in range(_SHORT_TREES)),
    ]
    filling: list[Tree] = []
    size = ladder.size + sum(tree.size for tree in compared)
    while size < max(budget, 2 * longest, NODE_LIMIT) and len(filling) < _MOST_FILLING:
        filling.append(fan(short(), _FILLING))
        size += filling[-1].size
    trees = (ladder, compared[0], *filling, *compared[1:])
    places = [t for t, tree in enumerate(trees) if not any(tree is one for one in filling)]
    chosen = [(t, s) for t in places for s in _to_compare(trees[t], every=t == 0)]
    return Pack(trees, tuple(chosen))


def _to_compare(tree: Tree, every: bool) -> list[int]:
    """All sequences of a tree, or its longest and two others; single tokens have nothing to compare."""
    found = [s for s, sequence in enumerate(tree.sequences) if len(sequence) > 1]
    longest = max(found, key=lambda s: len(tree.sequences[s]), default=0)
    return found if every else sorted({longest, *found[:1], *found[-1:]})


def _ladder(longest: int, vocabulary: int, generator: np.random.Generator) -> list[Ids]:
    """One long sequence, and others that leave it at a half, a quarter ... of it: whatever depends on length shows."""
    whole = _draw(longest, vocabulary, generator)
    rungs = [longest >> halvings for halvings in range(1, longest.bit_length())]
    left = [(whole[:rung] + _draw(2, vocabulary, generator))[:longest] for rung in rungs]
    return list(dict.fromkeys([whole[: max(1, longest // 2)], whole, *left]))


def _fan(
    length: int, count: int, longest: int, vocabulary: int, generator: np.random.Generator
) -> list[Ids]:
    """A prompt of ``length`` tokens, and behind it endings of 1 to 7 tokens; the last one begins inside the prompt."""
    prompt = _draw(length, vocabulary, generator)
    common = _draw(_LONGEST_ENDING, vocabulary, generator)
    endings = [common, common[:1], common[:3], common[:2] + _draw(2, vocabulary, generator)]
    for _ in range(count - len(endings)):
        endings.append(_draw(int(generator.integers(1, _LONGEST_ENDING)), vocabulary, generator))
    found = [
        prompt,
        *(prompt + ending for ending in endings),
        prompt[:-1] + _draw(2, vocabulary, generator),
    ]
    return list(dict.fromkeys(sequence[:longest] for sequence in found))


def _draw(count: int, vocabulary: int, generator: np.random.Generator) -> Ids:
    return tuple(generator.integers(vocabulary, size=count).tolist())
