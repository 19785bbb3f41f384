"""Languages of mLAMA: codes, names, scripts and how their sentences are set.

The 53 codes are mLAMA's (Kassner, Dufter and Schütze 2021). A few codes that other data sets use
are known as well, so that a new language needs no change in other rooms.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from fluent_mlama.console import UserError


@dataclass(frozen=True, slots=True)
class Language:
    """One language as the rooms need it.

    scripts: Unicode script names that its words are written in, the native one first.
    spaces: whether words are separated by white space (not in zh, ja, th).
    full_stop: the mark that ends a sentence.
    lemmatiser: simplemma's code for it, or None where simplemma has none.
    """

    code: str
    name: str
    scripts: tuple[str, ...]
    spaces: bool = True
    full_stop: str = "."
    lemmatiser: str | None = None


_LATIN, _CYRILLIC, _ARABIC = ("Latin",), ("Cyrillic",), ("Arabic",)

_ROWS: tuple[Language, ...] = (
    Language("af", "Afrikaans", _LATIN),
    Language("ar", "Arabic", _ARABIC, lemmatiser="ar"),
    Language("az", "Azerbaijani", _LATIN),
    Language("be", "Belarusian", _CYRILLIC),
    Language("bg", "Bulgarian", _CYRILLIC, lemmatiser="bg"),
    Language("bn", "Bengali", ("Bengali",), full_stop="।"),
    Language("ca", "Catalan", _LATIN, lemmatiser="ca"),
    Language("ceb", "Cebuano", _LATIN),
    Language("cs", "Czech", _LATIN, lemmatiser="cs"),
    Language("cy", "Welsh", _LATIN, lemmatiser="cy"),
    Language("da", "Danish", _LATIN, lemmatiser="da"),
    Language("de", "German", _LATIN, lemmatiser="de"),
    Language("el", "Greek", ("Greek",), lemmatiser="el"),
    Language("en", "English", _LATIN, lemmatiser="en"),
    Language("es", "Spanish", _LATIN, lemmatiser="es"),
    Language("et", "Estonian", _LATIN, lemmatiser="et"),
    Language("eu", "Basque", _LATIN),
    Language("fa", "Persian", _ARABIC, lemmatiser="fa"),
    Language("fi", "Finnish", _LATIN, lemmatiser="fi"),
    Language("fr", "French", _LATIN, lemmatiser="fr"),
    Language("ga", "Irish", _LATIN, lemmatiser="ga"),
    Language("gl", "Galician", _LATIN, lemmatiser="gl"),
    Language("he", "Hebrew", ("Hebrew",), lemmatiser="he"),
    Language("hi", "Hindi", ("Devanagari",), full_stop="।", lemmatiser="hi"),
    Language("hr", "Croatian", _LATIN, lemmatiser="hbs"),
    Language("hu", "Hungarian", _LATIN, lemmatiser="hu"),
    Language("hy", "Armenian", ("Armenian",), full_stop="։", lemmatiser="hy"),
    Language("id", "Indonesian", _LATIN, lemmatiser="id"),
    Language("it", "Italian", _LATIN, lemmatiser="it"),
    Language("ja", "Japanese", ("Han", "Hiragana", "Katakana"), spaces=False, full_stop="。"),
    Language("ka", "Georgian", ("Georgian",), lemmatiser="ka"),
    Language("ko", "Korean", ("Hangul",)),
    Language("la", "Latin", _LATIN, lemmatiser="la"),
    Language("lt", "Lithuanian", _LATIN, lemmatiser="lt"),
    Language("lv", "Latvian", _LATIN, lemmatiser="lv"),
    Language("ms", "Malay", _LATIN, lemmatiser="ms"),
    Language("nl", "Dutch", _LATIN, lemmatiser="nl"),
    Language("pl", "Polish", _LATIN, lemmatiser="pl"),
    Language("pt", "Portuguese", _LATIN, lemmatiser="pt"),
    Language("ro", "Romanian", _LATIN, lemmatiser="ro"),
    Language("ru", "Russian", _CYRILLIC, lemmatiser="ru"),
    Language("sk", "Slovak", _LATIN, lemmatiser="sk"),
    Language("sl", "Slovenian", _LATIN, lemmatiser="sl"),
    Language("sq", "Albanian", _LATIN, lemmatiser="sq"),
    Language("sr", "Serbian", ("Cyrillic", "Latin"), lemmatiser="hbs"),
    Language("sv", "Swedish", _LATIN, lemmatiser="sv"),
    Language("ta", "Tamil", ("Tamil",)),
    Language("th", "Thai", ("Thai",), spaces=False, full_stop=""),
    Language("tr", "Turkish", _LATIN, lemmatiser="tr"),
    Language("uk", "Ukrainian", _CYRILLIC, lemmatiser="uk"),
    Language("ur", "Urdu", _ARABIC, full_stop="۔"),
    Language("vi", "Vietnamese", _LATIN),
    Language("zh", "Chinese", ("Han",), spaces=False, full_stop="。"),
)

LANGUAGES: dict[str, Language] = {row.code: row for row in _ROWS}
OFFICIAL_LANGUAGES: tuple[str, ...] = tuple(LANGUAGES)
"""mLAMA's 53 language codes, in alphabetical order."""

