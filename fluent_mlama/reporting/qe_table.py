"""Table 5: gain in R@1 over the template for each language, and its correlation with the gain in translation quality.

Gains in retrieval against gains in translation quality (the paper's section 5.2, Table 5 and Figure 2).

The gain in retrieval of a (language, verbalisation, relation) is R@1 of the verbalisation minus R@1 of the template;
its gain in quality is the difference of their mean quality-estimation scores, read from a TSV with the columns
``lang``, ``verbalisation``, ``relation``, ``qe_delta``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from pathlib import Path

import pandas as pd
from scipy.stats import pearsonr
from tabulate import tabulate

from fluent_mlama.console import UserError
from fluent_mlama.files import read_table
from fluent_mlama.reporting.inference import holm
from fluent_mlama.reporting.latex import (
    Column,
    Raw,
    booktabs_in_blocks,
    escape,
    number,
    write_table,
)
from fluent_mlama.reporting.loading import DumpFolder, open_dumps
from fluent_mlama.reporting.measures import by_relation, recall_at, value_at
from fluent_mlama.reporting.options import QualityGains, QualityScale, StatsOptions
from fluent_mlama.reporting.selection import Selection, both, caption

NAME = "qe"
SCALE_UNKNOWN = "model and scale not stated"
"""Scores of different scales must not be mixed up, so heads and captions say which."""
SHOWN = {"gt": "GT", "chatgpt": "ChatGPT"}


def qe(
    *,
    options: StatsOptions = StatsOptions(),
    qe: QualityGains = None,
    qe_scale: QualityScale = "",
) -> None:
    """Gain in R@1 and its correlation with translation quality (Table 5)."""
    write_qe_table(open_dumps(options.dumps), options, qe, qe_scale)


def write_qe_table(
    folder: DumpFolder, options: StatsOptions, qe: Path | None = None, qe_scale: str = ""
) -> Path:
    """The Δ rows, and the r rows where the quality gains are given."""
    selections = both(folder, options)
    retrieval = pd.concat(
        [retrieval_gains(selection) for selection in selections], ignore_index=True
    )
    tests = None
    if qe is not None:
        tests = correlations(gains(retrieval, read_quality_gains(qe)))
    groups = [selection.langs for selection in selections]
    if options.style == "paper":
        return write_table(options.tables, NAME, paper_layout(retrieval, tests, groups))
    comments = [
        caption(f"R@1 minus the template's, experiment {i}", selection)
        for i, selection in enumerate(selections, 1)
    ]
    if tests is not None:
        holm = f"* p < {SIGNIFICANT} after Holm over the {int(tests['p'].notna().sum())} tests"
        comments.append(
            f"r: Pearson over relations with the gain in quality ({qe_scale or SCALE_UNKNOWN}); {holm}."
        )
    comments.append(
        f"signature: {folder.signature(t for selection in selections for t in selection.tables.values())}"
    )
    return write_table(
        options.tables,
        NAME,
        clean_layout(retrieval, tests, groups, qe_scale or SCALE_UNKNOWN),
        comments,
    )


def mean_gains(retrieval: pd.DataFrame) -> pd.DataFrame:
    """verbalisations × languages: the mean over relations; NaN where a language lacks the verbalisation."""
    means = (
        retrieval.groupby(["verbalisation", "lang"], sort=False)["r1_delta"].mean().unstack("lang")
    )
    return means.loc[
        list(dict.fromkeys(retrieval["verbalisation"])), list(dict.fromkeys(retrieval["lang"]))
    ]


def _r_of(tests: pd.DataFrame, v: Hashable, lang: Hashable, p_column: str) -> tuple[float, bool]:
    row = tests[(tests["lang"] == lang) & (tests["verbalisation"] == v)]
    return (
        (math.nan, False)
        if row.empty
        else (float(row["r"].iloc[0]), bool(row[p_column].iloc[0] < SIGNIFICANT))
    )


def paper_layout(
    retrieval: pd.DataFrame, tests: pd.DataFrame | None, groups: Sequence[Sequence[str]]
) -> str:
    """The published layout: three decimals without padding, a star at p < .05 for each test on its own, N/A."""
    means = mean_gains(retrieval)
    names = list(means.index)

    def label(symbol: str, v: str) -> str:
        return rf"\multirow{{{len(names)}}}{{*}}{{{symbol}}}" if v == names[0] else ""

    def shown(value: float, starred: bool = False) -> str:
        return "N/A" if math.isnan(value) else f"{round(value, 3)}{'*' if starred else ''}"

    rows = [
        [
            label(r"$\Delta$", v),
            escape(SHOWN.get(v, v)),
            *(shown(value_at(means, v, lang)) for lang in means),
        ]
        for v in names
    ]
    if tests is not None:
        rows += [
            [
                label("$r$", v),
                escape(SHOWN.get(v, v)),
                *(shown(*_r_of(tests, v, lang, "p")) for lang in means),
            ]
            for v in names
        ]
    text = tabulate(
        rows,
        headers=[r"\makecell{Met-\\ric}", r"\makecell{Verbali-\\zation}", *means.columns],
        tablefmt="latex_raw",
    )
    _, _, rest = text.partition("\n")
    return (
        f"\\begin{{tabular}}{{|cl|{''.join('l' * len(group) + '|' for group in groups)}}}\n{rest}"
    )


def clean_layout(
    retrieval: pd.DataFrame,
    tests: pd.DataFrame | None,
    groups: Sequence[Sequence[str]],
    scale: str = "",
) -> str:
    """Ours: three decimals, real minus signs, stars after Holm's correction, the scale of the quality scores in the head."""
    means = mean_gains(retrieval)
    lines = [
        r"$\Delta$: gain in R@1",
        *([f"$r$: with QE ({escape(scale)})"] if tests is not None else []),
    ]
    broken = r" \\ ".join(lines).replace("; ", r"; \\ ")
    head = Raw(rf"\makecell{{{broken}}}")
    columns = [
        Column("", "l"),
        Column("", "l"),
        *(Column(lang, group=head) for group in groups for lang in group),
    ]
    rows: list[Sequence[object] | None] = [
        [
            Raw(r"$\Delta$") if v == means.index[0] else "",
            SHOWN.get(v, v),
            *(number(value_at(means, v, lang), 3) for lang in means),
        ]
        for v in means.index
    ]
    if tests is not None:
        rows.append(None)
        for v in means.index:
            found = [_r_of(tests, v, lang, "p_holm") for lang in means]
            cells = [
                Raw(rf"{number(r, 3)}\rlap{{*}}") if starred else number(r, 3)
                for r, starred in found
            ]
            rows.append([Raw("$r$") if v == means.index[0] else "", SHOWN.get(v, v), *cells])
    return booktabs_in_blocks(columns, rows, repeated=2)


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
