"""Stanza as an option: its lemmas are used where it is there, and its lack is told. Stanza itself
is stood in for.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.locating import Locator, Row
from fluent_mlama.locating.similarity import stanza_lemmatiser

LEMMAS = {"Yötä": "Öinen|Yö", "Yöksi": None, "Yönä": "_"}


def _pipeline(code: str, **options: object) -> object:
    if code != "xx":
        raise FileNotFoundError("resources.json")
    assert options["download_method"] is None
    return lambda word: SimpleNamespace(
        sentences=[SimpleNamespace(words=[SimpleNamespace(lemma=LEMMAS.get(word, word))])]
    )


def test_its_lack_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stanza", None)
    with pytest.raises(UserError, match="stanza is not installed"):
        stanza_lemmatiser("fi")


def test_lemmas_help_and_missing_ones_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stanza", SimpleNamespace(Pipeline=_pipeline))
    with pytest.raises(UserError, match="no model for 'yy'"):
        stanza_lemmatiser("yy")
    lemmatise = stanza_lemmatiser("xx")
    assert (
        lemmatise("Yötä") == {"Öinen", "Yö"}
        and lemmatise("Yöksi") == lemmatise("Yönä") == frozenset()
    )
    row = Row("Mikko lauloi Yötä.", "Öinen")
    assert not Locator("xx").locate(row).found
    assert Locator("xx", lemmatise=lemmatise).locate(row).object_form == "Yötä"
