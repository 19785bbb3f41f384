"""Minimal pairs as outcomes: an item is a pair, a condition is a linking function; right is rank 1 of 2."""

from __future__ import annotations

from collections.abc import Sequence

from fluent_mlama.linking import Linking
from fluent_mlama.outcomes import Measure, Outcomes, outcome_rows
from fluent_mlama.zhoblimp.measures import Result

ACCURACY = Measure("accuracy", cutoff=1)


def outcomes_of(
    results: Sequence[Result], functions: Sequence[Linking], signature: str
) -> Outcomes:
    """Every pair under every linking function (of every model, where there are several); a tie is wrong."""
    rows = []
    for result in results:
        for function in functions:
            condition = f"{result.label}:{function.name}" if len(results) > 1 else function.name
            right = result.correct(function)
            for (uid, number), is_right in zip(
                result.frame[["uid", "number"]].itertuples(index=False, name=None),
                right,
                strict=True,
            ):
                pair = f"{uid}/{number}"
                rows.append(("", uid, pair, pair, "", condition, 1 if is_right else 2, 2))
    return Outcomes(
        "minimal pairs", outcome_rows(rows), (ACCURACY,), ("pair",), "paradigm", signature
    )
