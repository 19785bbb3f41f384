"""The locator on own sentences in many languages, row by row without fitting."""

from __future__ import annotations

import pytest

from fluent.locating import Locator, Row
from tests.locating_sentences import cases

LANGUAGES = sorted({case[0] for case in cases()})


@pytest.mark.parametrize("lang", LANGUAGES)
def test_object_form_is_found_in_every_language(lang: str) -> None:
    locator = Locator(lang)
    for _, sentence, form, label, subject, english in (case for case in cases() if case[0] == lang):
        outcome = locator.locate(Row(sentence, label, subject=subject, english=english))
        assert outcome.found, (sentence, outcome)
        assert outcome.object_form == form
        assert outcome.prompt + outcome.object_form + outcome.tail == sentence
