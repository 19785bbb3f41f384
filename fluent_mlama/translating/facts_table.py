"""The table of facts, seen as items to translate, as rows to locate objects in, and as lines for a person to read.

The table has the columns of a benchmark file (``fluent_mlama/records/benchmark.py``), one row a fact, numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from fluent_mlama.console import mark_span
from fluent_mlama.locating.result import Row
from fluent_mlama.records.benchmark import is_usable, name_columns, objection, split_aliases
from fluent_mlama.translating.backend import OK, Item
from fluent_mlama.translating.checks import REASONS

EXPLAINED = REASONS | {
    "not-found": "no name of the object is in the sentence",
    "inside-subject": "the object's name is only in the subject's",
    "frame": "found by its place in the sentence alone",
    "unsure": "its name is only a little like the object's",
}
"""What each reason, of the translation or of the search for the object, means."""


def items_of(table: pd.DataFrame, relation: str, source: str, target: str) -> list[Item]:
    """What a back end is told of each fact."""
    subjects = zip(table["sub_uri"], table["en_sub_label"], table["sub_label"], strict=True)
    objects = zip(table["obj_uri"], table["en_obj_label"], table["obj_label"], strict=True)
    return [
        Item(
            row,
            relation,
            sub_uri,
            obj_uri,
            en_subject,
            en_object,
            subject,
            obj,
            sentence,
            target,
            source,
        )
        for row, ((sub_uri, en_subject, subject), (obj_uri, en_object, obj), sentence) in enumerate(
            zip(subjects, objects, table["en_template"], strict=True)
        )
    ]


def rows_of(
    table: pd.DataFrame, name: str, template: str, known: Sequence[tuple[str, ...]]
) -> list[Row]:
    """What the locator is told of each fact. name: the verbalisation; known: object forms of the other verbalisations, one tuple a fact."""
    english = table["en_obj_label"].where(
        table["en_obj_label"] != "", table.get("en_wikidata_label", "")
    )
    columns = (
        name_columns(name).sentence,
        "obj_label",
        "sub_label",
        "aliases",
        "en_sub_label",
        "obj_uri",
    )
    return [
        Row(
            sentence,
            label,
            subject,
            tuple(split_aliases(aliases)),
            english_object,
            english_subject,
            template,
            uri,
            forms,
        )
        for sentence, label, subject, aliases, english_subject, uri, english_object, forms in zip(
            *(table[column] for column in columns), english, known, strict=True
        )
    ]


def lines_of(table: pd.DataFrame, names: Iterable[str], which: str = "all") -> list[str]:
    """The sentences of these verbalisations, the object marked; behind them the status, where it is more than ``ok``.

    which: ``all``, ``failed`` (those without an object) or ``unsure`` (found without evidence from the object's name). A failed
    row shows the object's label too, and what its status means.
    """
    names = list(names)
    lines = []
    for row, cells in zip(table.index, table.to_dict("records"), strict=True):
        for name in names:
            sentence, prompt, form, _, status = (
                str(cells[column]) for column in name_columns(name) if column
            )
            wrong = objection(status)
            if which != "all" and not (wrong and is_usable(status) == (which == "unsure")):
                continue
            if is_usable(status):
                sentence = mark_span(sentence, len(prompt), len(prompt) + len(form))
            why = f"{status}: {EXPLAINED[wrong]}" if wrong in EXPLAINED else status
            label = f"   {cells['obj_label']}" if wrong else ""
            lines.append(
                f"{row:>4} {name:<10} {sentence}{label}" + ("" if status == OK else f"   [{why}]")
            )
    return lines
