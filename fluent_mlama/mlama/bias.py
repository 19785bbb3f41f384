"""Language bias: what a model says most often, whatever it is asked (Kassner et al. 2021, Tables 1 and 4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import pandas as pd

from fluent_mlama.mlama.results import Results


def most_frequent(labels: Iterable[str], number: int = 2) -> list[tuple[str, int]]:
    """The most frequent labels with their counts; equal counts by label."""
    return sorted(Counter(labels).items(), key=lambda entry: (-entry[1], entry[0]))[:number]


def told(entries: list[tuple[str, int]]) -> str:
    """``Italia (3), Francia (1)``."""
    return ", ".join(f"{label} ({count})" for label, count in entries)


def entropy(labels: Iterable[str], options: int) -> float:
    """Entropy of the labels' frequencies divided by ln(options): 1 = all alike, 0 = one answer to everything. NaN for one option."""
    counts = Counter(labels)
    total = sum(counts.values())
    if options < 2 or not total:
        return float("nan")
    return (
        -math.fsum(count / total * math.log(count / total) for count in counts.values())
        / math.log(options)
        + 0.0
    )


def bias_table(results: Results, number: int = 2) -> pd.DataFrame:
    """A row a (relation, language): most frequent predictions, their concentration, and the same of the right answers."""
    rows = []
    for lang, frames in results.frames.items():
        for relation, frame in frames.items():
            options = (results.candidates or {}).get((lang, relation), 0)
            first, right = (
                most_frequent(frame["prediction"], number),
                most_frequent(frame["gold"], number),
            )
            rows.append({
                "relation": relation, "language": lang, "triples": len(frame), "predictions": told(first), "right answers": told(right),
                "top share": first[0][1] / len(frame), "top share, right": right[0][1] / len(frame),
                "distinct": frame["prediction"].nunique(), "distinct, right": frame["gold"].nunique(),
                "entropy": entropy(frame["prediction"], options), "entropy, right": entropy(frame["gold"], options),
            })  # fmt: skip
    table = pd.DataFrame(rows)
    numbers = table["relation"].str.extract(r"(\d+)", expand=False).astype(float)
    return (
        table.assign(_number=numbers)
        .sort_values(["_number", "relation"], kind="stable", ignore_index=True)
        .drop(columns="_number")
    )


def bias_by_language(table: pd.DataFrame) -> pd.DataFrame:
    """Means over relations of how concentrated answers and right answers are."""
    names = [
        "top share",
        "top share, right",
        "distinct",
        "distinct, right",
        "entropy",
        "entropy, right",
    ]
    means = table.groupby("language", sort=False)[names].mean().reset_index()
    means.insert(1, "relations", table.groupby("language", sort=False).size().to_numpy())
    return means
