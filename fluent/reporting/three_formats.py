"""A table as TSV, Markdown and LaTeX side by side, for results that have no published layout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent.records.atomic import write_text
from fluent.records.table import format_table

_FORMATS = {".md": "github", ".tex": "latex_booktabs"}


def write_tables(folder: Path, tables: Mapping[str, pd.DataFrame], remark: str = "") -> None:
    """Each table three times: full precision as TSV, four decimals as Markdown and LaTeX. A missing number is an empty cell or –.

    remark: a signature, as a comment above the last two.
    """
    for name, table in tables.items():
        text = pd.DataFrame({column: [_full(value) for value in table[column]] for column in table.columns}, dtype="str")
        write_text(folder / f"{name}.tsv", format_table(text))
        shown = [[_short(value) for value in row] for row in table.itertuples(index=False)]
        for ending, style in _FORMATS.items():
            body = tabulate(shown, list(table.columns), tablefmt=style, disable_numparse=True) + "\n"
            comment = f"% {remark}\n" if ending == ".tex" else f"<!-- {remark} -->\n\n"
            write_text(folder / f"{name}{ending}", (comment if remark else "") + body)


def _full(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    return str(value)


def _short(value: object) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4f}"
    return str(value)
