"""Forms that agree with a person's gender: the shipped table ``gendered_forms.tsv`` and whether a sentence has one.

Columns: ``lang``, ``relation``, ``gender`` (f or m), ``form`` (one or more words), and ``published``: the string that the paper's
program looks for (its Table 6), with ␣ for a blank. Anybody's table of the same columns serves other relations and languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import regex

from fluent_mlama.console import UserError
from fluent_mlama.data import GENDERED_FORMS
from fluent_mlama.languages import fold_case
from fluent_mlama.records.table import read_table

SHIPPED = GENDERED_FORMS
COLUMNS = ("lang", "relation", "gender", "form")
BLANK = "␣"


@dataclass(frozen=True)
class FormPattern:
    """Forms of one gender as a pattern. lang: the language by which case is folded; None: the text is taken as it is."""

    pattern: regex.Pattern[str]
    lang: str | None = None

    def matches(self, text: str) -> bool:
        """Whether the text has one of the forms."""
        return (
            self.pattern.search(text if self.lang is None else fold_case(text, self.lang))
            is not None
        )


@dataclass(frozen=True)
class Forms:
    """The forms of one (language, relation); None where there is no form of that gender."""

    feminine: FormPattern | None
    masculine: FormPattern | None


def read_forms(path: Path = SHIPPED, *, published: bool = False) -> dict[tuple[str, str], Forms]:
    """(lang, relation) -> forms: whole words in any case, or (published) the paper's strings as they stand, feminine alone."""
    if not path.is_file():
        raise UserError(
            f"no table of forms {path}: give a TSV with the columns {', '.join(COLUMNS)}"
        )
    frame = read_table(path.read_bytes(), str(path))
    lacking = [
        column
        for column in (*COLUMNS, *(("published",) if published else ()))
        if column not in frame
    ]
    if lacking:
        raise UserError(f"{path}: no column {', '.join(lacking)}; it needs {', '.join(COLUMNS)}")
    for row, gender, form in zip(frame.index, frame["gender"], frame["form"], strict=True):
        if gender not in ("f", "m") or not form.strip():
            raise UserError(
                f"{path}, row {row}: gender '{gender}' and form '{form}'; write f or m, and a form"
            )
    found = {}
    for (lang, relation), rows in frame.groupby(["lang", "relation"], sort=False):
        if published:
            strings = [cell.replace(BLANK, " ") for cell in rows["published"] if cell]
            if strings:
                found[str(lang), str(relation)] = Forms(
                    FormPattern(regex.compile("|".join(map(regex.escape, strings)))), None
                )
        else:
            of = {gender: list(rows.loc[rows["gender"] == gender, "form"]) for gender in ("f", "m")}
            found[str(lang), str(relation)] = Forms(
                _whole_words(of["f"], str(lang)), _whole_words(of["m"], str(lang))
            )
    return found


def _whole_words(forms: Sequence[str], lang: str) -> FormPattern | None:
    if not forms:
        return None
    words = "|".join(
        r"\s+".join(map(regex.escape, fold_case(form, lang).split())) for form in forms
    )
    # \w leaves combining marks out, which are part of words in the scripts of India.
    return FormPattern(regex.compile(rf"(?<![\w\p{{M}}])(?:{words})(?![\w\p{{M}}])"), lang)
