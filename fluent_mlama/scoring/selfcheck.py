"""Which scoring method is right for this model, decided at load on what a run will meet.

Two things are asked of a method. On the model itself, in the run's own number type, it must score a
few sentences as plain forwards do. In float32, where all methods agree to rounding, its logic is
tried on the model's first layers with a pack as large as the run's: long and short prompts, unequal
endings, tokens far from their own depth. How long the sequences of that pack were is how far the
method reaches: models change their arithmetic at some length (sliding windows, chunks, rope and
temperature switches), and nobody can list all of them. The reach grows by the same check when
longer texts come.

In a pack a token's place in the sequence, its depth in its tree and its place among the keys are
three different numbers. They must be far apart in the check too: models that confuse them are right
on small inputs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.checking import (
    TOKENS,
    TOLERANCE,
    Comparison,
    agree,
    first_layers,
    reason_for,
)
from fluent_mlama.scoring.contract import Candidate, Request, Tokenisation
from fluent_mlama.scoring.devices import dtype_name
from fluent_mlama.scoring.failures import is_out_of_memory
from fluent_mlama.scoring.methods import (
    NODE_LIMIT,
    Edges,
    Ids,
    PaddedMethod,
    Reach,
    Runner,
    ScoringMethod,
    SharedPrefixMethod,
    Tree,
    TreeMethod,
    build_tree,
)
from fluent_mlama.scoring.network import Network, can_pack, pack, unpack
from fluent_mlama.scoring.remembered import Memory, Verdict
from fluent_mlama.scoring.tokens import PromptTokeniser

METHODS = ("tree", "shared-prefix", "padded", "plain")
REACH = 512
"""Tokens of the longest sequence in the pack that is tried at load."""
_LEAST_REACH = 8
_SENTENCES: tuple[tuple[Tokenisation, str], ...] = (
    ("separate", "The capital of France is"),
    ("joint", "Anna lives in the city of San Jos"),
)
_CANDIDATES = (" Paris", " the city of Paris", " the city of Rome", " the city of San José", "é")
_ENDINGS, _FILLING = 6, 60
"""Candidates per prompt, in trees that are compared and in trees that only fill the pack."""
_LONGEST_ENDING = 7
_SHORT_TREES = 5
_LONGEST_PROMPT = 40
"""Of the trees other than the two first."""
_MOST_FILLING = 64
_SUMMED = 16
"""Tokens whose log-probabilities are added before they are compared: more than a candidate has."""

Alone = Mapping[tuple[int, int], Edges]
"""(tree, sequence) -> log-probabilities of its tokens 2..n in a plain forward."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The method to use, how far, why, and what the check saw (for run.json)."""

    method: ScoringMethod
    reach: Reach
    reason: str
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """A method that agrees with plain forwards on up to ``reach`` tokens, and how closely."""

    name: str
    by_hand: bool
    reach: int
    seen: dict[str, Comparison]


