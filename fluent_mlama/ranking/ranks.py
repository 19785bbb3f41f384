"""From scores to ranks: best first, rank 1 is best. Pure numpy, no files, no model.

Two rules for equal scores:

- `correct first` (protocol `paper`; Fluent-mLAMA's published program): a stable sort of correct forms before
  distractors, so a tie counts for the correct form. A block of ``-inf`` scores is such a tie.
- `mid-rank` (protocol `corrected`): tied candidates share the mean of the ranks that they cover; the best and the
  worst of these are kept beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Ties = Literal["gold", "mid", "worst"]
"""Which rank a tie gives to the correct side: the best that it covers, their mean, or the worst."""


def stable_ranks(scores: Sequence[float]) -> list[int]:
    """The 1-based rank of each score, highest first; equal scores keep the given order.

    scores: natural-log scores, ``-inf`` allowed. NaN is a ``ValueError``: it has no place in an order.
    """
    values = np.asarray(scores, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("a score is NaN")
    order = np.argsort(-values, kind="stable")
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(1, len(values) + 1)
    return [int(rank) for rank in ranks]


def correct_last_ranks(scores: Sequence[float], correct: int) -> list[int]:
    """Ranks where a tie counts against the correct forms, which are the first ``correct`` scores."""
    ranks = stable_ranks([*scores[correct:], *scores[:correct]])
    wrong = len(scores) - correct
    return [*ranks[wrong:], *ranks[:wrong]]


def true_ranks(correct: Sequence[str], ranks: Sequence[int]) -> dict[str, int]:
    """Ranks of the correct forms, in rank order (the published `true_ranks` cell). ``ranks`` may be longer than ``correct``."""
    return dict(sorted(zip(correct, ranks, strict=False), key=lambda pair: pair[1]))


def narrow_from_wide(wide: Mapping[str, int], narrow_forms: Sequence[str]) -> dict[str, int]:
    """Narrow ranks out of wide ones: each form moves up by the aliases (not themselves narrow forms) that stand before it.

    Both draw the same distractors, so one scoring pass serves both. A narrow form that ``wide`` lacks is a ``KeyError``.
    """
    narrow = set(narrow_forms)
    alias_ranks = [rank for form, rank in wide.items() if form not in narrow]
    ranks = {
        form: wide[form] - sum(rank < wide[form] for rank in alias_ranks) for form in narrow_forms
    }
    return dict(sorted(ranks.items(), key=lambda pair: pair[1]))


def top_flag(ranks: Mapping[str, int], k: int) -> int:
    """1 if any correct form stands at rank k or better, else 0."""
    return int(min(ranks.values()) <= k)


@dataclass(frozen=True, slots=True)
class TiedRank:
    """Rank of one candidate among all: the mean over its ties, and the best and worst rank that it could be given."""

    mid: float
    lowest: int
    highest: int


def tied_rank(score: float, others: Sequence[float]) -> TiedRank:
    """Rank of ``score`` among itself and ``others`` (natural logs, ``-inf`` allowed, NaN a ``ValueError``)."""
    values = np.asarray(others, dtype=np.float64)
    if np.isnan(score) or np.isnan(values).any():
        raise ValueError("a score is NaN")
    better = int((values > score).sum())
    equal = int((values == score).sum())
    return TiedRank(mid=better + 1 + equal / 2, lowest=better + 1, highest=better + 1 + equal)