_MORE: tuple[Language, ...] = (
    Language("fil", "Filipino", _LATIN),
    Language("is", "Icelandic", _LATIN, lemmatiser="is"),
    Language("jv", "Javanese", _LATIN),
    Language("mk", "Macedonian", _CYRILLIC, lemmatiser="mk"),
    Language("nb", "Norwegian Bokmål", _LATIN, lemmatiser="nb"),
    Language("no", "Norwegian", _LATIN, lemmatiser="nb"),
    Language("nn", "Norwegian Nynorsk", _LATIN, lemmatiser="nn"),
    Language("sw", "Swahili", _LATIN, lemmatiser="sw"),
    Language("tl", "Tagalog", _LATIN, lemmatiser="tl"),
)
_KNOWN: dict[str, Language] = LANGUAGES | {row.code: row for row in _MORE}


def language(code: str) -> Language:
    """The language with this code; a code we know nothing of is a ``UserError`` that names the
    known ones.
    """
    try:
        return _KNOWN[code]
    except KeyError:
        raise UserError(f"unknown language '{code}': choose from {', '.join(_KNOWN)}") from None


def is_known(code: str) -> bool:
    """Whether ``language`` knows this code."""
    return code in _KNOWN


_DOTLESS_I = frozenset({"az", "crh", "crh-latn", "gag", "kaa", "kk-latn", "tr", "tt-latn"})
"""Languages in which I is the capital of ı, and İ that of i."""
_SOFT_DOT = re.compile("([ij][\u0316-\u0333]*)\u0307")
"""A dot above i or j, which have one already; marks below the letter sort before it."""
_GREEK_ACCENT = re.compile("[\u0300\u0301\u0313\u0314\u0342]")
_HIATUS = re.compile("(?<=[αεο]\u0301)([ιυ])(?!\u0308)")
"""Greek capitals have no accents, and a diaeresis where the accent alone said that two vowels are
apart: άι, ΑΪ.
"""
_DIGRAPHS = str.maketrans({"ĳ": "ij", "ǆ": "dž", "ǉ": "lj", "ǌ": "nj"})


def fold_case(text: str, lang: str) -> str:
    """The text for comparison regardless of case: full Unicode case folding by language, in NFC.

    The folded text can be longer or shorter than the text, so offsets do not carry over. Accents
    are kept, since they make other letters, except in Greek, whose capitals have none. lang: a
    language code, which need not be one that ``language`` knows.
    """
    if lang in _DOTLESS_I:
        # Composed first, so that İ is one character. Î and Í are accented forms of i here as well.
        text = unicodedata.normalize("NFC", text).replace("I", "ı")
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFD", text).casefold()
    if lang == "el":
        folded = _GREEK_ACCENT.sub("", _HIATUS.sub("\\1\u0308", folded))
    folded = unicodedata.normalize("NFC", _SOFT_DOT.sub(r"\1", folded).translate(_DIGRAPHS))
    # Armenian և is the ligature of եւ, but today's capitals spell it out as ԵՎ.
    return folded.replace("եվ", "եւ") if lang == "hy" else folded


def capitalize(text: str, lang: str) -> str:
    """The text with a capital first letter, as at the beginning of a sentence; the rest stays as it
    is.
    """
    if lang in _DOTLESS_I and text.startswith("i"):
        return "İ" + text[1:]
    if lang == "nl" and text.startswith("ij"):
        return "IJ" + text[2:]
    # Title case, not upper case: the latter has ǄEP for ǆep and all-capital letters for Georgian.
    return text[:1].title() + text[1:]
