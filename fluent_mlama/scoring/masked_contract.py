"""What goes into the masked scorer and what comes out. Plain data, no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TypedQuery:
    """A template around its object: the text left and right of it, and the candidates that compete to fill it.

    untyped: also answer with the likeliest pieces, for each number of masks from one to the longest candidate's.
    max_masks: candidates of more pieces are not scored. layouts: number of masks -> (token ids without the special
    ones, positions of the masks), to put the masks elsewhere than between the two texts.
    """

    left: str
    right: str
    candidates: tuple[str, ...]
    untyped: bool = False
    max_masks: int | None = None
    layouts: Mapping[int, tuple[Ids, tuple[int, ...]]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class PieceScore:
    """Pieces and the log-probability of each (none where not scored); unknown: one is the tokenizer's unknown token."""

    token_ids: Ids
    token_logprobs: tuple[float, ...]
    unknown: bool = False

    @property
    def mean(self) -> float:
        """The typed query's score; NaN for a candidate of no pieces."""
        return (
            sum(self.token_logprobs) / len(self.token_logprobs)
            if self.token_logprobs
            else float("nan")
        )

    @property
    def total(self) -> float:
        """The pseudo-log-likelihood."""
        return float(sum(self.token_logprobs))


@dataclass(frozen=True, slots=True)
class TypedResult:
    """Scores in the query's order; untyped: for each number of masks k, the likeliest piece at each mask on its own."""

    candidates: tuple[PieceScore, ...]
    untyped: Mapping[int, PieceScore]
