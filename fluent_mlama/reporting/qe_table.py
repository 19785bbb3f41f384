"""Table 5: gain in R@1 over the template for each language, and its correlation with the gain in translation quality."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.reporting.experiments import both
from fluent_mlama.reporting.latex import (
    Column,
    Raw,
    booktabs_in_blocks,
    escape,
    number,
    write_table,
)
from fluent_mlama.reporting.loading import DumpFolder, open_dumps
from fluent_mlama.reporting.measures import value_at
from fluent_mlama.reporting.options import QualityGains, QualityScale, StatsOptions
from fluent_mlama.reporting.quality import (
    SIGNIFICANT,
    correlations,
    gains,
    read_quality_gains,
    retrieval_gains,
)
from fluent_mlama.reporting.remarks import caption

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
