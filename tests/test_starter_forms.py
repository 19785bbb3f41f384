"""Every inflected form against a dictionary: pymorphy3 for Russian and Ukrainian, simplemma
elsewhere.

What the dictionaries do not know (mostly foreign names) is listed in
``fluent_mlama/data/phrasebook/exceptions.tsv``, each of which was judged by reading; the list may
hold nothing that the dictionaries do know.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import pymorphy3
import pytest
import simplemma

from fluent_mlama.data import DATA
from fluent_mlama.translating.phrasebook import Phrasebook, read_cells
from fluent_mlama.translating.phrasebook_check import languages

CASES = {
    "gen": {"gent", "gen2"},
    "dat": {"datv"},
    "loc": {"loct", "loc2"},
    "ins": {"ablt"},
    "acc": {"accs"},
}
INFLECTING = [code for code in languages() if Phrasebook(code).language.lemmatiser and code != "en"]


@cache
def analyser(lang: str) -> pymorphy3.MorphAnalyzer:
    return pymorphy3.MorphAnalyzer(lang=lang)


def in_dictionary(lang: str, column: str, form: str, label: str) -> bool:
    """pymorphy3: some reading of the form has a lemma of the label's word and the column's case."""
    lemmas = {reading.normal_form for reading in analyser(lang).parse(label)}
    readings = [reading for reading in analyser(lang).parse(form) if reading.normal_form in lemmas]
    return any(column not in CASES or reading.tag.case in CASES[column] for reading in readings)


def same_lemma(lang: str, column: str, form: str, label: str) -> bool:
    """simplemma: form and label have one lemma."""
    code = Phrasebook(lang).language.lemmatiser or lang
    return simplemma.lemmatize(form, code).casefold() == simplemma.lemmatize(label, code).casefold()


def unknown_forms(
    lang: str, is_form: Callable[[str, str, str, str], bool]
) -> set[tuple[str, str, str]]:
    """(column, label, form) of the forms that are no form of the label's words, word by word."""
    unknown = set()
    for entry in Phrasebook(lang).entries.values():
        words = re.findall(r"\w+", entry.label)
        for column, form in entry.forms.items():
            inflected = re.findall(r"\w+", form.text)
            pairs = [
                (a, b)
                for a, b in zip(inflected, words, strict=False)
                if a.casefold() != b.casefold()
            ]
            if len(inflected) != len(words) or not all(
                is_form(lang, column, a, b) for a, b in pairs
            ):
                unknown.add((column, entry.label, form.text))
    return unknown


@pytest.mark.parametrize("lang", INFLECTING)
def test_forms_are_in_the_dictionary_or_listed(lang: str) -> None:
    listed = {
        (row["column"], row["label"], row["form"])
        for row in read_cells(DATA / "phrasebook" / "exceptions.tsv")
        if row["lang"] == lang
    }
    assert unknown_forms(lang, in_dictionary if lang in {"ru", "uk"} else same_lemma) == listed


def test_the_dictionary_check_sees_a_wrong_case_and_a_wrong_word() -> None:
    assert in_dictionary("ru", "loc", "Варшаве", "Варшава")
    assert not in_dictionary("ru", "loc", "Варшавы", "Варшава")
    assert not in_dictionary("ru", "gen", "Праги", "Варшава")
    assert same_lemma("cs", "loc", "Praze", "Praha")
    assert not same_lemma("cs", "loc", "Brně", "Praha")
