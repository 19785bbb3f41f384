"""Scores against those of plain forwards: what the checks at load call the same, and how they say what they saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluent_mlama.console import UserError
from fluent_mlama.scoring.attention import PathRefused
from fluent_mlama.scoring.failures import is_out_of_memory
from fluent_mlama.scoring.paths import Edges

TOLERANCE = {"float32": 1e-3, "16-bit": 1.0}
"""Largest gap of a candidate's summed log-probability between a way to score and plain forwards."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Scores against those of plain forwards. trouble: why the way they were made cannot be used."""

    gap: float
    rank_changes: int
    trouble: str | None = None

    def record(self) -> dict[str, Any]:
        """For run.json."""
        return {"largest_gap": self.gap, "rank_changes": self.rank_changes}


def agree(
    score: Callable[[], Sequence[Edges]], plain: Sequence[Edges], tolerance: float
) -> Comparison:
    """What ``score`` returns against plain scores: lists of arrays, each the scores of texts that are ranked together."""
    try:
        scores = score()
    except (PathRefused, UserError) as refusal:
        return Comparison(float("nan"), 0, str(refusal))
    except Exception as error:  # whatever a model's code raises on an input it was not made for is a reason, not a bug
        if is_out_of_memory(error):
            raise
        return Comparison(
            float("nan"), 0, f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        )
    gap, changes = 0.0, 0
    for mine, right in zip(scores, plain, strict=True):
        with np.errstate(invalid="ignore"):  # both may be -inf
            apart = np.where(mine == right, 0.0, mine - right)
        gap = float(
            np.maximum(gap, np.abs(apart).max(initial=0.0))
        )  # unlike Python's max, keeps NaN
        changes += int(
            (np.argsort(-mine, kind="stable") != np.argsort(-right, kind="stable")).sum()
        )
    if not gap <= tolerance:  # NaN is trouble too
        return Comparison(gap, changes, f"scores are {gap:.2g} off the plain path's")
    return Comparison(gap, changes)


def seen_gaps(record: Mapping[str, Any]) -> str:
    """Largest gap and changed ranks in each number type of a check's record, for the terminal."""
    checks = {
        name: value
        for name, value in record.items()
        if isinstance(value, dict) and "largest_gap" in value
    }
    return "".join(
        f"; {name}: largest gap {one['largest_gap']:.1e}, {one['rank_changes']} ranks changed"
        for name, one in checks.items()
    )


def reason_for(name: str, wanted: str, refused: Mapping[str, str]) -> str:
    """Why the way ``name`` is taken. wanted: it, or auto; refused: other ways, and why not."""
    if wanted != "auto":
        return "asked for"
    others = {
        label.split(" ")[0]: trouble
        for label, trouble in refused.items()
        if label.split(" ")[0] != name
    }
    if not others:
        return "the fastest; agrees with plain forwards"
    return "agrees with plain forwards; refused: " + "; ".join(
        f"{label}: {trouble}" for label, trouble in others.items()
    )
