"""Answers to mLAMA's queries as outcomes: an item is a fact in a language, a condition is a method and template set."""

from __future__ import annotations

from fluent_mlama.mlama.results import Results
from fluent_mlama.outcomes import Measure, Outcomes, outcome_rows

P1 = Measure("P@1", cutoff=1)


def outcomes_of(results: Results) -> Outcomes:
    """Every answered fact; a gold label that did not compete has no rank and counts as wrong."""
    place = results.place
    condition = f"{place.method}, {place.templates}"
    rows = []
    for lang, relations in results.frames.items():
        for relation, frame in relations.items():
            candidates = (results.candidates or {}).get((lang, relation))
            for row in frame.itertuples(index=False):
                item = f"{relation}/{row.lineid}"
                obj, sub = row.obj_uri or row.gold, row.sub_uri or row.sub_label
                rank = 1 if row.correct else row.rank
                rows.append((lang, relation, item, obj, sub, condition, rank, candidates))
    return Outcomes(
        f"mLAMA, {place.method}",
        outcome_rows(rows),
        (P1,),
        ("object", "subject"),
        "relation",
        " / ".join(results.signatures),
    )
