"""The table of facts as items to translate, rows to locate objects in, cut sentences, and lines to
read.

The table has the columns of a benchmark file (``fluent_mlama/records/benchmark.py``), one row per
fact, numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from fluent_mlama.console import mark_span
from fluent_mlama.locating import Location, Locator, Row
from fluent_mlama.records.benchmark import (
    ERROR,
    is_usable,
    name_columns,
    objection,
    split_aliases,
)
from fluent_mlama.translating.backend import OK, SourceSentence
from fluent_mlama.translating.checks import REASONS, Checked

EXPLAINED = REASONS | {
    "not-found": "no name of the object is in the sentence",
    "inside-subject": "the object's name is only in the subject's",
    "frame": "found by its place in the sentence alone",
    "unsure": "its name is only a little like the object's",
}
"""What each reason, of the translation or of the search for the object, means."""


def items_of(table: pd.DataFrame, relation: str, source: str, target: str) -> list[SourceSentence]:
    """What a back end gets for each fact."""
    names = ("sub_uri", "obj_uri", "en_sub_label", "en_obj_label", "sub_label", "obj_label")
    columns = (table[name] for name in (*names, "en_template"))
    return [
        SourceSentence(row, relation, *cells, target, source)  # type: ignore[call-arg]
        for row, cells in enumerate(zip(*columns, strict=True))
    ]


def rows_of(
    table: pd.DataFrame, name: str, template: str, known: Sequence[tuple[str, ...]]
) -> list[Row]:
    """What the locator gets for each fact.

    name: the verbalisation. known: object forms of the other verbalisations, one tuple per fact.
    """
    english = table["en_obj_label"].where(
        table["en_obj_label"] != "", table.get("en_wikidata_label", "")
    )
    columns = (name_columns(name).sentence, "obj_label", "sub_label", "en_sub_label", "obj_uri")
    cells = (*(table[column] for column in columns), english)
    aliases = (tuple(split_aliases(cell)) for cell in table["aliases"])
    return [
        Row(
            sentence=sentence,
            label=label,
            subject=subject,
            aliases=others,
            english=english_label,
            english_subject=english_subject,
            template=template,
            key=uri,
            forms=forms,
        )
        for sentence, label, subject, english_subject, uri, english_label, others, forms in zip(
            *cells, aliases, known, strict=True
        )
    ]


@dataclass(frozen=True, slots=True)
class Cut:
    """The cells of one row of one verbalisation.

    Where there is no object, prompt and object are ``ERROR`` and the status says why.
    """

    prompt: str
    object_form: str
    tail: str
    status: str

    @property
    def found(self) -> bool:
        return self.object_form != ERROR


def cut_sentences(checked: Sequence[Checked], rows: Sequence[Row], locator: Locator) -> list[Cut]:
    """Cut every usable sentence at its object: by the span that the back end knows, else the
    locator's.

    checked, rows: one per fact, in the same order; the locator learns from all rows it searches.
    """
    # Rows with a known span are not searched, and teach the locator nothing.
    searched = [row for row, one in enumerate(checked) if one.usable and one.object_span is None]
    outcomes = dict(zip(searched, locator.locate_all([rows[row] for row in searched]), strict=True))
    cuts = []
    for row, one in enumerate(checked):
        outcome = outcomes.get(row)
        if one.usable and one.object_span is not None:
            outcome = Location(one.text, *one.object_span, method="exact", confidence=1.0)
        if isinstance(outcome, Location):
            status = ";".join((OK, *one.flags, *outcome.flags))
            cuts.append(Cut(outcome.prompt, outcome.object_form, outcome.tail, status))
        else:
            reason = one.reason if outcome is None else outcome.reason
            cuts.append(Cut(ERROR, ERROR, "", ";".join((reason, *one.flags))))
    return cuts


def lines_of(table: pd.DataFrame, names: Iterable[str], which: str = "all") -> list[str]:
    """The sentences of these verbalisations, the object marked; the status where it is more than
    ok.

    which: ``all``, ``failed`` (those without an object) or ``unsure`` (found without evidence from
    the object's name). A failed row shows the object's label too, and what its status means.
    """
    names = list(names)
    lines = []
    for row, cells in zip(table.index, table.to_dict("records"), strict=True):
        for name in names:
            columns = (column for column in name_columns(name) if column)
            sentence, prompt, form, _, status = (str(cells[column]) for column in columns)
            wrong = objection(status)
            if which != "all" and not (wrong and is_usable(status) == (which == "unsure")):
                continue
            if is_usable(status):
                sentence = mark_span(sentence, len(prompt), len(prompt) + len(form))
            why = f"{status}: {EXPLAINED[wrong]}" if wrong in EXPLAINED else status
            label = f"   {cells['obj_label']}" if wrong else ""
            shown = "" if status == OK else f"   [{why}]"
            lines.append(f"{row:>4} {name:<10} {sentence}{label}{shown}")
    return lines