@dataclass
class Check:
    """The comparisons on one model. positions: tokens a sequence may have (None if unlimited)."""

    network: Network
    tokeniser: PromptTokeniser
    token_budget: int
    positions: int | None
    probe: Network | None = field(init=False)
    probed: str = field(init=False)

    def __post_init__(self) -> None:
        self.probe, self.probed = _probe(self.network)
        self.at_load = REACH if self.positions is None else min(REACH, self.positions)
        self.single = self.network.model.dtype == torch.float32
        self.sentences = sentences(self.tokeniser, self.network.vocabulary, self.positions)
        self.whole = alone(self.network, self.sentences)
        self._at_length: dict[int, tuple[Pack, Alone]] = {}

    def trials(self, names: Sequence[str], refused: dict[str, str]) -> list[Trial]:
        """Usable methods, up to the first that reaches the check's length; ``refused``: why not."""
        found: list[Trial] = []
        heads = (True, False) if self.network.can_apply_head else (False,)
        for name in names:
            for by_hand in heads:
                label = name if by_hand == heads[0] else f"{name} (model's own head)"
                trial = self._try(name, by_hand)
                if isinstance(trial, str):
                    refused[label] = trial
                    continue
                found.append(trial)
                if trial.reach == self.at_load:
                    return found
                refused[label] = f"right for {trial.reach} tokens at most"
                # The other head cannot help: it sees each row by itself.
                break
        return found

    def _try(self, name: str, by_hand: bool) -> Trial | str:
        # On the model itself first, as a run would use it.
        seen: dict[str, Comparison] = {}
        dtype = dtype_name(self.network.model.dtype)
        tolerance = TOLERANCE["float32" if self.single else "16-bit"]
        seen[dtype] = compare(
            self.runner(self.network, name, by_hand), self.sentences, self.whole, tolerance
        )
        if seen[dtype].trouble is not None:
            return str(seen[dtype].trouble)
        if self.probe is None:
            return "its logic could not be tried in float32"
        # Halve the length until the method is right: 512, 256, ... tokens.
        length = self.at_load
        while True:
            at_size = self.at_length(self.probe, name, by_hand, length)
            if at_size.trouble is None:
                break
            if length <= _LEAST_REACH:
                return at_size.trouble
            length //= 2
        # A float32 model has been compared in float32 twice by now: the larger gap is recorded.
        before = seen.get("float32", at_size)
        seen["float32"] = Comparison(
            max(before.gap, at_size.gap), max(before.rank_changes, at_size.rank_changes)
        )
        return Trial(name, by_hand, length, seen)

    def at_length(self, probe: Network, name: str, by_hand: bool, length: int) -> Comparison:
        """The method on the probe with a pack whose longest sequence has ``length`` tokens."""
        if length not in self._at_length:
            made = pack_of(length, self.token_budget, min(TOKENS, self.network.vocabulary))
            try:
                self._at_length[length] = made, alone(probe, made)
            except (IndexError, ValueError, RuntimeError) as error:
                # Too many tokens for the model, whatever its config says.
                if is_out_of_memory(error):
                    raise
                why = f"the model itself fails on {length} tokens ({type(error).__name__})"
                return Comparison(math.nan, 0, why)
        made, reference = self._at_length[length]
        return compare(self.runner(probe, name, by_hand), made, reference, TOLERANCE["float32"])

    def forget(self) -> None:
        """Drop what was only needed to choose a method: the copy, and what was read with it."""
        self.probe = None
        self._at_length.clear()

    def runner(self, network: Network, name: str, by_hand: bool) -> Callable[[], Runner]:
        """A method as a run would use it, if it can be built."""

        # Built inside the comparison: a refusal by the constructor is then a reason like any other.
        def build() -> Runner:
            network.head_by_hand = by_hand
            pad = self.tokeniser.tokenizer.pad_token_id
            method = build_method(name, network, self.token_budget, pad)
            return Runner(method, plain_method(network), self.token_budget, lambda length: True)

        return build

    def reaches(self, name: str, by_hand: bool, length: int) -> bool:
        """Whether the method is right for ``length`` tokens, tried after load on a new probe."""
        probe, _ = _probe(self.network)
        if probe is None:
            return False
        fits = self.at_length(probe, name, by_hand, length).trouble is None
        self._at_length.clear()
        return fits


def choose_method(
    network: Network,
    tokeniser: PromptTokeniser,
    wanted: str,
    token_budget: int,
    positions: int | None = None,
    *,
    packed: bool = True,
    memory: Memory | None = None,
) -> Choice:
    """The fastest method of those that are right for the longest sequences (or ``wanted``).

    memory: where the verdict of an earlier check of this model may be kept; without one it is
    checked now. Raises UserError for an unknown name and for a wanted method that fails the check.
    """
    if wanted != "auto" and wanted not in METHODS:
        raise UserError(f"scoring method {wanted!r}: choose auto, {', '.join(METHODS)}")

    @functools.cache
    def check() -> Check:
        return Check(network, tokeniser, token_budget, positions)

    verdict = memory.recall() if memory is not None else None
    if verdict is not None and verdict.method in METHODS:
        if verdict.packed:
            pack(network.model, network.head if verdict.by_hand else None)
    else:
        verdict = _find_verdict(check(), wanted, packed)
        if memory is not None:
            memory.keep(verdict)
    network.head_by_hand = verdict.by_hand
    method = build_method(verdict.method, network, token_budget, tokeniser.tokenizer.pad_token_id)
    reach = Reach(
        verdict.reach,
        lambda length: check().reaches(verdict.method, verdict.by_hand, length),
        positions,
        closed=verdict.closed,
    )
    return Choice(method, reach, verdict.reason, dict(verdict.record))


