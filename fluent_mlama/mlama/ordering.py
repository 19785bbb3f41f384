"""Which candidate wins: scores, descending; equal scores by label, and told, so that no gold label wins by luck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-6
"""Nats within which two scores are a tie: what another batch size may change in float32."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Candidates from best to worst. tied_with_best: how many share the best score with the first."""

    labels: tuple[str, ...]
    scores: tuple[float, ...]
    tied_with_best: int

    def rank(self, label: str) -> int | None:
        """1 = best; None for what did not compete."""
        return self.labels.index(label) + 1 if label in self.labels else None


def order(labels: Sequence[str], scores: Sequence[float] | NDArray[np.float64]) -> Ordered:
    """Sort by (score, label); scores within ``TOLERANCE`` of the best of their group are equal. NaN does not compete."""
    values = np.asarray(scores, dtype=np.float64)
    places = [
        int(place) for place in np.argsort(-values, kind="stable") if not np.isnan(values[place])
    ]
    groups: list[list[int]] = []
    for place in places:
        if groups and values[groups[-1][0]] - values[place] <= TOLERANCE:
            groups[-1].append(place)
        else:
            groups.append([place])
    sequence = [place for group in groups for place in sorted(group, key=lambda one: labels[one])]
    tied = len(groups[0]) - 1 if groups else 0
    return Ordered(
        tuple(labels[place] for place in sequence),
        tuple(float(values[place]) for place in sequence),
        tied,
    )
