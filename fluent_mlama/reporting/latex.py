"""LaTeX tables in the clean style: booktabs, fixed decimals, everything escaped, what they are as comments.

The published layout (``--style paper``) is set by tabulate in the table modules themselves; both go through ``write_table``.

``all_tables.tex``: a document around tables, with the preamble that their characters need.

The tables hold plain text in UTF-8; what sets it is the document's matter:

    Latin letters of Europe         pdflatex with T1
    Cyrillic                        pdflatex, each letter from T2A
    simplified Chinese              pdflatex, package CJKutf8, font gbsn
    any other character             lualatex, fonts Latin Modern, FreeSerif and Noto Sans CJK
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


_T1 = regex.compile(
    "[\n -~\u00a0-\u00ac\u00ae-\u0125\u0128-\u0137\u0139-\u013e\u0141-\u0148\u014a-\u0165\u0168-\u017e\u0218-\u021b"
    "\u2010-\u2015\u2018-\u201a\u201c-\u201e\u2020-\u2022\u2026\u2030\u2039-\u203a\u20ac\u2116\u2122\u2190-\u2193]"
)
"""Characters that pdflatex sets in the encodings T1 and TS1."""
_T2A = regex.compile(
    "[\u0400-\u045f\u0490-\u0493\u0496-\u049d\u04a0-\u04a5\u04aa-\u04ab\u04ae-\u04b3\u04b6-\u04bb\u04c0-\u04c2\u04d0-\u04df"
    "\u04e2-\u04e9\u04ec-\u04f5\u04f8-\u04f9]"
)

_PAGE = r"""\documentclass[a4paper,landscape,10pt]{article}
\usepackage[margin=15mm]{geometry}
"""
_PDFLATEX = r"""\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{lmodern}
"""
# \Cyrillic{Ж} keeps inputenc's macro of the letter (its name is u8:Ж) as T2A:Ж and lets the former switch to T2A first;
# with T1 alone the letter is an error, and T2A alone lacks letters of other languages, such as đ.
_CYRILLIC = r"""\usepackage[T2A,T1]{fontenc}
\makeatletter
\newcommand*\Cyrillic[1]{\expandafter\from@tta\csname u8:\detokenize{#1}\expandafter\endcsname\csname T2A:\detokenize{#1}\endcsname}
\newcommand*\from@tta[2]{\let#2#1\protected\def#1{{\fontencoding{T2A}\selectfont#2}}}
\makeatother
"""
# Scripts whose letters join or change places need their script named (babel does), or each letter stands for itself.
_LUALATEX = r"""\usepackage[bidi=basic,english]{babel}
\usepackage{fontspec}
\directlua{luaotfload.add_fallback("others", {"FreeSerif:mode=harf;", "Noto Sans CJK SC:mode=harf;"})}
\babelfont{rm}[RawFeature={fallback=others}]{Latin Modern Roman}
\babelfont{tt}[RawFeature={fallback=others}]{Latin Modern Mono}
\newcommand*\joined[1]{\babelprovide[import,onchar=ids fonts]{#1}\babelfont[#1]{rm}[Renderer=Harfbuzz]{FreeSerif}}
\joined{arabic}\joined{hebrew}\joined{hindi}\joined{bengali}\joined{tamil}\joined{thai}
\font\others="FreeSerif"
\font\cjk="Noto Sans CJK SC"
"""
# LuaTeX leaves out what no font has and says so in the log alone; set as U+1F600 it can be seen.
_VISIBLE = r"""\newcommand*\visible[1]{\iffontchar\others"#1 \else\iffontchar\cjk"#1 \else
  \catcode"#1=\active\begingroup\lccode`\~="#1\lowercase{\endgroup\protected\def~}{{\scriptsize U+#1}}\fi\fi}
"""
# What is too wide or too high for a page is made smaller; it would run off the paper.
# The published relation table sets subscripts outside maths (12_{36}), which is an error in plain LaTeX.
_TABLES = r"""\usepackage{adjustbox,amsmath,booktabs,makecell,multirow,varwidth}
\setlength{\parindent}{0pt}
\catcode`\_=\active
\protected\def_{\ifmmode\sb\else\expandafter\textsubscript\fi}
\catcode`\_=8
\newcommand*\showtable[1]{\begingroup\catcode`\_=\active
  \adjustbox{varwidth=9\linewidth,max width=\linewidth}{\input{#1}}\endgroup}
"""
_FITTING = r"minipage=\linewidth,max totalheight=\textheight"


def write_document(folder: Path, tables: Sequence[Path]) -> tuple[Path, str]:
    """Write ``all_tables.tex``, which shows these tables with their file names and the remarks above them.

    Returns its path and the program that sets it in that folder, ``pdflatex`` or ``lualatex``.
    """
    pages = []
    used: set[str] = set()
    for table in tables:
        text = table.read_text(encoding="utf-8")
        used.update(text)
        remarks = [
            escape(line.removeprefix("%").strip(), in_paragraph=True)
            for line in text.splitlines()
            if line.startswith("%")
        ]
        parts = [
            rf"\texttt{{{escape(table.name)}}}",
            rf"\showtable{{{table.stem}}}",
            r"\footnotesize",
            *remarks,
        ]
        page = "\\par\\smallskip\n".join(parts)
        pages.append(
            f"\\begin{{adjustbox}}{{{_FITTING}}}\n{page}\n\\end{{adjustbox}}\\par\\bigskip\\bigskip\n"
        )
    program, preamble, begin, end = settings_for(used)
    path = folder / "all_tables.tex"
    body = [
        _PAGE,
        preamble,
        _TABLES,
        "\\begin{document}\n",
        begin,
        "\n".join(pages),
        end,
        "\\end{document}\n",
    ]
    write_text(path, "".join(body))
    return path, program


def settings_for(characters: set[str]) -> tuple[str, str, str, str]:
    """Program, preamble, and what encloses the body, for a document that holds these characters."""
    special = sorted(character for character in characters if not _T1.match(character))
    cyrillic = [character for character in special if _T2A.match(character)]
    chinese = [character for character in special if _is_in_gbsn(character)]
    if len(cyrillic) + len(chinese) < len(special):
        checked = "".join(rf"\visible{{{ord(character):04X}}}" for character in special)
        return "lualatex", _LUALATEX + _VISIBLE + checked + "\n", "", ""
    preamble = _PDFLATEX
    if cyrillic:
        preamble += _CYRILLIC + "".join(f"\\Cyrillic{{{letter}}}" for letter in cyrillic) + "\n"
    if chinese:
        return (
            "pdflatex",
            preamble + "\\usepackage{CJKutf8}\n",
            "\\begin{CJK}{UTF8}{gbsn}\n",
            "\\end{CJK}\n",
        )
    return "pdflatex", preamble, "", ""


def _is_in_gbsn(character: str) -> bool:
    """Whether the font has this Han character, kana or Chinese mark: it holds those of GB 2312."""
    if character < "\u3000" or character == "\u30fb":
        return False
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True
