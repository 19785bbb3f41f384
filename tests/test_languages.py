"""Case by language: what counts as the same text, and how a sentence begins."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from fluent_mlama.languages import capitalize, fold_case


@pytest.mark.parametrize(
    ("lang", "one", "other"),
    [
        ("tr", "DİYARBAKIR", "Diyarbakır"),
        ("tr", "İSTANBUL", "istanbul"),
        ("tr", "I\u0307zmir", "izmir"),  # the capital letter in two code points
        ("tr", "MİLLÎ", "millî"),
        ("az", "BAKI", "Bakı"),
        ("crh", "QIRIM", "Qırım"),
        ("kk-latn", "QAZAQSTANDIÑ", "qazaqstandıñ"),
        ("es", "İzmir", "i̇zmir"),
        ("es", "İzmir", "izmir"),
        ("lt", "JÌS", "ji\u0307\u0300s"),  # Lithuanian keeps the dot under an accent
        ("lt", "Į̃", "į\u0307\u0303"),
        ("de", "STRASSE", "Straße"),
        ("de", "STRAẞE", "Straße"),
        ("el", "ΟΔΟΣ", "οδός"),
        ("el", "ΜΑΪΟΣ", "Μάιος"),
        ("el", "ΑΫΛΟΣ", "άυλος"),
        ("el", "ΠΡΟΪΟΝ", "προϊόν"),
        ("el", "ΕΥΒΟΙΑ", "Εύβοια"),
        ("el", "Πάρις", "ΠΆΡΙΣ"),
        ("nl", "IJMUIDEN", "ĳmuiden"),
        ("hr", "ǅep", "DŽEP"),
        ("sr", "ǈubljana", "ljubljana"),
        ("ka", "ᲗᲑᲘᲚᲘᲡᲘ", "თბილისი"),
        ("hy", "ԵՐԵՎԱՆ", "Երևան"),
        ("chr", "ꮳꮃꭹ", "ᏣᎳᎩ"),
        ("vi", "HA\u0300 NO\u0323\u0302I", "Hà Nội"),
        ("fr", "OEUVRE ﬁne", "oeuvre FINE"),
        ("xx", "K Ångström", "k ångström"),
    ],
)
def test_the_same_text_in_another_case(lang: str, one: str, other: str) -> None:
    assert fold_case(one, lang) == fold_case(other, lang)


@pytest.mark.parametrize(
    ("lang", "one", "other"),
    [
        ("tr", "IĞDIR", "İĞDİR"),
        ("tr", "kır", "kir"),
        ("en", "Diyarbakır", "Diyarbakir"),
        ("en", "Πάρις", "Παρις"),
        ("el", "ΜΑΙΟΣ", "Μάιος"),
        ("lt", "ė", "e"),
        ("es", "año", "ano"),
        ("de", "schon", "schön"),
        ("ru", "ё", "е"),
    ],
)
def test_letters_and_accents_are_no_case(lang: str, one: str, other: str) -> None:
    assert fold_case(one, lang) != fold_case(other, lang)


@pytest.mark.parametrize("lang", ["en", "tr", "hy", "el"])
def test_folding_is_final_and_knows_every_case_of_every_character(lang: str) -> None:
    otherwise = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in {"Cn", "Co", "Cs"}:  # no character has this code
            continue
        folded = fold_case(character, lang)
        assert fold_case(folded, lang) == folded == unicodedata.normalize("NFC", folded), hex(code)
        if any(
            fold_case(cased, lang) != folded
            for cased in (character.upper(), character.lower(), character.title())
        ):
            otherwise.append(character)
    # Python's own cases are those of English: ı has the capital I, and so have ligatures with an i in capitals.
    assert otherwise == {"tr": ["I", "i", "ﬁ", "ﬃ"]}.get(lang, ["ı"])


@pytest.mark.parametrize(
    ("lang", "text", "capital"),
    [
        ("tr", "istanbul", "İstanbul"),
        ("en", "istanbul", "Istanbul"),
        ("nl", "ijsland", "IJsland"),
        ("ka", "თბილისი", "თბილისი"),
        ("hr", "ǆep", "ǅep"),
        ("ru", "он Родился", "Он Родился"),
        ("zh", "他", "他"),
        ("en", "", ""),
    ],
)
def test_a_sentence_begins_with_a_capital(lang: str, text: str, capital: str) -> None:
    assert capitalize(text, lang) == capital
