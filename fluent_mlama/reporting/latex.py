"""LaTeX tables in the clean style: booktabs, fixed decimals, everything escaped, what they are as comments.

The published layout (``--style paper``) is set by tabulate in the table modules themselves; both go through ``write_table``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import regex

from fluent_mlama.console import note
from fluent_mlama.files import write_text
from fluent_mlama.ranking.corrected import remove_invisible

_SPECIALS = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        **{char: "\\" + char for char in "&%$#_{}"},
        # A line end inside a cell would end a comment; other control characters are an error to LaTeX.
        **{chr(code): " " for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)},
    }
)
_LIGATURES = re.compile("(?<=-)-|(?<=')'|(?<=,),|(?<=[`?!])`")
"""The second of two characters that fonts draw as one: -- is a dash, ?` is ¿."""
_NOWHERE = regex.compile(r"[\p{Cn}\p{Co}\uFFFD]")
"""Characters that no font has, and U+FFFD, at which LuaTeX stops: it stands there for what is no UTF-8."""
_RIGHT_TO_LEFT = regex.compile(r"[\p{Bidi_Class=R}\p{Bidi_Class=AL}]")

COLUMNS_ABREAST = 9
"""Columns of figures that a page of the paper's width holds."""


class Raw(str):
    """A cell that is LaTeX already; any other cell is text and gets escaped."""


def escape(text: str, *, in_paragraph: bool = False) -> str:
    """The text as LaTeX prints it: no character is taken for a command or drawn as part of a dash or quotation mark.

    Characters that nobody sees are left out and those without a meaning are set as U+E000; the others stay UTF-8
    (``latex_document`` chooses fonts for them). in_paragraph: not in a cell of a table, so that lines may be broken.
    """
    seen = remove_invisible(unicodedata.normalize("NFC", _name_unknown(text))).translate(_SPECIALS)
    shown = _LIGATURES.sub(lambda match: "{}" + match.group(), seen)
    # babel turns the text of a cell round twice, as of its column and of its row; that of a box only once.
    return rf"\mbox{{{shown}}}" if _RIGHT_TO_LEFT.search(shown) and not in_paragraph else shown


def _name_unknown(text: str) -> str:
    return _NOWHERE.sub(lambda match: f"U+{ord(match.group()):04X}", text)


def render(cell: object) -> str:
    """A cell as LaTeX: ``Raw`` as it is, anything else escaped."""
    return str(cell) if isinstance(cell, Raw) else escape(str(cell))


def first_cell(cell: object) -> str:
    r"""The first cell of a row as LaTeX: the \\ of the row above would take a * or [ behind it for its own."""
    text = render(cell)
    return "{}" + text if text.lstrip().startswith(("*", "[")) else text


def number(value: float, digits: int) -> Raw:
    """Fixed decimals with a real minus sign; -- for a missing value; never a negative zero."""
    return Raw("--" if math.isnan(value) else f"{value:z.{digits}f}".replace("-", "$-$"))


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
    lines = [
        rf"\begin{{tabular}}{{{''.join(column.align for column in columns)}}}",
        r"\toprule",
        *_group_lines(columns),
    ]
    lines += [_line([column.header for column in columns]), r"\midrule"]
    for row in rows:
        if row is None:
            lines.append(r"\midrule")
            continue
        if len(row) != len(columns):
            raise ValueError(
                f"a row of {len(row)} cells in a table of {len(columns)} columns: {row}"
            )
        lines.append(_line(row))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def booktabs_in_blocks(
    columns: Sequence[Column], rows: Sequence[Sequence[object] | None], repeated: int
) -> str:
    """The same for any number of columns: past ``COLUMNS_ABREAST`` the rest follows below, with the first ``repeated`` again."""
    blocks = []
    for start in range(repeated, len(columns), COLUMNS_ABREAST):
        taken = [*range(repeated), *range(start, min(start + COLUMNS_ABREAST, len(columns)))]
        blocks.append(
            booktabs([columns[i] for i in taken], [row and [row[i] for i in taken] for row in rows])
        )
    return "\n\\par\\medskip\n".join(blocks)


def _line(cells: Sequence[object]) -> str:
    return " & ".join([first_cell(cells[0]), *map(render, cells[1:])]) + r" \\"


def _group_lines(columns: Sequence[Column]) -> list[str]:
    if not any(column.group for column in columns):
        return []
    cells, rules, position = [], [], 1
    for group, members in groupby(columns, key=lambda column: column.group):
        width = len(list(members))
        cells.append(
            Raw(rf"\multicolumn{{{width}}}{{c}}{{{render(group)}}}")
            if group
            else Raw("" if width == 1 else "&" * (width - 1))
        )
        if group:
            rules.append(rf"\cmidrule(lr){{{position}-{position + width - 1}}}")
        position += width
    return [_line(cells), "".join(rules)]


def write_table(folder: Path, name: str, body: str, remarks: Sequence[str] = ()) -> Path:
    """Write ``{name}.tex``: the remarks (caption, signature) as comments, then the table; says where it lies."""
    comments = "".join(f"% {' '.join(_name_unknown(remark).split())}\n" for remark in remarks)
    path = folder / f"{name}.tex"
    write_text(path, comments + body)
    note(f"wrote {path}")
    return path
