"""What follows the object in a sentence: from the benchmark's tail column, else what the prompt and the object leave over."""

from __future__ import annotations

import unicodedata

import pandas as pd

from fluent_mlama.reporting.loading import RankTable


def tails(table: RankTable, verbalisation: str) -> pd.Series:
    """The rest of each sentence; "" where the sentence does not begin with prompt + object."""
    column = f"{verbalisation}_tail"
    if column in table.facts:
        return table.facts[column]
    sentences = table.facts[
        "template" if verbalisation == "template" else f"{verbalisation}_translation"
    ]
    starts = table.prompts(verbalisation) + table.objects(verbalisation)
    rest = [
        sentence.removeprefix(start) if sentence.startswith(start) else ""
        for sentence, start in zip(sentences, starts, strict=True)
    ]
    return pd.Series(rest, index=table.facts.index)


def has_words(text: str) -> bool:
    """Whether a tail holds a letter or a digit, so more than closing marks."""
    return any(unicodedata.category(char)[0] in "LN" for char in text)
