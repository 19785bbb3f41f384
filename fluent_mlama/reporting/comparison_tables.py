"""How comparisons are written down: full TSV, readable Markdown, a LaTeX table of the main figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from fluent_mlama.files import format_table, write_text
from fluent_mlama.reporting.inference import FEWEST
from fluent_mlama.reporting.latex import Column, Raw, bold, booktabs, number
from fluent_mlama.reporting.paired import SIGNIFICANT, better

_LESS_DIGITS = {"mean rank": 2}


def digits(metric: str) -> int:
    """Decimals of a metric's values: as in the paper, 3 for shares and 2 for ranks."""
    return _LESS_DIGITS.get(metric, 3)


def tsv(frame: pd.DataFrame) -> str:
    """The frame with every number at full precision and an empty cell where there is none."""
    return format_table(frame.map(_plain))


def _plain(value: object) -> str:
    if isinstance(value, float):
        return (
            ""
            if math.isnan(value)
            else (
                str(int(value))
                if value.is_integer() and abs(value) >= 2
                else repr(float(value) + 0.0)
            )
        )
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
    if column in ("p", "p_holm"):
        return p_value(value)
    if column in ("effect_size", "superiority"):
        return f"{value:z.2f}"
    if column == "effective_objects":
        return f"{value:z.1f}"
    return f"{value:z.{digits(str(row['metric']))}f}"


def p_value(value: float) -> str:
    """Three decimals, ``<.001`` below, nothing where there is no test."""
    if math.isnan(value):
        return ""
    return "<.001" if value < 0.001 else f"{value:z.3f}".removeprefix("0")


def verdict(row: dict[str, Any]) -> str:
    """``better``, ``worse`` or ``–`` (the test cannot tell, or there is none), for the second way."""
    if not row["p_holm"] < SIGNIFICANT:
        return "–"
    gain = float(row["difference"]) * better(str(row["metric"]))
    return "better" if gain > 0 else "worse"


def main_figures(differences: pd.DataFrame, weights: str) -> pd.DataFrame:
    """What is printed: the main metrics under these weights, values, difference with its interval, p-values, verdict.

    Beside them the difference where each object counts once, with its p, as a check that no frequent object decides.
    """
    key = ["comparison", "language", "metric"]
    by_object = differences[differences["weights"] == "object"].set_index(key)
    rows = []
    for row in _main_rows(differences, weights):
        places = digits(row["metric"])
        once = by_object.loc[tuple(row[name] for name in key)]
        rows.append(
            {
                "comparison": row["comparison"],
                "language": row["language"],
                "rows": str(row["rows"]),
                "G*": f"{row['effective_objects']:z.0f}",
                "metric": row["metric"],
                "first": f"{row['first_value']:z.{places}f}",
                "second": f"{row['second_value']:z.{places}f}",
                "difference": f"{row['difference']:+z.{places}f}",
                "interval": interval_cell(row, f"+z.{places}f"),
                "detectable": ""
                if math.isnan(row["detectable"])
                else f"{row['detectable']:z.{places}f}",
                "p": p_value(row["p"]),
                "p (Holm)": p_value(row["p_holm"]),
                "second is": verdict(row),
                "each object once": f"{once['difference']:+z.{places}f} {p_value(float(once['p_holm']))}".strip(),
            }
        )
    return pd.DataFrame(rows)


def interval_cell(row: Mapping[Any, Any], form: str) -> str:
    """``[low, high]``; why there is none, where the objects are too few; nothing where no row varies."""
    if row["effective_objects"] < FEWEST:
        return "too few objects"
    return "" if math.isnan(row["low"]) else f"[{row['low']:{form}}, {row['high']:{form}}]"


def side_by_side(values: pd.DataFrame, weights: str) -> pd.DataFrame:
    """The main metrics of several folders, a row per metric, language and verbalisation, a column a folder: value [interval].

    values: as ``comparing.compare_pairs`` gives them, with ways named ``folder:verbalisation``.
    """
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in _records(
        values[(values["weights"] == weights) & values["metric"].isin(main_metrics(values))]
    ):
        places = digits(row["metric"])
        folder, _, verbalisation = row["way"].rpartition(":")
        rows.setdefault((row["metric"], row["language"], verbalisation), {})[folder] = (
            f"{row['value']:z.{places}f} {interval_cell(row, f'z.{places}f')}".strip()
        )
    ordered = sorted(rows, key=lambda key: key[0] == "mean rank")
    heads = [
        {"metric": metric, "language": language, "verbalisation": v}
        for metric, language, v in ordered
    ]
    return pd.DataFrame(
        [head | rows[key] for head, key in zip(heads, ordered, strict=True)]
    ).fillna("")


def latex_body(differences: pd.DataFrame, weights: str) -> str:
    """A booktabs table: a block a comparison, a row a language; a difference that the test can tell from 0 is bold."""
    columns = [Column("", "l"), Column("rows")]
    for metric in main_metrics(differences):
        title = Raw(rf"{metric} $\{'up' if better(metric) > 0 else 'down'}arrow$")
        columns += [
            Column(header, "r", title)
            for header in ("first", "second", Raw(r"$\Delta$"), "interval", Raw("$p$"))
        ]
    rows: list[Sequence[object] | None] = []
    ordered = _main_rows(differences, weights)
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
        number(float(row[column]), places)
        for column in ("first_value", "second_value", "difference", "low", "high")
    )
    shown = bold(difference) if verdict(row) != "–" else difference
    interval = (
        interval_cell(row, "") if row["effective_objects"] < FEWEST else Raw(f"[{low}, {high}]")
    )
    return [first, second, shown, interval, Raw(p_value(row["p_holm"]).replace("<", "$<$"))]


def main_metrics(differences: pd.DataFrame) -> tuple[str, str]:
    """The first R@k and the mean rank, of values or differences."""
    return differences["metric"].iloc[0], "mean rank"


def _main_rows(differences: pd.DataFrame, weights: str) -> list[dict[str, Any]]:
    return _records(
        differences[
            (differences["weights"] == weights)
            & differences["metric"].isin(main_metrics(differences))
        ]
    )


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
