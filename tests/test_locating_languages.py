"""The locator on own sentences in many languages, row by row without fitting.

``locating_sentences.txt`` holds one a line: language, sentence with the object marked, object
label, subject label, English label. They were written for these tests by the rules of
docs/locating.md and use no published sentence.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from fluent_mlama.locating import Locator, Row


def _cases() -> dict[str, list[tuple[str, str, Row]]]:
    """For each language: prompt, object form and the row that holds them."""
    cases = defaultdict(list)
    for line in (
        Path(__file__).with_name("locating_sentences.txt").read_text(encoding="utf-8").splitlines()
    ):
        lang, marked, label, subject, english = line.split("|")
        before, _, rest = marked.partition("⟦")
        form, _, after = rest.partition("⟧")
        cases[lang].append(
            (before, form, Row(before + form + after, label, subject=subject, english=english))
        )
    return cases


CASES = _cases()


def test_there_are_many_languages() -> None:
    assert len(CASES) >= 60 and sum(map(len, CASES.values())) >= 220


@pytest.mark.parametrize("lang", CASES)
def test_the_object_is_found_in_every_language(lang: str) -> None:
    locator = Locator(lang)
    for prompt, form, row in CASES[lang]:
        outcome = locator.locate(row)
        assert outcome.found, (row.sentence, outcome)
        assert (outcome.prompt, outcome.object_form) == (prompt, form)
        assert outcome.prompt + outcome.object_form + outcome.tail == row.sentence
