"""What a rank is worth: what chance, the frequent object, and a model that never sees the subject would get.

Protocol ``corrected``, where each entity has one score per row and verbalisation (docs/protocols.md, yardsticks).
Three rankings of the same candidates of the same rows:

- chance: every order of the candidates alike; exact.
- majority: by how often an entity is the right answer for other subjects of the file.
- subject-blind: by what the model gives an entity for other subjects. Each row's scores are centered by the mean of its
  distractors; the blind score of candidate c in a row with subject s is

      blind(c, s) = mean of centered(r, c) over rows r whose subject is not s and whose distractors include c

  Rows where c is the right answer do not count, so that a model without any prior scores chance. A candidate needs
  ``FEWEST_ROWS`` such rows. The gap between the model and its blind self is what the subject adds.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FEWEST_ROWS = 5
KEY = ["verbalisation", "row"]


def blind_scores(scores: pd.DataFrame, logprob: str = "logprob") -> pd.DataFrame:
    """(n, 2) ``centered`` and ``blind`` of each candidate of one file's scores; NaN where it has too few rows.

    scores: one row per (row, verbalisation, entity) with sub_uri, obj_uri, entity and natural-log scores.
    """
    wrong = scores["entity"] != scores["obj_uri"]
    # A score of -inf would make every mean of its row -inf: such a candidate counts as no evidence.
    known = wrong & np.isfinite(scores[logprob])
    rows = [scores[name] for name in KEY]
    center = scores[logprob].where(known).groupby(rows, sort=False).transform("mean")
    centered = scores[logprob] - center
    evidence = centered.where(known)
    counted = known & evidence.notna()

    everywhere = [scores["verbalisation"], scores["entity"]]
    same_subject = [*everywhere, scores["sub_uri"]]
    total, count = (
        values.groupby(everywhere, sort=False).transform("sum")
        - values.groupby(same_subject, sort=False).transform("sum")
        for values in (evidence.fillna(0.0), counted.astype(float))
    )
    blind = (total / count.where(count >= FEWEST_ROWS)).astype(float)
    return pd.DataFrame({"centered": centered, "blind": blind})


def majority_counts(scores: pd.DataFrame) -> NDArray[np.float64]:
    """(n,) for how many facts about other subjects each candidate is the right answer."""
    facts = scores[["sub_uri", "obj_uri"]].drop_duplicates()
    anywhere = facts["obj_uri"].value_counts()
    here = facts.value_counts()
    pairs = pd.MultiIndex.from_frame(scores[["sub_uri", "entity"]])
    own = here.reindex(pairs).fillna(0.0).to_numpy(dtype=float)
    everywhere = scores["entity"].map(anywhere).fillna(0.0)
    return np.asarray(everywhere, dtype=np.float64) - own


def average_ranks(scores: pd.DataFrame, by: pd.Series | NDArray[np.float64]) -> pd.Series:
    """Rank of the right entity in each (verbalisation, row) by these scores, ties averaged; NaN where it has no score.

    Candidates without a score (NaN) do not take part. Index: ``KEY``.
    """
    table = scores[KEY].assign(score=np.asarray(by, dtype=float))
    right = (scores["entity"] == scores["obj_uri"]).to_numpy()
    gold = table[right].set_index(KEY)["score"]
    against = gold.reindex(pd.MultiIndex.from_frame(table[KEY])).to_numpy()
    others = table.assign(
        better=(table["score"].to_numpy() > against) & ~right,
        equal=(table["score"].to_numpy() == against) & ~right,
    )
    counts = others.groupby(KEY, sort=False)[["better", "equal"]].sum()
    ranks = counts["better"] + 1 + counts["equal"] / 2
    return ranks.where(gold.reindex(ranks.index).notna())


def yardsticks(scores: pd.DataFrame, logprob: str = "logprob") -> pd.DataFrame:
    """One row per (verbalisation, row): the ranks and numbers of candidates behind every R@k of a yardstick.

    Columns: ``candidates`` (of chance and majority), ``majority_rank``; ``blind_rank``, ``seen_rank`` (the model's, among
    the candidates that have a blind score) and ``blind_candidates``. NaN where the right entity has no blind score.
    """
    found = blind_scores(scores, logprob)
    sizes = scores.groupby(KEY, sort=False).size()
    comparable = scores[logprob].where(found["blind"].notna())
    compared = found["blind"].notna().groupby([scores[name] for name in KEY], sort=False).sum()
    blind = average_ranks(scores, found["blind"])
    return pd.DataFrame(
        {
            "candidates": sizes,
            "majority_rank": average_ranks(scores, majority_counts(scores)),
            "blind_rank": blind,
            "seen_rank": average_ranks(scores, comparable),
            "blind_candidates": compared.where(blind.notna()),
        }
    )


def chance(candidates: pd.Series, k: int) -> pd.Series:
    """Share of random orders that put the right one of this many candidates among the first k."""
    return (k / candidates).clip(upper=1.0)


def prior_removed(scores: pd.DataFrame, logprob: str = "logprob") -> pd.Series:
    """(n,) what the subject adds to each candidate: centered minus blind score; NaN where there is no blind score."""
    found = blind_scores(scores, logprob)
    return found["centered"] - found["blind"]
