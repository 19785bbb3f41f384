r"""``all_tables.tex``: a document around tables, with the preamble that their characters need.

The tables hold plain text in UTF-8; what sets it is the document's matter:

    Latin letters of Europe         pdflatex with T1
    Cyrillic                        pdflatex, each letter from T2A
    simplified Chinese              pdflatex, package CJKutf8, font gbsn
    any other character             lualatex, fonts Latin Modern, FreeSerif and Noto Sans CJK
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import regex

from fluent_mlama.files import write_text
from fluent_mlama.reporting.latex import escape

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
