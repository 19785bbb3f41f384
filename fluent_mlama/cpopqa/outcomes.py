"""Answers to popularity questions as outcomes: an item is a question, a condition is a model or baseline.

Clusters are the right first answer (a holiday of many countries) and the group (a country), as in ``results.py``.
"""

from __future__ import annotations

import pandas as pd

from fluent_mlama.outcomes import Measure, Outcomes, outcome_rows

MEASURES = (
    Measure("P@1", "first"),
    Measure("Acc", "exact"),
    Measure("Diff", "diff", larger_is_better=False),
)


def outcomes_of(results: pd.DataFrame, signature: str) -> Outcomes:
    """Every marked answer (``results.mark_all``); rank: 1 where the most popular is named first, else unknown."""
    names = [measure.column for measure in MEASURES]
    rows = []
    for row in results.to_dict("records"):
        part, group = f"{row['target']}, n = {row['n']}", row["group"] or row["id"]
        rank = 1 if row["first"] else None
        head = (part, "", row["id"], row["answer"], group, row["model"], rank, row["n"])
        rows.append((*head, *(row[name] for name in names)))
    return Outcomes(
        "popularity questions",
        outcome_rows(rows, names),
        MEASURES,
        ("right answer", "group"),
        "question set",
        signature,
    )