def _find_verdict(check: Check, wanted: str, packed: bool) -> Verdict:
    """Try the methods on the model; the weights are packed afterwards where that agrees as well."""
    refused: dict[str, str] = {}
    trials = check.trials(METHODS if wanted == "auto" else (wanted,), refused)
    if not trials and wanted != "auto":
        raise UserError(
            f"scoring method {wanted} does not work with this model: {'; '.join(refused.values())}; use method auto"
        )
    # If no method is right, nothing is shared: every sequence gets a forward of its own (reach 0).
    best = max(trials, key=lambda trial: trial.reach, default=Trial("plain", False, 0, {}))
    count, told = _pack(check, best) if packed else (0, "no: not asked for")
    record = {
        "candidates": len(check.whole),
        "float32_checked_on": check.probed,
        **{dtype: comparison.record() for dtype, comparison in best.seen.items()},
        "head": "by hand" if best.by_hand else "model's own",
        "refused": refused,
        "packed_linear": told,
    }
    closed = best.reach < check.at_load
    check.forget()
    reason = reason_for(best.name, wanted, refused)
    return Verdict(best.name, best.by_hand, best.reach, closed, count > 0, reason, record)


def build_method(
    name: str, network: Network, token_budget: int, pad_token: int | None
) -> ScoringMethod:
    """A method by its name. Raises MethodRefused where the model cannot take it.

    pad_token: of the tokenizer; token 0 takes its place where there is none or the model has no row
    for it.
    """
    rows = len(network.model.get_input_embeddings().weight)
    if pad_token is None or pad_token >= rows:
        pad_token = 0
    if name == "tree":
        return TreeMethod(network)
    if name == "shared-prefix":
        return SharedPrefixMethod(network, token_budget, pad_token)
    return PaddedMethod(network, token_budget, pad_token, one_by_one=name == "plain")


def _probe(network: Network) -> tuple[Network | None, str]:
    """The first layers in float32, else the model itself (in 16 bit None)."""
    try:
        small, what = first_layers(network.model)
        return Network(small), what
    except Exception as error:  # whatever a model's code raises on being copied
        if network.model.dtype == torch.float32:
            return network, "the model"
        note(
            f"the scoring methods cannot be checked in float32: {type(error).__name__} while copying the first layers"
        )
        return None, f"nothing: {type(error).__name__}"


def _pack(check: Check, trial: Trial) -> tuple[int, str]:
    """Pack the linear layers unless that fails the check: how many layers, and in words."""
    network = check.network
    reason = can_pack(network.model)
    if reason is not None:
        return 0, f"no: {reason}"
    if check.probe is not None and check.probe is not network and trial.reach:
        pack(check.probe.model, check.probe.head if trial.by_hand else None)
        at_size = check.at_length(check.probe, trial.name, trial.by_hand, trial.reach)
        if at_size.trouble is not None:
            return 0, f"no: {at_size.trouble}"
    count = pack(network.model, network.head if trial.by_hand else None)
    runner = check.runner(network, trial.name, trial.by_hand)
    seen = compare(runner, check.sentences, check.whole, TOLERANCE["float32"])
    if seen.trouble is not None:
        unpack(network.model)
        return 0, f"no: {seen.trouble}"
    told = f"{count} layers, largest gap {seen.gap:.1e}, {seen.rank_changes} ranks changed"
    return count, told


@dataclass(frozen=True, slots=True)
class Pack:
    """Trees of one forward; sequences ``chosen`` (tree, sequence) are scored plainly as well."""

    trees: tuple[Tree, ...]
    chosen: tuple[tuple[int, int], ...]


