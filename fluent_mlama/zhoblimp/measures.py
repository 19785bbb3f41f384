"""What the scores of pairs say: every linking function from the same log-probabilities.

A pair is right if the good sentence scores strictly higher; ties are errors, and are counted.
Length is the number of scored tokens. Accuracy comes in every grouping, as tables and as outcomes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr

from fluent_mlama.console import UserError
from fluent_mlama.files import write_text
from fluent_mlama.linking import (
    Evidence,
    Linking,
    Unigrams,
    count_unigrams,
    evidence,
    parse_linking,
)
from fluent_mlama.outcomes import Measure, Outcomes, outcome_rows
from fluent_mlama.zhoblimp.data import PairRow
from fluent_mlama.zhoblimp.evaluate import DEFAULTS

EQUAL, GOOD_LONGER, BAD_LONGER = "equal length", "good is longer", "bad is longer"
LENGTHS = (EQUAL, GOOD_LONGER, BAD_LONGER)
SWEEP = tuple(round(step / 20, 2) for step in range(21))
ACCURACY = Measure("accuracy", cutoff=1)
_PUBLISHED_KEYS = {
    "slln": "pow{}_norm_lp",
    "log": "log{}_norm_lp",
    "morcela": "morcela_{}_{}",
    "lp": "lp",
    "mean": "mean_lp",
    "slor": "slor",
    "penlp": "pen_lp",
    "normlp": "norm_lp",
    "per-char": "per_char_lp",
}


def linking_functions(names: Sequence[str]) -> list[Linking]:
    """The named functions; ``all``: the defaults and the published grids.

    The grids are 9 exponents of slln, 3 shifts of log and 110 settings of MORCELA.
    """
    if "all" in names:
        grid = [f"slln:{step / 10}" for step in range(1, 10)] + ["log:1", "log:10", "log:100"]
        for beta in range(1, 11):
            grid += [f"morcela:{beta / 10}:{gamma}" for gamma in range(0, 21, 2)]
        names = [*DEFAULTS, *grid]
    functions = [parse_linking(name) for name in names]
    if any(one.needs == "prior" for one in functions):
        raise UserError(
            "--linking pmi compares a prompt with none, and a minimal pair has no prompt; "
            "leave it out"
        )
    return list(dict.fromkeys(functions))


@dataclass
class Result:
    """One model's scores.

    frame: one row per pair, with ``uid``, ``phenomenon``, ``length``. good, bad: row by row.
    """

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
    """Sums, lengths and unigram sums of stored scores.

    Without a unigram table the pairs' own sentences are counted.
    """
    if unigrams is None:
        tokens: list[int] = []
        for ids in [*frame["good_ids"], *frame["bad_ids"]]:
            tokens += ids
        unigrams = count_unigrams(tokens, "toy: the pairs' own sentences")
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
    """Index phenomenon: paradigms, pairs, and the mean accuracy of the paradigms per function."""
    paradigms = by_paradigm(result, functions)
    groups = paradigms.groupby("phenomenon", sort=True)
    table = groups[[one.name for one in functions]].mean()
    table.insert(0, "paradigms", groups.size())
    table.insert(1, "pairs", groups["pairs"].sum())
    return table


def by_length(result: Result, functions: Sequence[Linking]) -> pd.DataFrame:
    """Index length class: pairs, and the accuracy over all of them under each function."""
    correct = pd.DataFrame({one.name: result.correct(one) for one in functions})
    table = correct.groupby(result.frame["length"]).mean().reindex(LENGTHS)
    table.insert(0, "pairs", result.frame["length"].value_counts().reindex(LENGTHS, fill_value=0))
    table.index.name = "length"
    return table


def overall(
    result: Result, functions: Sequence[Linking], human: Mapping[str, float]
) -> pd.DataFrame:
    """One row per function: micro (over pairs), macro over paradigms and over phenomena, ties,
    rank correlation with people."""
    paradigms, phenomena = by_paradigm(result, functions), by_phenomenon(result, functions)
    rows = []
    for one in functions:
        correlation, joined = agreement(paradigms[one.name], human)
        rows.append(
            {
                "model": result.label,
                "function": one.name,
                "pairs": len(result.frame),
                "micro": result.correct(one).mean(),
                "macro paradigms": paradigms[one.name].mean(),
                "macro phenomena": phenomena[one.name].mean(),
                "ties": result.ties(one),
                "human rho": correlation,
                "human paradigms": joined,
            }
        )
    return pd.DataFrame(rows)


def agreement(accuracy: pd.Series, human: Mapping[str, float]) -> tuple[float, int]:
    """Spearman's rank correlation with people's accuracy, and over how many shared paradigms.

    NaN where it is undefined.
    """
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


def published_key(function: Linking) -> str:
    """The name in the published result files: ``pow0.5_norm_lp``, ``morcela_0.5_4``."""
    kind = _PUBLISHED_KEYS.get(function.kind, function.name)
    return kind.format(*(f"{value:g}" for value in function.parameters))


def write_pairs_with_scores(
    path: Path, rows: Sequence[PairRow], result: Result, functions: Sequence[Linking]
) -> None:
    """One line per pair: the input row, ``length``, tokens, unigram sums, two scores per function.

    MORCELA's grid is left out of long lists: its 110 settings follow from lp, unigram and tokens.
    """
    shown = [one for one in functions if len(functions) <= 40 or one.kind != "morcela"]
    scores = {published_key(one): result.scores(one) for one in shown}
    lines = []
    for index, row in enumerate(rows):
        record = {**row.source, "length": result.frame["length"].iloc[index]}
        for side, known in (("good", result.good), ("bad", result.bad)):
            unigram = known.unigram
            record[f"tokens_{side}"] = int(known.tokens[index])
            record[f"unigram_{side}"] = None if unigram is None else float(unigram[index])
        for key, (good, bad) in scores.items():
            record[f"{key}_good"], record[f"{key}_bad"] = float(good[index]), float(bad[index])
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    write_text(path, "".join(lines))


def make_tables(
    results: Sequence[Result], functions: Sequence[Linking], human: Mapping[str, float]
) -> dict[str, pd.DataFrame]:
    """All tables by file name, the models one below the other.

    The grids are in ``overall`` only.
    """
    main = main_functions(functions)
    every = [overall(result, functions, human) for result in results]
    tables = {
        "overall": pd.concat(every, ignore_index=True),
        "alpha": pd.concat([sweep(result) for result in results], ignore_index=True),
    }
    groupings = {"phenomena": by_phenomenon, "paradigms": by_paradigm, "length": by_length}
    for name, make in groupings.items():
        parts = []
        for result in results:
            part = make(result, main).reset_index()
            part.insert(0, "model", result.label)
            parts.append(part)
        tables[name] = pd.concat(parts, ignore_index=True)
    if human:
        tables["paradigms"]["human"] = [
            human.get(uid, float("nan")) for uid in tables["paradigms"]["uid"]
        ]
    return tables


def main_functions(functions: Sequence[Linking]) -> list[Linking]:
    """One function of each kind, the first named: what fits on a page."""
    kinds: dict[str, Linking] = {}
    for one in functions:
        kinds.setdefault(one.kind, one)
    return list(kinds.values())


def outcomes_of(
    results: Sequence[Result], functions: Sequence[Linking], signature: str
) -> Outcomes:
    """Outcomes: an item is a pair, a condition a linking function (of a model, where several).

    Right is rank 1 of 2; a tie is wrong.
    """
    rows = []
    for result in results:
        pairs = list(zip(result.frame["uid"], result.frame["number"], strict=True))
        for function in functions:
            condition = f"{result.label}:{function.name}" if len(results) > 1 else function.name
            for (uid, number), right in zip(pairs, result.correct(function), strict=True):
                pair = f"{uid}/{number}"
                rows.append(("", uid, pair, pair, "", condition, 1 if right else 2, 2))
    return Outcomes(
        "minimal pairs", outcome_rows(rows), (ACCURACY,), ("pair",), "paradigm", signature
    )
