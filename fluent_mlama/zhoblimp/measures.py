"""What the scores of pairs say: every linking function from the same log-probabilities, accuracy in every grouping.

A pair is right if the good sentence scores strictly higher; a tie is an error, and ties are counted.
Length is the number of scored tokens, counted and never guessed from the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr

from fluent_mlama.console import UserError, split_list
from fluent_mlama.linking import (
    Evidence,
    Linking,
    Unigrams,
    count_unigrams,
    evidence,
    parse_linking,
)

EQUAL, GOOD_LONGER, BAD_LONGER = "equal length", "good is longer", "bad is longer"
LENGTHS = (EQUAL, GOOD_LONGER, BAD_LONGER)
DEFAULTS = "lp,mean,slln,log,penlp,normlp,slor,morcela,per-char"
SWEEP = tuple(round(step / 20, 2) for step in range(21))


def linking_functions(names: str) -> list[Linking]:
    """``all``: the defaults and the published grids (10 exponents, 3 log shifts, 110 MORCELA settings); else a list."""
    if names != "all":
        functions = [parse_linking(name) for name in split_list(names)]
        if not functions:
            raise UserError(
                "--linking names no function; say e.g. --linking lp,mean,slln:0.5, or all"
            )
        if any(one.needs == "prior" for one in functions):
            raise UserError(
                "--linking pmi compares a prompt with none, and a minimal pair has no prompt; leave it out"
            )
        return list(dict.fromkeys(functions))
    grid = [f"slln:{step / 10}" for step in range(1, 10)] + ["log:1", "log:10", "log:100"]
    grid += [f"morcela:{beta / 10}:{gamma}" for beta in range(1, 11) for gamma in range(0, 21, 2)]
    return list(dict.fromkeys(parse_linking(name) for name in split_list(DEFAULTS) + grid))


@dataclass
class Result:
    """One model's scores. frame: a row a pair with ``uid``, ``phenomenon``, ``length``; good, bad: the evidence, row by row."""

    label: str
    frame: pd.DataFrame
    good: Evidence
    bad: Evidence
    unigram_source: str
    _scores: dict[Linking, tuple[NDArray[np.float64], NDArray[np.float64]]] = field(
        default_factory=dict, repr=False
    )

    def scores(self, function: Linking) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of the good and of the bad sentences."""
        if function not in self._scores:
            self._scores[function] = (function.score(self.good), function.score(self.bad))
        return self._scores[function]

    def correct(self, function: Linking) -> NDArray[np.bool_]:
        """Whether the good sentence wins, strictly."""
        good, bad = self.scores(function)
        return good > bad

    def ties(self, function: Linking) -> int:
        """How many pairs have equal scores."""
        good, bad = self.scores(function)
        return int((good == bad).sum())


def make_result(label: str, frame: pd.DataFrame, unigrams: Unigrams | None = None) -> Result:
    """Sums, lengths and unigram sums of stored scores. Without a unigram table the pairs' own sentences are counted."""
    if unigrams is None:
        ids = (
            token
            for side in ("good_ids", "bad_ids")
            for sentence in frame[side]
            for token in sentence
        )
        unigrams = count_unigrams(ids, "toy: the pairs' own sentences")
    sides = {}
    for side in ("good", "bad"):
        sides[side] = evidence(
            [sum(values) for values in frame[f"{side}_logprobs"]],
            [len(ids) for ids in frame[f"{side}_ids"]],
            unigram=[float(unigrams.look_up(ids).sum()) for ids in frame[f"{side}_ids"]],
            characters=[len(text) for text in frame[side]],
        )
    shown = frame[["uid", "phenomenon", "number", "good", "bad"]].copy()
    longer = np.sign(sides["good"].tokens - sides["bad"].tokens).astype(int)
    shown["length"] = [{0: EQUAL, 1: GOOD_LONGER, -1: BAD_LONGER}[sign] for sign in longer.tolist()]
    return Result(label, shown, sides["good"], sides["bad"], unigrams.source)


def by_paradigm(result: Result, functions: Sequence[Linking]) -> pd.DataFrame:
    """Index uid: phenomenon, pairs, and the accuracy under each function (column = its name)."""
    table = (
        pd.DataFrame({one.name: result.correct(one) for one in functions})
        .groupby(result.frame["uid"], sort=True)
        .mean()
    )
    groups = result.frame.groupby("uid", sort=True)
    table.insert(0, "phenomenon", groups["phenomenon"].first())
    table.insert(1, "pairs", groups.size())
    return table


def by_phenomenon(result: Result, functions: Sequence[Linking]) -> pd.DataFrame:
    """Index phenomenon: paradigms, pairs, and the mean of the paradigms' accuracies under each function."""
    paradigms = by_paradigm(result, functions)
    groups = paradigms.groupby("phenomenon", sort=True)
    table = groups[[one.name for one in functions]].mean()
    table.insert(0, "paradigms", groups.size())
    table.insert(1, "pairs", groups["pairs"].sum())
    return table


def by_length(result: Result, functions: Sequence[Linking]) -> pd.DataFrame:
    """Index length class: pairs, and the accuracy under each function over all pairs of the class."""
    correct = pd.DataFrame({one.name: result.correct(one) for one in functions})
    table = correct.groupby(result.frame["length"]).mean().reindex(LENGTHS)
    table.insert(0, "pairs", result.frame["length"].value_counts().reindex(LENGTHS, fill_value=0))
    table.index.name = "length"
    return table


def overall(
    result: Result, functions: Sequence[Linking], human: Mapping[str, float]
) -> pd.DataFrame:
    """A row a function: micro (over pairs), macro over paradigms and over phenomena, ties, rank correlation with people."""
    paradigms, phenomena = by_paradigm(result, functions), by_phenomenon(result, functions)
    rows = []
    for one in functions:
        correlation, joined = agreement(paradigms[one.name], human)
        row = {
            "model": result.label,
            "function": one.name,
            "pairs": len(result.frame),
            "micro": result.correct(one).mean(),
        }
        row |= {
            "macro paradigms": paradigms[one.name].mean(),
            "macro phenomena": phenomena[one.name].mean(),
            "ties": result.ties(one),
        }
        rows.append(row | {"human rho": correlation, "human paradigms": joined})
    return pd.DataFrame(rows)


def agreement(accuracy: pd.Series, human: Mapping[str, float]) -> tuple[float, int]:
    """Spearman's rank correlation with people's accuracy, joined on the uid, and over how many paradigms. NaN if undefined."""
    joined = [uid for uid in accuracy.index if uid in human]
    ours, theirs = [float(accuracy[uid]) for uid in joined], [human[uid] for uid in joined]
    if len(joined) < 3 or len(set(ours)) < 2 or len(set(theirs)) < 2:
        return float("nan"), len(joined)
    return float(spearmanr(ours, theirs).statistic), len(joined)


def sweep(result: Result) -> pd.DataFrame:
    """Accuracy of L / n^alpha for alpha 0 (lp) to 1 (mean), over all pairs and by length class."""
    rows = []
    for alpha in SWEEP:
        correct = result.correct(Linking("slln", (alpha,)))
        row: dict[str, object] = {"model": result.label, "alpha": alpha, "all": correct.mean()}
        for length in LENGTHS:
            inside = (result.frame["length"] == length).to_numpy()
            row[length] = correct[inside].mean() if inside.any() else float("nan")
        rows.append(row)
    return pd.DataFrame(rows)
