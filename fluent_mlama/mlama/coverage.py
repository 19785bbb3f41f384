"""What the data holds: triples of each language, and the share of the English ones that it has (Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fluent_mlama.mlama.measures import ENGLISH
from fluent_mlama.reader import MLama, is_valid_template


def coverage_table(
    data: MLama, languages: Sequence[str] | None = None, relations: Sequence[str] | None = None
) -> pd.DataFrame:
    """A row a language, most triples first. of English: triples whose (relation, lineid) English has, as a share of English's.

    English is what the data has of it, whether it was chosen or not; without English the share is NaN.
    """
    english = {ENGLISH: data.relations(ENGLISH)} if ENGLISH in data.languages() else {}
    original = {
        (relation, lineid)
        for relation in english.get(ENGLISH, ())
        if not relations or relation in relations
        for lineid in data.triples(ENGLISH, relation)
    }
    rows = []
    for lang, names in data.select(languages, relations).items():
        keys = {(relation, lineid) for relation in names for lineid in data.triples(lang, relation)}
        templates = data.templates(lang)
        rows.append({
            "language": lang, "relations": len(names), "empty relations": sum(not data.triples(lang, relation) for relation in names),
            "invalid templates": sum(not is_valid_template(templates.get(relation, "")) for relation in names), "triples": len(keys),
            "of English": len(keys & original) / len(original) if original else float("nan"), "not in English": len(keys - original),
        })  # fmt: skip
    return pd.DataFrame(rows).sort_values(
        ["triples", "language"], ascending=[False, True], ignore_index=True
    )


def sample_table(
    data: MLama, languages: Sequence[str] | None, relations: Sequence[str] | None, number: int = 3
) -> pd.DataFrame:
    """``number`` filled templates a language (Figures 4 and 5)."""
    drawn = data.sample(languages, relations, number)
    return pd.DataFrame(
        [(lang, relation, " ".join(text.split())) for lang, relation, text in drawn],
        columns=["language", "relation", "sentence"],
    )
