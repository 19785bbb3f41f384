"""What a model wrote, as an order of the options: numbered items, else pieces between commas, line ends or ">".

An option counts where it is first named. Whatever names no option is passed over; an answer that names none is no answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import regex
from rapidfuzz import fuzz

from fluent_mlama.languages import fold_case

Status = Literal["full", "partial", "none"]
ENGLISH = "en"
"""The language of the questions and of all options."""
FUZZY = 90.0
"""The least rapidfuzz ratio at which a misspelt name still is an option's, if it is so near to one option only."""

_NEXT_QUESTION = re.compile(r"(?:^|\s)Q:")
_NUMBER = re.compile(r"(?:^|(?<=\s))\(?\d{1,2}[.):]\s*(?=\D)")
_SEPARATORS = re.compile(r"\s*(?:[,;\n>→、，；،؛]|(?<=\w)\s+-\s+(?=\w))\s*")
_REMARK = re.compile(r"\s+[-–—]\s+|\s*[:(\n]")
_AROUND = " \t\n*_\"'“”.,;"
_NO_LETTER = regex.compile(r"[^\w\p{M}]+|_+")
_ACCENTS = regex.compile(
    r"(?<=[\p{Latin}\p{Greek}\p{Cyrillic}]\p{M}*)\p{M}|[\u064b-\u0652\u05b0-\u05bc\u05c1\u05c2]"
)
"""Marks that many leave out; in other scripts they are vowels (होली) or other consonants (パ beside バ)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The options that were named, in order, and whether that is all of them."""

    order: tuple[str, ...]
    status: Status


def parse(text: str, options: Sequence[str]) -> Answer:
    """The order in a written answer; text behind the next "Q:" belongs to another question."""
    text = _NEXT_QUESTION.split(text, maxsplit=1)[0]
    order = _unique(_numbered(text, options)) or _unique(_pieces(text, options))
    status: Status = "full" if len(order) == len(options) else "partial" if order else "none"
    return Answer(tuple(order), status)


def plain(text: str) -> str:
    """Folded case, no accents or vowel points, no punctuation: how names are compared."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", fold_case(text, ENGLISH)))
    return " ".join(_NO_LETTER.sub(" ", bare.replace("'", "").replace("’", "")).split())


def named(readings: Sequence[str], options: Sequence[str]) -> tuple[int, str] | None:
    """Which reading of one place in an answer names an option, and which one: the first that is one, else the nearest to one.

    Nearness comes last, or a long name would swallow the short one beside it ("Holi, Independence and Republic Day").
    """
    for place, text in enumerate(readings):
        found = _exact(text, options)
        if found is not None:
            return place, found
    near = [
        (ratio, -place, name)
        for place, text in enumerate(readings)
        for ratio, name in [_nearest(text, options)]
        if name
    ]
    if not near:
        return None
    _, place, name = max(near)
    return -place, name


def _exact(text: str, options: Sequence[str]) -> str | None:
    """The option that this text is: as it stands (C++ is not C), else without marks, if no other option is the same then."""
    exact = fold_case(text.strip(_AROUND), ENGLISH)
    for option in options:
        if fold_case(option.strip(_AROUND), ENGLISH) == exact:
            return option
    found = plain(text)
    same = [option for option in options if found and plain(option) == found]
    return same[0] if len(same) == 1 else None


def _nearest(text: str, options: Sequence[str]) -> tuple[float, str]:
    """The one option that this text nearly is, and how nearly; "" where it is near to none or to several."""
    found = plain(text)
    ratios = [(fuzz.ratio(plain(option), found), option) for option in options] if found else []
    near = [one for one in ratios if one[0] >= FUZZY]
    return near[0] if len(near) == 1 else (0.0, "")


def _numbered(text: str, options: Sequence[str]) -> Iterator[str]:
    """Options of a numbered list; an item may go on with a remark ("1. Holi: the festival of colours")."""
    for part in _NUMBER.split(text)[1:]:
        found = named(
            [part, *(part[: remark.start()] for remark in reversed(list(_REMARK.finditer(part))))],
            options,
        )
        if found is not None:
            yield found[1]


def _pieces(text: str, options: Sequence[str]) -> Iterator[str]:
    """Options between separators; a name that holds separators itself ("Martin Luther King, Jr.") spans several pieces."""
    pieces = [re.sub(r"^(?:and|then)\s+", "", piece.strip()) for piece in _SEPARATORS.split(text)]
    longest = max(len(_SEPARATORS.split(option)) for option in options)
    place = 0
    while place < len(pieces):
        lengths = range(min(longest, len(pieces) - place), 0, -1)
        found = named([", ".join(pieces[place : place + length]) for length in lengths], options)
        place += 1 if found is None else lengths[found[0]]
        if found is not None:
            yield found[1]


def _unique(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(names))
