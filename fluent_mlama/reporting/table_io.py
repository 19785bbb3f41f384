"""A table as TSV, Markdown and LaTeX side by side, for results that have no published layout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.files import format_table, write_text
from fluent_mlama.reporting.latex import Column, booktabs


def write_tables(folder: Path, tables: Mapping[str, pd.DataFrame], remark: str = "") -> None:
    """Each table three times: full precision as TSV, four decimals as Markdown and LaTeX. A missing number is an empty cell or –.

    remark: a signature, as a comment above the last two.
    """
    for name, table in tables.items():
        text = pd.DataFrame(
            {column: [_full(value) for value in table[column]] for column in table.columns},
            dtype="str",
        )
        write_text(folder / f"{name}.tsv", format_table(text))
        shown = [[_short(value) for value in row] for row in table.itertuples(index=False)]
        plain = [[value.replace("|", "\\|").replace("\n", " ") for value in row] for row in shown]
        markdown = (
            tabulate(plain, list(table.columns), tablefmt="github", disable_numparse=True) + "\n"
        )
        write_text(folder / f"{name}.md", (f"<!-- {remark} -->\n\n" if remark else "") + markdown)
        tex = booktabs([Column(column, "l") for column in table.columns], shown)
        write_text(folder / f"{name}.tex", (f"% {remark}\n" if remark else "") + tex)


def _full(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value) + 0.0)
    return str(value)


def _short(value: object) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:z.4f}"
    return str(value)
