"""What an order is worth against the gold one (section 4.2 of the paper): P@1, Acc and Diff, and single ranks and pairs.

Ranks are 1 for the most popular. Options that an answer leaves out share the mean of the ranks that are left, so one
that is left out alone has its rank by elimination. No answer at all is wrong, with Diff .5, the value of chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fluent_mlama.cpopqa.parsing import Answer, Status

Floats = NDArray[np.float64]
NO_ANSWER = 0.5


@dataclass(frozen=True, slots=True)
class Marks:
    """One answer's marks. first: P@1. exact: Acc. diff: (1 − ρ) / 2. places: right concept at each gold rank.

    pairs: for each concept in gold order, the share of its pairs with the others that are in the right order (ties by half).
    """

    status: Status
    first: float
    exact: float
    diff: float
    places: tuple[float, ...]
    pairs: tuple[float, ...]


def ranks_of(answer: Answer, gold: Sequence[str]) -> Floats:
    """(n,) ranks that the answer gives the concepts, in gold order; all equal where it names none."""
    left_over = (len(answer.order) + 1 + len(gold)) / 2
    named = {name: float(rank) for rank, name in enumerate(answer.order, start=1)}
    return np.array([named.get(name, left_over) for name in gold])


def diff(ranks: Floats) -> float:
    """(1 − ρ) / 2 with Spearman's ρ of ranks given in gold order: 0 right, .5 chance, 1 reversed."""
    gold = np.arange(1.0, len(ranks) + 1)
    centred, ideal = ranks - ranks.mean(), gold - gold.mean()
    size = float(np.sqrt((centred**2).sum() * (ideal**2).sum()))
    return NO_ANSWER if size == 0 else float((1 - (centred * ideal).sum() / size) / 2)


def mark(answer: Answer, gold: Sequence[str]) -> Marks:
    """The marks of one answer."""
    n = len(gold)
    if answer.status == "none":
        return Marks("none", 0.0, 0.0, NO_ANSWER, (0.0,) * n, (0.5,) * n)
    ranks = ranks_of(answer, gold)
    places = tuple(float(rank == place) for place, rank in enumerate(ranks, start=1))
    signs = np.sign(ranks[None, :] - ranks[:, None]) * np.sign(
        np.arange(n)[None, :] - np.arange(n)[:, None]
    )
    right = (signs + 1) / 2
    pairs = (right.sum(axis=1) - 0.5) / (
        n - 1
    )  # a concept's pair with itself counts as a half and is taken out
    return Marks(
        answer.status,
        places[0],
        float(all(places)),
        diff(ranks),
        places,
        tuple(float(one) for one in pairs),
    )
