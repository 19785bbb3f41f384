"""Which batches are right for a masked model: sequences such as a run has, alone and in batches, decide at load.

On the model itself, in the run's number type, a few sequences; in float32, where all ways agree to rounding, whole batches
as large as the run's, of unequal lengths, on the model's first layers. Three things are decided one after the other, each
against plain forwards: whether rows are cut before the head, whether the weights are packed, and which sequences may
share a batch. What differs is not used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fluent_mlama.console import UserError
from fluent_mlama.scoring.checking import TOLERANCE, Comparison, agree, first_layers, reason_for
from fluent_mlama.scoring.failures import is_out_of_memory
from fluent_mlama.scoring.masked_network import BATCHINGS, REACH, Copy, MaskedNetwork
from fluent_mlama.scoring.methods import Edges
from fluent_mlama.scoring.network import can_pack, pack, unpack

_LENGTHS = (24, 9, 9, 3, 23, 3, REACH, REACH - 8, REACH // 2, REACH // 2)
"""Pairs, so that sequences of one length differ too; 3 is a mask between two special tokens."""
_SHORT = 4
"""So many of them are tried on the model itself."""
_SENTENCES = (0, 4)
"""Those that fill a whole batch: as long as sentences are."""
_SCORED = 8
"""Tokens whose log-probabilities are compared at each mask."""

Around = tuple[Sequence[int], Sequence[int]]
"""Ids of the special tokens before and after a sentence."""


class _Trial:
    """A network, sequences, and what plain forwards say of them. whole: all lengths, and as many as fill a batch."""

    def __init__(self, network: MaskedNetwork, around: Around, mask: int, *, whole: bool) -> None:
        self.network = network
        self.whole = whole
        self.number_type = str(network.loaded.model.dtype).removeprefix("torch.")
        self.examples = _examples(network, around, mask, _LENGTHS if whole else _LENGTHS[:_SHORT])
        self.plain = self._scores(range(len(self.examples)), "plain", False)

    def compare(self, batching: str, rows_first: bool) -> Comparison:
        """The sequences in such batches against plain forwards."""
        groups: list[Sequence[int]] = [range(len(self.examples))]
        if self.whole and batching != "plain":
            lengths = [_LENGTHS[number] for number in _SENTENCES]
            groups.append(
                _SENTENCES
                * (
                    self.network.token_budget
                    // (sum(lengths) if batching == "padded" else max(lengths))
                )
            )
        plain = [row for group in groups for number in group for row in self.plain[number]]

        def score() -> list[Edges]:
            return [
                row
                for group in groups
                for rows in self._scores(group, batching, rows_first)
                for row in rows
            ]

        return agree(score, plain, TOLERANCE.get(self.number_type, TOLERANCE["16-bit"]))

    def _scores(self, numbers: Sequence[int], batching: str, rows_first: bool) -> list[Edges]:
        """Log-probabilities ``[masks, _SCORED]`` in each of the examples ``numbers``."""
        scores: list[Edges] = [np.empty(0)] * len(numbers)
        copies = []
        for place, number in enumerate(numbers):
            ids, positions, tokens = self.examples[number]

            def take(rows: Tensor, place: int = place, tokens: Tensor = tokens) -> None:
                scores[place] = rows.cpu().gather(1, tokens).double().numpy()

            copies.append(Copy(ids, positions, take))
        self.network.batching, self.network.rows_first = batching, rows_first
        self.network.run(copies)
        return scores


def _examples(
    network: MaskedNetwork, around: Around, mask: int, lengths: Sequence[int]
) -> list[tuple[list[int], list[int], Tensor]]:
    """For each length: token ids, the positions of masks (every third), the tokens to compare there ``[masks, _SCORED]``."""
    generator = np.random.default_rng(0)
    tokens = min(network.tokens, network.vocabulary)  # fewer than the tokenizer's on first layers
    front, back = ([token % tokens for token in part] for part in around)
    examples = []
    for length in lengths:
        inner = max(1, min(length, network.max_length or length) - len(front) - len(back))
        ids = generator.integers(tokens, size=inner)
        ids[ids == network.pad] = mask % tokens
        ids[::3] = mask % tokens
        positions = list(range(len(front), len(front) + inner, 3))
        scored = torch.from_numpy(generator.integers(tokens, size=(len(positions), _SCORED)))
        examples.append(([*front, *ids.tolist(), *back], positions, scored))
    return examples


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """Why a network has its batches, and what the check saw (for run.json)."""

    reason: str
    record: dict[str, Any]


class _Check:
    """The trials of one model. seen: what the last comparison that was passed saw; refused: what did not pass, and why."""

    def __init__(self, network: MaskedNetwork, around: Around, mask: int) -> None:
        self.network = network
        self.probed = "the model"
        probe = self._probe(around, mask)
        self.trials = [
            _Trial(network, around, mask, whole=probe is None),
            *([] if probe is None else [probe]),
        ]
        self.in_float32 = self.trials[-1].number_type == "float32"
        self.seen: dict[str, Comparison] = {}
        self.refused: dict[str, str] = {}

    def _probe(self, around: Around, mask: int) -> _Trial | None:
        """The model's first layers; None where they do not make a model."""
        try:
            small, probed = first_layers(self.network.loaded.model)
            loaded = dataclasses.replace(self.network.loaded, model=small, dtype="float32")
            trial = _Trial(
                MaskedNetwork(loaded, self.network.token_budget), around, mask, whole=True
            )
        except Exception as error:  # whatever a model's code raises on being copied
            if is_out_of_memory(error):
                raise
            return None
        self.probed = probed
        return trial

    def passes(self, label: str, batching: str, rows_first: bool) -> bool:
        """Whether such batches agree with plain forwards in all trials."""
        self.seen = {}
        for trial in self.trials:
            found = trial.compare(batching, rows_first)
            if found.trouble is not None:
                self.refused[label] = found.trouble
                return False
            other = self.seen.get(trial.number_type, found)
            self.seen[trial.number_type] = Comparison(
                max(found.gap, other.gap), found.rank_changes + other.rank_changes
            )
        return True

    def pack(self, rows_first: bool) -> str:
        """Pack the linear layers if the model then still says the same; what was done, or why not."""
        model = self.network.loaded.model
        reason = can_pack(model)
        if reason is not None:
            return f"no: {reason}"
        try:
            count = pack(model)
            if self.passes("packed weights", "plain", rows_first):
                return f"{count} layers"
            reason = self.refused["packed weights"]
        except Exception as error:
            if is_out_of_memory(error):
                raise
            reason = f"{type(error).__name__}: {error}"
        unpack(model)
        return f"no: {reason}"


