"""Which path is right for this model: what a run will meet, scored plainly and by each path, decides at load.

Two things are asked of a path. On the model itself, in the run's own number type, it must score a few sentences as plain
forwards do. In float32, where all paths agree to rounding, its logic is tried on the model's first layers with a pack
as large as the run's: long and short prompts, unequal endings, tokens far from their own depth. How long the sequences
of that pack were is how far the path reaches: models change their arithmetic at some length (sliding windows, chunks,
rope and temperature switches), and nobody can list all of them. The reach grows by the same check when longer texts come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.comparing import TOLERANCE, Comparison, reason_for
from fluent_mlama.scoring.failures import is_out_of_memory
from fluent_mlama.scoring.fixture import Pack, pack_of, sentences
from fluent_mlama.scoring.network import Network
from fluent_mlama.scoring.packed_linear import can_pack, pack, unpack
from fluent_mlama.scoring.paths import PaddedPath, Path
from fluent_mlama.scoring.plain_forwards import Alone, alone, compare, plain_path
from fluent_mlama.scoring.running import Runner
from fluent_mlama.scoring.shallow import TOKENS, first_layers
from fluent_mlama.scoring.tokens import PromptTokeniser
from fluent_mlama.scoring.tree_paths import SharedPrefixPath, TreePath

PATHS = ("tree", "shared-prefix", "padded", "plain")
REACH = 512
"""Tokens of the longest sequence in the pack that is tried at load."""
_LEAST_REACH = 8


@dataclass(slots=True)
class Reach:
    """Sequences of at most ``length`` tokens are right by a path; longer ones are tried when they come, until one fails.

    try_length: whether the path is right for sequences of up to so many tokens. most: what the model has positions for.
    """

    length: int
    try_length: Callable[[int], bool]
    most: int | None = None
    closed: bool = False

    def covers(self, length: int) -> bool:
        """Whether the path is right for a sequence of ``length`` tokens."""
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


@dataclass(frozen=True, slots=True)
class Choice:
    """The path to use, how far, why, and what the check saw (for run.json)."""

    path: Path
    reach: Reach
    reason: str
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """A path that agrees with plain forwards on sequences of up to ``reach`` tokens, and by how much."""

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
        """What can be used, in order, up to the first that reaches as far as the check does; ``refused`` says why not."""
        found: list[Trial] = []
        for name in names:
            for by_hand in (True, False) if self.network.can_apply_head else (False,):
                label = (
                    name
                    if by_hand or not self.network.can_apply_head
                    else f"{name} (model's own head)"
                )
                trial = self._try(name, by_hand)
                if isinstance(trial, str):
                    refused[label] = trial
                    continue
                found.append(trial)
                if trial.reach == self.at_load:
                    return found
                refused[label] = f"right for {trial.reach} tokens at most"
                break  # whose head it is makes no difference to that
        return found

    def _try(self, name: str, by_hand: bool) -> Trial | str:
        seen: dict[str, Comparison] = {}
        dtype = str(self.network.model.dtype).removeprefix("torch.")
        tolerance = TOLERANCE["float32" if self.single else "16-bit"]
        seen[dtype] = compare(
            self.runner(self.network, name, by_hand), self.sentences, self.whole, tolerance
        )
        if seen[dtype].trouble is not None:
            return str(seen[dtype].trouble)
        if self.probe is None:
            return "its logic could not be tried in float32"
        length = self.at_load
        while True:
            at_size = self.at_length(self.probe, name, by_hand, length)
            if at_size.trouble is None:
                break
            if length <= _LEAST_REACH:
                return at_size.trouble
            length //= 2
        before = seen.get("float32", at_size)
        seen["float32"] = Comparison(
            max(before.gap, at_size.gap), max(before.rank_changes, at_size.rank_changes)
        )
        return Trial(name, by_hand, length, seen)

    def at_length(self, probe: Network, name: str, by_hand: bool, length: int) -> Comparison:
        """The path on the probe with a pack whose longest sequence has ``length`` tokens."""
        if length not in self._at_length:
            made = pack_of(length, self.token_budget, min(TOKENS, self.network.vocabulary))
            try:
                self._at_length[length] = made, alone(probe, made)
            except (
                IndexError,
                ValueError,
                RuntimeError,
            ) as error:  # too many tokens for the model, whatever its config says
                if is_out_of_memory(error):
                    raise
                return Comparison(
                    math.nan,
                    0,
                    f"the model itself fails on {length} tokens ({type(error).__name__})",
                )
        made, reference = self._at_length[length]
        return compare(self.runner(probe, name, by_hand), made, reference, TOLERANCE["float32"])

    def forget(self) -> None:
        """Drop what was only needed to choose a path: the copy, and what was read with it."""
        self.probe = None
        self._at_length.clear()

    def runner(self, network: Network, name: str, by_hand: bool) -> Callable[[], Runner]:
        """A path as a run would use it, if it can be built."""

        def build() -> Runner:
            network.head_by_hand = by_hand
            pad = self.tokeniser.tokenizer.pad_token_id or 0
            rows = len(network.model.get_input_embeddings().weight)
            path = build_path(name, network, self.token_budget, pad if pad < rows else 0)
            return Runner(path, plain_path(network), self.token_budget, lambda length: True)

        return build

    def reaches(self, trial: Trial, length: int) -> bool:
        """Whether the path is right for ``length`` tokens, tried after load: on a probe made for this."""
        probe, _ = _probe(self.network)
        if probe is None:
            return False
        fits = self.at_length(probe, trial.name, trial.by_hand, length).trouble is None
        self._at_length.clear()
        return fits


def choose_path(
    network: Network,
    tokeniser: PromptTokeniser,
    wanted: str,
    token_budget: int,
    positions: int | None = None,
    *,
    packed: bool = True,
) -> Choice:
    """The path that agrees with plain forwards furthest, the fastest of them (or ``wanted``), with packed weights if possible.

    Raises UserError for an unknown name and for a wanted path that fails the check.
    """
    if wanted != "auto" and wanted not in PATHS:
        raise UserError(f"scoring path {wanted!r}: choose auto, {', '.join(PATHS)}")
    check = Check(network, tokeniser, token_budget, positions)
    refused: dict[str, str] = {}
    trials = check.trials(PATHS if wanted == "auto" else (wanted,), refused)
    if not trials and wanted != "auto":
        raise UserError(
            f"scoring path {wanted} does not work with this model: {'; '.join(refused.values())}; use path auto"
        )
    # if nothing is right, not even what a sequence shares with another is: each in a forward of its own
    best = max(trials, key=lambda trial: trial.reach, default=Trial("plain", False, 0, {}))
    path = check.runner(network, best.name, best.by_hand)().path
    reach = Reach(
        best.reach,
        lambda length: check.reaches(best, length),
        positions,
        closed=best.reach < check.at_load,
    )
    record = {
        "candidates": len(check.whole),
        "float32_checked_on": check.probed,
        **{dtype: comparison.record() for dtype, comparison in best.seen.items()},
        "head": "by hand" if best.by_hand else "model's own",
        "refused": refused,
        "packed_linear": _pack(check, best) if packed else "no: not asked for",
    }
    check.forget()
    return Choice(path, reach, reason_for(best.name, wanted, refused), record)


def build_path(name: str, network: Network, token_budget: int, pad_token: int) -> Path:
    """A path by its name. Raises PathRefused where the model cannot take it."""
    if name == "tree":
        return TreePath(network)
    if name == "shared-prefix":
        return SharedPrefixPath(network, token_budget, pad_token)
    return PaddedPath(network, token_budget, pad_token, one_by_one=name == "plain")


def _probe(network: Network) -> tuple[Network | None, str]:
    """The model's first layers in float32, or the model itself where they cannot be copied; None in 16 bit."""
    try:
        small, what = first_layers(network.model)
        return Network(small), what
    except Exception as error:  # whatever a model's code raises on being copied
        if network.model.dtype == torch.float32:
            return network, "the model"
        note(
            f"the scoring paths cannot be checked in float32: {type(error).__name__} while copying the first layers"
        )
        return None, f"nothing: {type(error).__name__}"


def _pack(check: Check, trial: Trial) -> str:
    """Pack the linear layers, and check again; what fails the check comes back as it was."""
    network = check.network
    reason = can_pack(network.model)
    if reason is not None:
        return f"no: {reason}"
    if check.probe is not None and check.probe is not network and trial.reach:
        pack(check.probe.model, check.probe.head if trial.by_hand else None)
        at_size = check.at_length(check.probe, trial.name, trial.by_hand, trial.reach)
        if at_size.trouble is not None:
            return f"no: {at_size.trouble}"
    count = pack(network.model, network.head if trial.by_hand else None)
    runner = check.runner(network, trial.name, trial.by_hand)
    seen = compare(runner, check.sentences, check.whole, TOLERANCE["float32"])
    if seen.trouble is not None:
        unpack(network.model)
        return f"no: {seen.trouble}"
    return f"{count} layers, largest gap {seen.gap:.1e}, {seen.rank_changes} ranks changed"
