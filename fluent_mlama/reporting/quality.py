"""Gains in retrieval against gains in translation quality (the paper's section 5.2, Table 5 and Figure 2).

The gain in retrieval of a (language, verbalisation, relation) is R@1 of the verbalisation minus R@1 of the template;
its gain in quality is the difference of their mean quality-estimation scores, read from a TSV with the columns
``lang``, ``verbalisation``, ``relation``, ``qe_delta``.
"""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
from scipy.stats import pearsonr

from fluent_mlama.console import UserError
from fluent_mlama.files import read_table
from fluent_mlama.reporting.inference import holm
from fluent_mlama.reporting.measures import by_relation, recall_at, value_at
from fluent_mlama.reporting.selection import Selection

KEY = ["lang", "verbalisation", "relation"]
SIGNIFICANT = 0.05


def retrieval_gains(selection: Selection) -> pd.DataFrame:
    """``KEY`` and ``r1_delta``: R@1 of each verbalisation minus R@1 of the template, for each relation."""
    if "template" not in selection.verbalisations or len(selection.verbalisations) < 2:
        names = ", ".join(selection.verbalisations)
        raise UserError(
            f"gains are measured against the template, and these dumps compare {names}: choose --verbalisations with template"
        )
    recall = by_relation(selection, recall_at(1))
    return pd.DataFrame(
        [
            (
                lang,
                v,
                relation,
                value_at(recall, relation, (lang, v))
                - value_at(recall, relation, (lang, "template")),
            )
            for lang in selection.langs
            for v in selection.verbalisations
            if v != "template"
            for relation in selection.relations
        ],
        columns=[*KEY, "r1_delta"],
    )


def read_quality_gains(path: Path) -> pd.DataFrame:
    """``KEY`` and ``qe_delta`` (float) from a TSV. Missing file or column, a double and a cell that is no number are ``UserError``."""
    try:
        frame = read_table(path.read_bytes(), str(path))
    except (FileNotFoundError, IsADirectoryError):
        raise UserError(
            f"no file {path}: give a TSV with the columns {', '.join([*KEY, 'qe_delta'])}"
        ) from None
    missing = [name for name in (*KEY, "qe_delta") if name not in frame]
    if missing:
        raise UserError(
            f"{path}: no column {', '.join(missing)}; it needs {', '.join([*KEY, 'qe_delta'])}"
        )
    doubles = frame.duplicated(KEY)
    if doubles.any():
        raise UserError(
            f"{path}, row {frame.index[doubles][0]}: {' '.join(frame.loc[doubles, KEY].iloc[0])} stands twice; remove one"
        )
    for row, cell in frame["qe_delta"].items():
        try:
            finite = math.isfinite(float(cell))
        except ValueError:
            finite = False
        if not finite:
            raise UserError(f"{path}, row {row}, column qe_delta: '{cell}' is not a number")
    return frame[[*KEY, "qe_delta"]].astype({"qe_delta": float})


def gains(retrieval: pd.DataFrame, quality: pd.DataFrame) -> pd.DataFrame:
    """Both gains side by side. A (language, verbalisation) without any quality gain is left out, a lacking relation is a ``UserError``."""
    wanted = retrieval.merge(quality[["lang", "verbalisation"]].drop_duplicates())
    both = wanted.merge(quality, how="left", on=KEY)
    lacking = both[both["qe_delta"].isna()]
    if len(lacking):
        first = " ".join(lacking[KEY].iloc[0])
        raise UserError(
            f"no QE gain for {first} ({len(lacking)} lacking in all): add the rows or choose other --relations"
        )
    return both


def pearson(x: pd.Series, y: pd.Series) -> tuple[float, float]:
    """Pearson's r and its two-sided p; NaN below three pairs or where one side has no spread."""
    if len(x) < 3 or x.nunique() < 2 or y.nunique() < 2:
        return math.nan, math.nan
    found = pearsonr(x, y)
    return float(found.statistic), float(found.pvalue)


def correlations(both: pd.DataFrame) -> pd.DataFrame:
    """For each (language, verbalisation): Pearson's r over relations, its two-sided p, p after Holm over all of them, and n.

    Fewer than three relations, or gains without any spread, have no r (NaN).
    """
    rows = []
    for (lang, v), group in both.groupby(["lang", "verbalisation"], sort=False):
        rows.append((lang, v, *pearson(group["qe_delta"], group["r1_delta"]), len(group)))
    frame = pd.DataFrame(rows, columns=["lang", "verbalisation", "r", "p", "n"])
    return frame.assign(p_holm=holm(frame["p"].to_numpy(dtype=float)))