def choose_batches(
    network: MaskedNetwork, around: Around, mask: int, *, packed: bool
) -> BatchChoice:
    """Set ``network`` to the fastest batches that agree with plain forwards, with packed weights if asked for and right.

    Raises UserError for a model that cannot take a plain sentence, gives NaN for it, or other scores at each forward.
    """
    check = _Check(network, around, mask)
    rows_first = check.passes("wanted rows before the head", "plain", True)
    packing = check.pack(rows_first) if packed else "no: not asked for"
    if not check.in_float32:
        check.refused |= dict.fromkeys(BATCHINGS[:-1], "it could not be tried in float32")
    possible = [name for name in BATCHINGS if check.in_float32 or name == "plain"]
    chosen = next((name for name in possible if check.passes(name, name, rows_first)), None)
    if chosen is None:
        raise UserError(
            f"model {network.loaded.name} does not repeat its own scores: {check.refused['plain']}"
        )
    network.batching, network.rows_first = chosen, rows_first
    record = {
        "float32_checked_on": check.probed if check.in_float32 else "nothing",
        **{number_type: comparison.record() for number_type, comparison in check.seen.items()},
        "head": "wanted rows" if rows_first else "all rows",
        "refused": check.refused,
        "packed_linear": packing,
        "token_budget": network.token_budget,
        "longest_in_a_batch": REACH,
    }
    return BatchChoice(
        reason_for(
            chosen, "auto", {name: why for name, why in check.refused.items() if name in BATCHINGS}
        ),
        record,
    )
