"""Sentences as words that can be compared, each word still knowing its place in the original text.

Nothing here depends on the language: words are told apart by their script, so that a Latin name in
a Chinese sentence is one word and each Han character of it is one as well. Offsets are always those
of the text as it came in, whatever its Unicode normalisation form.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from anyascii import anyascii

_IGNORABLE = "\u00ad\u034f\u061c\u0640\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"


def _mark_ranges() -> str:
    """All combining marks as the inside of a character class (``\\w`` leaves them out)."""
    marks = [code for code in range(0x300, 0x1F000) if unicodedata.category(chr(code))[0] == "M"]
    ranges: list[list[int]] = []
    for code in marks:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_INVISIBLE = "".join(
    letter for letter in map(chr, range(0x10000)) if re.match(f"[{_IGNORABLE}]", letter)
)
_MARKS = _mark_ranges() + _IGNORABLE
_UNSPACED = (
    "\u0e01-\u0e30\u0e32-\u0e33\u0e40-\u0e46\u0e81-\u0ec6\u1000-\u109f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: scripts that set no blank between words."""

_WORD = re.compile(f"[{_UNSPACED}][{_MARKS}]*|(?:(?![{_UNSPACED}])[^\\W_][{_MARKS}]*)+[+#]*")
_DROPPED = re.compile(f"[{_IGNORABLE}\u0307\u02bb-\u02bf\u05b0-\u05c7\u064b-\u065f\u0670]")
# Letters that are spelt in several ways, as one. A row each: in one line they would run both ways.
_SAME = str.maketrans(
    {
        "ı": "i",
        "ك": "ک",
        "ي": "ی",
        "ى": "ی",
        "أ": "ا",
        "إ": "ا",
        "آ": "ا",
        "ٱ": "ا",
        "ة": "ه",
        "ۀ": "ه",
        "ё": "е",
    }
)
_PLAIN = str.maketrans(
    {**dict(zip("łđðøəŋħ", "lddoenh", strict=True)), "æ": "ae", "œ": "oe", "þ": "th"}
)
_LONGEST_ENDING = 5
_BREAKS = re.compile(r"\s[-–—−]+\s|[—―:：]")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text.

    start, end: offsets in the original text; text: folded for comparison; bare: without diacritics
    as well.
    gap: the original characters between the word before and this one; capital: whether it begins
    with a capital.
    unspaced: whether its script sets no blanks (then the word is one character).
    """

    start: int
    end: int
    text: str
    bare: str
    gap: str
    capital: bool
    unspaced: bool

    @property
    def is_ending(self) -> bool:
        """Whether it may be an ending after a hyphen or apostrophe: "Newark-a", "Ankara'da"."""
        return (
            self.glued
            and not self.capital
            and not self.unspaced
            and len(self.text) <= _LONGEST_ENDING
        )

    @property
    def hyphenated(self) -> bool:
        """Whether a hyphen, or a dash without blanks, alone parts it from the word before."""
        return len(self.gap) == 1 and self.gap in "-‐‑–"

    @property
    def glued(self) -> bool:
        """Whether a hyphen or apostrophe alone parts it from the word before."""
        return len(self.gap) == 1 and self.gap in "-‐‑'’ʼ`´׳-־"


@lru_cache(maxsize=200_000)
def fold(text: str) -> str:
    """For comparison: NFKC, folded case, no invisible marks, variants of a letter as one."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return sys.intern(_DROPPED.sub("", folded).translate(_SAME))


@lru_cache(maxsize=200_000)
def bare(folded: str) -> str:
    """A folded word without diacritics, in alphabets where they are not letters of their own."""
    if folded.isascii() or not (folded[:1] < "\u0530" or "\u1e00" <= folded[:1] < "\u2000"):
        return folded
    letters = unicodedata.normalize("NFD", folded)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).translate(
        _PLAIN
    )


@lru_cache(maxsize=200_000)
def romanise(folded: str) -> str:
    """A folded word in Latin letters."""
    return anyascii(folded).lower()


def split_words(text: str) -> list[Word]:
    """The words of a text in order."""
    words: list[Word] = []
    previous = 0
    for match in _WORD.finditer(text):
        start, end = match.span()
        surface = match.group()
        folded = fold(surface)
        if folded:
            unspaced = surface[0] > "\u0e00" and re.match(f"[{_UNSPACED}]", surface) is not None
            # A direction mark after a name is not part of it.
            seen = len(surface.rstrip(_INVISIBLE))
            gap = _DROPPED.sub("", text[previous:start])
            words.append(
                Word(
                    start,
                    start + seen,
                    folded,
                    bare(folded),
                    gap,
                    surface[0] != surface[0].lower(),
                    unspaced,
                )
            )
            previous = end
    return words


def is_break(gap: str) -> bool:
    """Whether the gap before a word holds a dash or colon: "is" in many languages."""
    return len(gap) > 1 and _BREAKS.search(gap) is not None


def letters_before(surface: str, count: int) -> int:
    """How many characters of the original word make up its first ``count`` folded ones."""
    wanted = fold(surface)[:count]
    return max(
        (taken for taken in range(len(surface) + 1) if fold(surface[:taken]) == wanted),
        default=len(surface),
    )