def sentences(tokeniser: PromptTokeniser, vocabulary: int, positions: int | None) -> Pack:
    """Two prompts, one per tokenisation; candidates share beginnings, or begin in the prompt.

    Of words where the tokenizer knows them and the model has as many positions, else of arbitrary
    token ids.
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
            ladder_and_fan = pack_of(min(16, positions or 16), 0, vocabulary).trees[:2]
            return everything(ladder_and_fan)
        trees.append(build_tree([tokens.prompt, *sequences]))
    return everything(trees)


def everything(trees: Sequence[Tree]) -> Pack:
    """A pack of which every sequence is chosen."""
    pairs = [(t, s) for t, tree in enumerate(trees) for s in range(len(tree.sequences))]
    return Pack(tuple(trees), tuple((t, s) for t, s in pairs if len(trees[t].sequences[s]) > 1))


def pack_of(longest: int, budget: int, vocabulary: int) -> Pack:
    """Trees of at least ``budget`` fed tokens; the longest sequence has ``longest`` tokens.

    Long ones stand in front, short ones that are compared behind everything else: far from their
    own depth. The size is at least what one prompt of that length can take with all its candidates.
    """
    # The same pack for the same length: a check repeats to the last bit.
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
    # ladder | long fan | filling ... | short fans: depth 0 of the last trees is far along the pack
    trees = (ladder, compared[0], *filling, *compared[1:])
    places = [t for t, tree in enumerate(trees) if not any(tree is one for one in filling)]
    chosen = [(t, s) for t in places for s in _to_compare(trees[t], every=t == 0)]
    return Pack(trees, tuple(chosen))


def _to_compare(tree: Tree, every: bool) -> list[int]:
    """All sequences of a tree, or its longest and two others; none of a single token."""
    found = [s for s, sequence in enumerate(tree.sequences) if len(sequence) > 1]
    longest = max(found, key=lambda s: len(tree.sequences[s]), default=0)
    return found if every else sorted({longest, *found[:1], *found[-1:]})


def _ladder(longest: int, vocabulary: int, generator: np.random.Generator) -> list[Ids]:
    """One long sequence, and others that leave it at 1/2, 1/4, ... of its length."""
    whole = _draw(longest, vocabulary, generator)
    rungs = [longest >> halvings for halvings in range(1, longest.bit_length())]
    left = [(whole[:rung] + _draw(2, vocabulary, generator))[:longest] for rung in rungs]
    return list(dict.fromkeys([whole[: max(1, longest // 2)], whole, *left]))


def _fan(
    length: int, count: int, longest: int, vocabulary: int, generator: np.random.Generator
) -> list[Ids]:
    """A prompt with endings of 1 to 7 tokens; the last begins inside the prompt."""
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


def plain_method(network: Network) -> PaddedMethod:
    """One sequence at a time."""
    return PaddedMethod(network, 1, 0, one_by_one=True)


def alone(network: Network, made: Pack) -> Alone:
    """Plain forwards of the chosen sequences of a pack, through the model's own head."""
    # The reference is what the model's own forward returns, whatever it does to its logits.
    by_hand, network.head_by_hand = network.head_by_hand, False
    result = {}
    with torch.inference_mode():
        for t, s in made.chosen:
            single = build_tree([made.trees[t].sequences[s]])
            result[t, s] = plain_method(network).run([single], "float32")[0][single.paths[0]]
    network.head_by_hand = by_hand
    if any(np.isnan(values).any() for values in result.values()):
        raise UserError(
            "the model gives NaN for a plain sentence; its files may be damaged, or try --dtype float32"
        )
    return result


def compare(
    build: Callable[[], Runner], made: Pack, reference: Alone, tolerance: float
) -> Comparison:
    """Run the method that ``build`` makes and compare it with the reference."""
    compared = sorted({t for t, _ in made.chosen})

    def score() -> list[Edges]:
        runner = build()
        # Filling matters only where it is in the same forward.
        numbers = range(len(made.trees)) if runner.method.mixes else compared
        edges = dict(
            zip(numbers, runner.run([made.trees[t] for t in numbers], "float32"), strict=True)
        )
        return _sums({(t, s): edges[t][made.trees[t].paths[s]] for t, s in made.chosen}, compared)

    return agree(score, _sums(reference, compared), tolerance)


def _sums(values: Alone, trees: Sequence[int]) -> list[Edges]:
    """Sums to compare: the ends of each tree's sequences, then stretches of each sequence."""
    ends = [
        np.array([one[-_SUMMED:].sum() for (t, _), one in values.items() if t == tree])
        for tree in trees
    ]
    stretches = [np.add.reduceat(one, range(0, len(one), _SUMMED)) for one in values.values()]
    return ends + [part for one in stretches for part in np.split(one, len(one))]
