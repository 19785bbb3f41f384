"""The results as files: JSON lines a pair, and the tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fluent_mlama.linking import Linking
from fluent_mlama.records.atomic import write_text
from fluent_mlama.zhoblimp.data import PairRow
from fluent_mlama.zhoblimp.measures import (
    Result,
    by_length,
    by_paradigm,
    by_phenomenon,
    overall,
    sweep,
)

_PUBLISHED_KEYS = {
    "lp": "lp",
    "mean": "mean_lp",
    "slor": "slor",
    "penlp": "pen_lp",
    "normlp": "norm_lp",
    "per-char": "per_char_lp",
}


def published_key(function: Linking) -> str:
    """The name that the published result files give a function: ``pow0.5_norm_lp``, ``morcela_0.5_4``."""
    parameters = "_".join(f"{value:g}" for value in function.parameters)
    if function.kind == "slln":
        return f"pow{parameters}_norm_lp"
    if function.kind == "log":
        return f"log{parameters}_norm_lp"
    return f"morcela_{parameters}" if function.kind == "morcela" else _PUBLISHED_KEYS[function.kind]


def write_pairs_with_scores(
    path: Path, rows: Sequence[PairRow], result: Result, functions: Sequence[Linking]
) -> None:
    """One line a pair: the input row, ``length``, tokens, unigram sums, and each function's two scores.

    MORCELA's grid is left out unless the functions are few: its 110 settings follow from lp, unigram and tokens.
    """
    shown = (
        [one for one in functions if one.kind != "morcela"]
        if len(functions) > 40
        else list(functions)
    )
    scores = {published_key(one): result.scores(one) for one in shown}
    unigrams = [side.unigram for side in (result.good, result.bad)]
    lines = []
    for index, row in enumerate(rows):
        record = {**row.source, "length": result.frame["length"].iloc[index]}
        for side, known, unigram in zip(
            ("good", "bad"), (result.good, result.bad), unigrams, strict=True
        ):
            record[f"tokens_{side}"] = int(known.tokens[index])
            record[f"unigram_{side}"] = None if unigram is None else float(unigram[index])
        for key, (good, bad) in scores.items():
            record[f"{key}_good"], record[f"{key}_bad"] = float(good[index]), float(bad[index])
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    write_text(path, "".join(lines))


def make_tables(
    results: Sequence[Result], functions: Sequence[Linking], human: Mapping[str, float]
) -> dict[str, pd.DataFrame]:
    """All tables by file name; one row or column a model. MORCELA's and the other grids stand in ``overall`` only."""
    main = main_functions(functions)
    tables = {
        "overall": pd.concat(
            [overall(result, functions, human) for result in results], ignore_index=True
        ),
        "alpha": pd.concat([sweep(result) for result in results], ignore_index=True),
    }
    for name, make in (
        ("phenomena", by_phenomenon),
        ("paradigms", by_paradigm),
        ("length", by_length),
    ):
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
