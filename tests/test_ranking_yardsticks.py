"""Chance, majority and subject-blind ranks, against loops over the definition and simulated models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fluent_mlama.ranking.yardsticks import (
    FEWEST_ROWS,
    blind_scores,
    chance,
    majority_counts,
    prior_removed,
    yardsticks,
)


def simulated(
    facts: int = 120, entities: int = 30, drawn: int = 12, prior: float = 0.0, signal: float = 0.0,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Scores of a model with this much prior per entity and signal for the right one; subjects have one or two facts."""
    generator = np.random.default_rng(seed)
    bias = generator.normal(size=entities) * prior
    rows = []
    for row in range(facts):
        subject = f"s{row // 2 if row % 3 == 0 else row}"
        gold = int(generator.integers(entities))
        rest = generator.permutation([one for one in range(entities) if one != gold])[:drawn]
        for one in (gold, *rest):
            score = bias[one] + generator.normal() + signal * (one == gold)
            rows.append((row, "template", subject, f"e{gold}", f"e{one}", score))
    columns = ["row", "verbalisation", "sub_uri", "obj_uri", "entity", "logprob"]
    return pd.DataFrame(rows, columns=columns)


def test_blind_scores_are_means_over_other_subjects_where_the_entity_was_wrong() -> None:
    scores = simulated(prior=1.0)
    found = blind_scores(scores)
    wrong = scores[scores["entity"] != scores["obj_uri"]]
    center = wrong.groupby("row")["logprob"].mean()
    for place in range(0, len(scores), 37):
        one = scores.iloc[place]
        other = wrong[(wrong["entity"] == one["entity"]) & (wrong["sub_uri"] != one["sub_uri"])]
        expected = (other["logprob"] - other["row"].map(center)).mean()
        assert len(other) >= FEWEST_ROWS
        assert found["blind"].iloc[place] == pytest.approx(expected)
        assert found["centered"].iloc[place] == pytest.approx(one["logprob"] - center[one["row"]])


def test_a_candidate_with_few_rows_has_no_blind_score() -> None:
    scores = simulated(facts=9, entities=30, drawn=6)
    found = blind_scores(scores)
    wrong = scores[scores["entity"] != scores["obj_uri"]]
    for place, one in scores.iterrows():
        other = wrong[(wrong["entity"] == one["entity"]) & (wrong["sub_uri"] != one["sub_uri"])]
        assert np.isnan(found["blind"][place]) == (len(other) < FEWEST_ROWS)


def test_infinite_scores_spoil_no_mean() -> None:
    scores = simulated()
    scores.loc[3, "logprob"] = -np.inf
    assert np.isfinite(blind_scores(scores)["blind"]).all()


def test_majority_counts_other_subjects_only() -> None:
    scores = simulated()
    counts = majority_counts(scores)
    facts = scores[["sub_uri", "obj_uri"]].drop_duplicates()
    for place in range(0, len(scores), 41):
        one = scores.iloc[place]
        other = facts[(facts["obj_uri"] == one["entity"]) & (facts["sub_uri"] != one["sub_uri"])]
        assert counts[place] == len(other)


def test_ranks_average_ties_and_chance_is_exact() -> None:
    columns = ["row", "verbalisation", "sub_uri", "obj_uri", "entity", "logprob"]
    rows = [
        (0, "t", "s", "a", name, score) for name, score in zip("abcd", (1, 1, 2, 0), strict=True)
    ]
    table = yardsticks(pd.DataFrame(rows, columns=columns))
    assert table["candidates"].tolist() == [4]
    # One subject: no entity was ever right for another one, so all four tie.
    assert table["majority_rank"].tolist() == [2.5]
    assert table["blind_rank"].isna().all() and table["seen_rank"].isna().all()
    assert chance(table["candidates"], 1).tolist() == [0.25]
    assert chance(table["candidates"], 5).tolist() == [1.0]


def test_a_model_without_prior_scores_chance_blind_and_one_with_prior_more() -> None:
    blind, seen, strong = [], [], []
    for seed in range(40):
        plain = yardsticks(simulated(signal=1.5, seed=seed))
        blind += (plain["blind_rank"] <= 1).tolist()
        seen += (plain["seen_rank"] <= 1).tolist()
    expected = 1 / 13
    assert np.mean(blind) == pytest.approx(expected, abs=3 * np.sqrt(expected / len(blind)))
    assert np.mean(seen) > 3 * expected
    # A prior helps blindly only where gold is likely a priori; here gold is uniform, so it does not.
    for seed in range(40):
        strong += (yardsticks(simulated(prior=3.0, seed=seed))["blind_rank"] <= 1).tolist()
    assert np.mean(strong) == pytest.approx(expected, abs=4 * np.sqrt(expected / len(strong)))


def test_removing_the_prior_finds_the_signal_that_it_drowns() -> None:
    scores = simulated(facts=400, prior=4.0, signal=2.0)
    right = scores["entity"] == scores["obj_uri"]

    def recall(values: pd.Series) -> float:
        best = values.groupby(scores["row"]).idxmax()
        return float(right[best].mean())

    assert recall(prior_removed(scores)) > 1.5 * recall(scores["logprob"])
