"""How comparisons are written down: full TSV, readable Markdown, a LaTeX table of the main figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from fluent.records.atomic import write_text
from fluent.records.table import format_table
from fluent.reporting.clusters import better
from fluent.reporting.latex import Column, Raw, bold, booktabs, number

SIGNIFICANT = 0.05

_LESS_DIGITS = {"mean rank": 2}


def digits(metric: str) -> int:
    """Decimals of a metric's values: as in the paper, 3 for shares and 2 for ranks."""
    return _LESS_DIGITS.get(metric, 3)


def tsv(frame: pd.DataFrame) -> str:
    """The frame with every number at full precision and an empty cell where there is none."""
    return format_table(frame.map(_plain))


def _plain(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else (str(int(value)) if value.is_integer() and abs(value) >= 2 else repr(float(value) + 0.0))
    return str(value)


def write_markdown(path: Path, frame: pd.DataFrame, remarks: Sequence[str]) -> None:
    """Write the frame, rounded, as a Markdown table with the remarks above it."""
    rows = [[_rounded(row, column) for column in frame.columns] for row in _records(frame)]
    headers = [column.replace("_", " ") for column in frame.columns]
    text = tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)
    write_text(path, "".join(f"{remark}  \n" for remark in remarks) + f"\n{text}\n")


def _rounded(row: dict[str, Any], column: str) -> str:
    value = row[column]
    if not isinstance(value, float):
        return str(value).replace("|", "\\|")
    if math.isnan(value):
        return ""
    if column.startswith("p_"):
        return p_value(value)
    if column in ("gained", "lost"):
        return str(int(value))
    if column in ("effect_size", "superiority", "odds_ratio"):
        return f"{value:z.2f}"
    return f"{value:z.{digits(str(row['metric']))}f}"


def p_value(value: float) -> str:
    """Three decimals, ``<.001`` below, nothing where there is no test."""
    if math.isnan(value):
        return ""
    return "<.001" if value < 0.001 else f"{value:z.3f}".removeprefix("0")


def decisive_p(row: dict[str, Any]) -> float:
    """The p-value that decides: adjusted over languages, or the plain one of a pooled row."""
    return float(row["p_permutation"] if math.isnan(row["p_permutation_holm"]) else row["p_permutation_holm"])


def verdict(row: dict[str, Any]) -> str:
    """``better``, ``worse`` or ``–`` (the test cannot tell), for the second way."""
    if decisive_p(row) >= SIGNIFICANT:
        return "–"
    gain = float(row["difference"]) * better(str(row["metric"]))
    return "better" if gain > 0 else "worse"


def main_figures(differences: pd.DataFrame, average: str) -> pd.DataFrame:
    """What is printed: the main metrics of one average, values, difference with its interval, p-values, verdict."""
    rows = []
    for row in _main_rows(differences, average):
        places = digits(row["metric"])
        rows.append(
            {
                "comparison": row["comparison"],
                "language": row["language"],
                "rows": str(row["rows"]),
                "metric": row["metric"],
                "first": f"{row['first_value']:z.{places}f}",
                "second": f"{row['second_value']:z.{places}f}",
                "difference": f"{row['difference']:+z.{places}f}",
                "interval": "" if math.isnan(row["low"]) else f"[{row['low']:+z.{places}f}, {row['high']:+z.{places}f}]",
                "p": p_value(row["p_permutation"]),
                "p (Holm)": p_value(row["p_permutation_holm"]),
                "McNemar": p_value(row["mcnemar"]),
                "second is": verdict(row),
            }
        )
    return pd.DataFrame(rows)


def side_by_side(values: pd.DataFrame, average: str) -> pd.DataFrame:
    """The main metrics of several folders, a row per metric, language and verbalisation, a column a folder: value [interval].

    values: as ``comparing.compare_pairs`` gives them, with ways named ``folder:verbalisation``.
    """
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in _records(values[(values["average"] == average) & values["metric"].isin(main_metrics(values))]):
        places = digits(row["metric"])
        interval = "" if math.isnan(row["low"]) else f" [{row['low']:z.{places}f}, {row['high']:z.{places}f}]"
        folder, _, verbalisation = row["way"].rpartition(":")
        rows.setdefault((row["metric"], row["language"], verbalisation), {})[folder] = f"{row['value']:z.{places}f}{interval}"
    ordered = sorted(rows, key=lambda key: key[0] == "mean rank")
    heads = [{"metric": metric, "language": language, "verbalisation": v} for metric, language, v in ordered]
    return pd.DataFrame([head | rows[key] for head, key in zip(heads, ordered, strict=True)]).fillna("")


def latex_body(differences: pd.DataFrame, average: str) -> str:
    """A booktabs table: a block a comparison, a row a language; a difference that the test can tell from 0 is bold."""
    columns = [Column("", "l"), Column("rows")]
    for metric in main_metrics(differences):
        title = Raw(rf"{metric} $\{'up' if better(metric) > 0 else 'down'}arrow$")
        columns += [Column(header, "r", title) for header in ("first", "second", Raw(r"$\Delta$"), "interval", Raw("$p$"))]
    rows: list[Sequence[object] | None] = []
    ordered = _main_rows(differences, average)
    for comparison, block in groupby(ordered, key=lambda row: row["comparison"]):
        rows += [] if not rows else [None]
        rows.append([comparison, *[""] * (len(columns) - 1)])
        for language, cells in groupby(block, key=lambda row: row["language"]):
            line: list[object] = []
            for row in cells:
                line = line or [language, row["rows"]]
                line += _latex_cells(row)
            rows.append(line)
    return booktabs(columns, rows).replace("→", r"$\rightarrow$")


def _latex_cells(row: dict[str, Any]) -> list[object]:
    places = digits(str(row["metric"]))
    first, second, difference, low, high = (
        number(float(row[column]), places) for column in ("first_value", "second_value", "difference", "low", "high")
    )
    shown = bold(difference) if verdict(row) != "–" else difference
    return [first, second, shown, Raw(f"[{low}, {high}]"), Raw(p_value(decisive_p(row)).replace("<", "$<$"))]


def main_metrics(differences: pd.DataFrame) -> tuple[str, str]:
    """The first R@k and the mean rank, of values or differences."""
    return differences["metric"].iloc[0], "mean rank"


def _main_rows(differences: pd.DataFrame, average: str) -> list[dict[str, Any]]:
    """The rows of the main metrics; McNemar's p, which only rows as such have, is taken over from the micro average."""
    chosen = differences[(differences["average"] == average) & differences["metric"].isin(main_metrics(differences))]
    key = ["comparison", "language", "metric"]
    counted = differences[differences["average"] == "micro"].set_index(key)
    mcnemar = counted["p_mcnemar_holm"].fillna(counted["p_mcnemar"])
    rows = chosen.assign(mcnemar=mcnemar.loc[list(chosen[key].itertuples(index=False, name=None))].to_numpy())
    return _records(rows)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
