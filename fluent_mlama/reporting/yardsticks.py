"""Beside every R@1 of protocol ``corrected``: what chance, the frequent object and the subject-blind model get."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fluent_mlama.ranking.yardsticks import FEWEST_ROWS, chance, yardsticks
from fluent_mlama.reporting.loading import DumpFolder, RankTable

NEEDED = ["row", "verbalisation", "sub_uri", "obj_uri", "entity", "own", "logprob"]
COLUMNS = ("facts", "R@1", "chance", "majority", "R@1 seen", "blind", "facts seen")
STATEMENT = (
    "Yardsticks of R@1, macro over relations. chance: a random order. majority: the entity that is right most often for "
    f"other subjects. blind: by the mean score of each candidate for other subjects (at least {FEWEST_ROWS}), beside "
    "R@1 seen, the model's own on the same facts and candidates"
)


def yardstick_table(
    folder: DumpFolder, tables: Sequence[RankTable], k: int = 1
) -> pd.DataFrame | None:
    """A row per (lang, verbalisation) with ``COLUMNS``; None where a dump has no scores of entities.

    Means over relations; counts are sums. NaN where no fact has a blind score.
    """
    parts = []
    for table in tables:
        scores = folder.scores(table, NEEDED)
        if scores is None or table.protocol != "corrected":
            return None
        own = scores[scores["own"] & scores["row"].isin(table.facts.index)]
        found = yardsticks(own).reset_index()
        ranks = table.rank.rename_axis("row").reset_index()
        long = ranks.melt("row", var_name="verbalisation", value_name="rank")
        found = found.merge(long, on=["row", "verbalisation"])
        seen = found["seen_rank"].notna()
        by_verbalisation = pd.DataFrame(
            {
                "verbalisation": found["verbalisation"],
                "facts": 1.0,
                "R@1": found["rank"] <= k,
                "chance": chance(found["candidates"], k),
                "majority": found["majority_rank"] <= k,
                "R@1 seen": (found["seen_rank"] <= k).where(seen).astype(float),
                "blind": (found["blind_rank"] <= k).where(seen).astype(float),
                "facts seen": seen.astype(float),
            }
        ).groupby("verbalisation", sort=False)
        means = by_verbalisation.mean()
        counts = by_verbalisation[["facts", "facts seen"]].sum()
        means[counts.columns] = counts
        parts.append(means.assign(lang=table.lang).reset_index())
    if not parts:
        return None
    grouped = pd.concat(parts).groupby(["lang", "verbalisation"], sort=False)
    over_relations = grouped.mean()
    over_relations[["facts", "facts seen"]] = grouped[["facts", "facts seen"]].sum()
    return over_relations[list(COLUMNS)]
