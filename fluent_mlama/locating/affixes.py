"""Closed classes of grammar that are glued to a word: proclitics, particles, initial mutations.

Endings need no list: they are told by the common beginning (``similarity``). Beginnings do, since a common end alone
means little. The lists are grammar of the language, never words of any data.
"""

from __future__ import annotations

import re

_PROCLITICS = {
    "Arabic": re.compile(r"[وف]?[بکل]?"),
    "Hebrew": re.compile(r"ו?(?:כש|מש|ש)?[בכלמה]?"),
}
"""Conjunctions and prepositions (in Hebrew the article too) written as one with the next word."""

_KOREAN = re.compile(
    "(?:에게서|에게|에서의|에서|에는|에도|에|께서|께|한테서|한테|으로서|로서|으로써|로써|으로부터|로부터|으로의|로의|으로|로|부터|까지|"
    "처럼|보다|마다|밖에|조차|이나|나|이란|란|이라는|라는|이라고|라고|이라|라|와의|과의|와|과|랑|이랑|은|는|이|가|을|를|의|도|만)?"
    "(?:은|는|도|만|이며|며|이고|고|입니다|이었습니다|였습니다|이에요|예요|이었다|였다|이다|다|인|이었던|였던|이자|임)?$"
)

_KOREAN_REGIONS = ("특별자치시", "특별자치도", "광역시", "특별시", "시")
_KOREAN_REGION = re.compile(f"(?:{'|'.join(_KOREAN_REGIONS)})$")

_BRYTHONIC = (
    ("ngh", "c"),
    ("mh", "p"),
    ("nh", "t"),
    ("ng", "g"),
    ("dd", "d"),
    ("ch", "c"),
    ("ph", "p"),
    ("th", "t"),
    ("g", "c"),
    ("b", "p"),
    ("d", "t"),
    ("f", "b"),
    ("f", "m"),
    ("m", "b"),
    ("n", "d"),
    ("l", "ll"),
    ("r", "rh"),
    ("h", ""),
    ("v", "b"),
    ("v", "m"),
    ("", "g"),
)
_GOIDELIC = (
    ("mb", "b"),
    ("gc", "c"),
    ("nd", "d"),
    ("bhf", "f"),
    ("ng", "g"),
    ("bp", "p"),
    ("dt", "t"),
    ("ts", "s"),
    ("bh", "b"),
    ("ch", "c"),
    ("dh", "d"),
    ("fh", "f"),
    ("gh", "g"),
    ("mh", "m"),
    ("ph", "p"),
    ("sh", "s"),
    ("th", "t"),
    ("h", ""),
    ("n", ""),
    ("t", ""),
)
_MUTATIONS = {
    "cy": _BRYTHONIC,
    "br": _BRYTHONIC,
    "kw": _BRYTHONIC,
    "ga": _GOIDELIC,
    "gd": _GOIDELIC,
    "gv": _GOIDELIC,
}


def proclitic_length(word: str, name: str) -> int:
    """How many letters of ``word`` are proclitics before ``name``; 0 if it is not proclitics and the name."""
    length = len(word) - len(name)
    if not 0 < length <= 4 or len(name) < 2 or not word.endswith(name):
        return 0
    script = (
        "Arabic"
        if "\u0600" <= name[0] < "\u0780"
        else "Hebrew"
        if "\u0590" <= name[0] < "\u0600"
        else ""
    )
    pattern = _PROCLITICS.get(script)
    return length if pattern and pattern.fullmatch(word[:length]) else 0


def without_article(word: str) -> str:
    """An Arabic word without its article and what may stand before it (``بال``, ``لل``); other words as they are."""
    return re.sub(r"^[وف]?(?:[بک]?ال|لل)(?=\w{3})", "", word)


def particle_length(word: str, name: str) -> int:
    """How many letters of a Korean ``word`` are particles or the copula after ``name``."""
    length = len(word) - len(name)
    if length <= 0 or not is_korean(name) or not word.startswith(name):
        return 0
    return length if _KOREAN.fullmatch(word[len(name) :]) else 0


def is_korean(word: str) -> bool:
    """Whether the word ends in Hangul."""
    return "가" <= word[-1] <= "힣"


def regional_names(name: str) -> list[str]:
    """What a Korean place may be called otherwise: with a word for city or province written on to it, or without its own."""
    own = _KOREAN_REGION.search(name)
    core = name[: own.start()] if own and own.start() >= 2 else name
    return [
        other for other in (core, *(core + region for region in _KOREAN_REGIONS)) if other != name
    ]


def proclitic_rests(word: str) -> list[str]:
    """What may be left of an Arabic or Hebrew word when conjunctions and prepositions are taken off, two letters at least."""
    return [word[length:] for length in range(1, 4) if proclitic_length(word, word[length:])]


def unmutated(word: str, lang: str) -> list[str]:
    """The forms that a word of a Celtic language may have before mutation."""
    changes = _MUTATIONS.get(lang, ())
    return [
        radical + word[len(mutated) :]
        for mutated, radical in changes
        if word.startswith(mutated) and len(word) > len(mutated) + 1
    ]
