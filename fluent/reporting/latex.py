"""LaTeX tables in the clean style: booktabs, fixed decimals, everything escaped, what they are as comments.

The published layout (``--style paper``) is set by tabulate in the table modules themselves; both go through ``write_table``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from fluent.console import note
from fluent.records.atomic import write_text

_SPECIALS = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        **{char: "\\" + char for char in "&%$#_{}"},
        "\n": " ",
        "\t": " ",
    }
)

COLUMNS_ABREAST = 9
"""Columns of figures that a page of the paper's width holds."""
PREAMBLE = r"""\documentclass[a4paper,landscape,10pt]{article}
\usepackage[margin=15mm]{geometry}
\usepackage[T2A,T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{lmodern}
\usepackage{amsmath,booktabs,makecell,multirow}
\setlength{\parindent}{0pt}
\begin{document}
"""


class Raw(str):
    """A cell that is LaTeX already; any other cell is text and gets escaped."""


def escape(text: str) -> str:
    """The text with every character that LaTeX would take for a command replaced by what prints it (one pass)."""
    return text.translate(_SPECIALS)


def render(cell: object) -> str:
    """A cell as LaTeX: ``Raw`` as it is, anything else escaped."""
    return str(cell) if isinstance(cell, Raw) else escape(str(cell))


def number(value: float, digits: int) -> Raw:
    """Fixed decimals with a real minus sign; -- for a missing value; never a negative zero."""
    if math.isnan(value):
        return Raw("--")
    rounded = round(value, digits) + 0.0
    return Raw(f"{'$-$' if rounded < 0 else ''}{abs(rounded):.{digits}f}")


def bold(cell: object) -> Raw:
    """The cell in bold."""
    return Raw(rf"\textbf{{{render(cell)}}}")


@dataclass(frozen=True)
class Column:
    """One column: its header, its alignment (l, r, c) and the heading that it shares with its neighbours ("" = none)."""

    header: object
    align: str = "r"
    group: object = ""


def booktabs(columns: Sequence[Column], rows: Sequence[Sequence[object] | None]) -> str:
    """A tabular with booktabs rules; ``None`` among the rows is a rule."""
    lines = [rf"\begin{{tabular}}{{{''.join(column.align for column in columns)}}}", r"\toprule", *_group_lines(columns)]
    lines += [_line([column.header for column in columns]), r"\midrule"]
    for row in rows:
        if row is None:
            lines.append(r"\midrule")
            continue
        if len(row) != len(columns):
            raise ValueError(f"a row of {len(row)} cells in a table of {len(columns)} columns: {row}")
        lines.append(_line(row))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def booktabs_in_blocks(columns: Sequence[Column], rows: Sequence[Sequence[object] | None], repeated: int) -> str:
    """The same for any number of columns: past ``COLUMNS_ABREAST`` the rest follows below, with the first ``repeated`` again."""
    blocks = []
    for start in range(repeated, len(columns), COLUMNS_ABREAST):
        taken = [*range(repeated), *range(start, min(start + COLUMNS_ABREAST, len(columns)))]
        blocks.append(booktabs([columns[i] for i in taken], [row and [row[i] for i in taken] for row in rows]))
    return "\n\\par\\medskip\n".join(blocks)


def _line(cells: Sequence[object]) -> str:
    return " & ".join(map(render, cells)) + r" \\"


def _group_lines(columns: Sequence[Column]) -> list[str]:
    if not any(column.group for column in columns):
        return []
    cells, rules, position = [], [], 1
    for group, members in groupby(columns, key=lambda column: column.group):
        width = len(list(members))
        cells.append(Raw(rf"\multicolumn{{{width}}}{{c}}{{{render(group)}}}") if group else Raw("" if width == 1 else "&" * (width - 1)))
        if group:
            rules.append(rf"\cmidrule(lr){{{position}-{position + width - 1}}}")
        position += width
    return [_line(cells), "".join(rules)]


def write_table(folder: Path, name: str, body: str, remarks: Sequence[str] = ()) -> Path:
    """Write ``{name}.tex``: the remarks (caption, signature) as comments, then the table; says where it lies."""
    comments = "".join(f"% {' '.join(remark.split())}\n" for remark in remarks)
    path = folder / f"{name}.tex"
    write_text(path, comments + body)
    note(f"wrote {path}")
    return path


def write_document(folder: Path, tables: Sequence[Path]) -> Path:
    """Write ``all_tables.tex``, a document that shows these tables with their file names and the remarks above them.

    ``pdflatex all_tables.tex`` in that folder sets it.
    """
    pages = []
    for table in tables:
        lines = table.read_text(encoding="utf-8").splitlines()
        remarks = [escape(line.removeprefix("%").strip()) for line in lines if line.startswith("%")]
        parts = [rf"\texttt{{{escape(table.name)}}}", rf"\input{{{table.stem}}}", r"\footnotesize", *remarks]
        pages.append("\\begin{minipage}{\\linewidth}\n" + "\\par\\smallskip\n".join(parts) + "\n\\end{minipage}\\par\\bigskip\\bigskip\n")
    path = folder / "all_tables.tex"
    write_text(path, PREAMBLE + "\n".join(pages) + "\\end{document}\n")
    return path
