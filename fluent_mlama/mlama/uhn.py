"""LAMA-UHN: facts that a name gives away are left out (Poerner et al. 2020, E-BERT, section 5.1).

String filter: the object is part of the subject, letter case aside. Name filter, for places of birth
and death, country, native and spoken language: a masked model asked "Jean is a common name in the
following language : [MASK] ." names the object among its three likeliest words. Both are computed
on English and hold for every language by (relation, lineid).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fluent_mlama.console import UserError, plain_number
from fluent_mlama.files import read_table
from fluent_mlama.languages import fold_case
from fluent_mlama.mlama.measures import ENGLISH
from fluent_mlama.records.facts import Triple

NOUNS = {
    "place_of_birth": "city",
    "place_of_death": "city",
    "P19": "city",
    "P20": "city",
    "P27": "country",
    "P103": "language",
    "P1412": "language",
}
FILTERS = ("string", "name")
LIKELIEST = 3

Likeliest = Callable[[Sequence[tuple[str, str]], int], list[list[str]]]
"""``MaskedScorer.likeliest``: texts around a mask -> their likeliest tokens."""


def name_question(word: str, noun: str) -> tuple[str, str]:
    """The text left and right of the mask."""
    return f"{word} is a common name in the following {noun} : ", " ."


def uhn_rows(
    facts: Mapping[str, Mapping[int, Triple]],
    filters: Sequence[str],
    likeliest: Likeliest | None = None,
) -> pd.DataFrame:
    """The triples to leave out: columns relation, lineid, filter, sub_label, obj_label. facts:
    English, relation -> lineid -> triple.

    ``UserError``: an unknown filter, or the name filter without a model.
    """
    unknown = [one for one in filters if one not in FILTERS]
    if unknown or not filters:
        raise UserError(f"--filters {','.join(filters)}: choose from {', '.join(FILTERS)}")
    rows: list[tuple[str, int, str, str, str]] = []
    for relation, triples in facts.items():
        guessed = _guessed(relation, triples, likeliest) if "name" in filters else {}
        for lineid, triple in triples.items():
            found = ""
            label = fold_case(triple.obj_label, ENGLISH)
            if "string" in filters and label in fold_case(triple.sub_label, ENGLISH):
                found = "string"
            elif any(label in guessed.get(word, ()) for word in triple.sub_label.split()):
                found = "name"
            if found:
                rows.append((relation, lineid, found, triple.sub_label, triple.obj_label))
    return pd.DataFrame(rows, columns=["relation", "lineid", "filter", "sub_label", "obj_label"])


def _guessed(
    relation: str, triples: Mapping[int, Triple], likeliest: Likeliest | None
) -> dict[str, set[str]]:
    """word of a subject -> what the model takes it to be a common name in, casefolded."""
    if relation not in NOUNS:
        return {}
    if likeliest is None:
        raise UserError(
            "the name filter asks a masked model; give one with --names-model, or leave --filters "
            "string"
        )
    words = sorted({word for triple in triples.values() for word in triple.sub_label.split()})
    answers = likeliest([name_question(word, NOUNS[relation]) for word in words], LIKELIEST)
    return {
        word: {fold_case(token, ENGLISH) for token in tokens}
        for word, tokens in zip(words, answers, strict=True)
    }


def read_uhn_list(path: Path) -> set[tuple[str, int]]:
    """(relation, lineid) from a tab-separated list with these two columns; ``UserError`` names the
    row that has none.
    """
    try:
        table = read_table(path.read_bytes(), str(path), allow_no_rows=True)
    except FileNotFoundError:
        raise UserError(f"no list {path}; make one with: fluent-mlama mlama uhn") from None
    if not {"relation", "lineid"} <= set(table.columns):
        raise UserError(f"{path}: the header must name the columns relation and lineid")
    keys = set()
    for number, (relation, lineid) in enumerate(
        zip(table["relation"], table["lineid"], strict=True), start=2
    ):
        line_number = plain_number(lineid)
        if line_number is None:
            raise UserError(f"{path}: row {number}: lineid '{lineid}' is no whole number")
        keys.add((relation, line_number))
    return keys
