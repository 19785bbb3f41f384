"""Text as it should have come: no invisible characters, no wrapping, one sentence. Pure functions on strings."""

from __future__ import annotations

import html
import unicodedata
from functools import lru_cache

import opencc
import regex

from fluent_mlama.languages import fold_case, is_known, language

_JOINERS = "\u200c\u200d"
_JOINED_SCRIPTS = {"Arabic", "Devanagari", "Bengali", "Tamil"}
_ENTITY = regex.compile(r"&(?:#\d+|#[xX][\da-fA-F]+|\p{Latin}[\p{Latin}\d]*);")
_MOST_ESCAPES = 3
_BLANK = regex.compile(r"[\p{Zs}\t\v\f]")
_HIDDEN = regex.compile(r"[\p{Cf}\p{Cc}\p{Co}\uFFFD]")

_QUOTES = tuple(
    pair.split()
    for pair in ("« »", "„ “", "„ ”", "“ ”", '" "', "「 」", "『 』", "‘ ’", "' '", "` `", "** **")
)

_LEAKS = (
    "Translation", "Translated sentence", "Sentence", "Target sentence", "Answer", "Перевод", "Переклад", "Превод", "Překlad", "Preklad",
    "Prijevod", "Prevod", "Traducción", "Traduction", "Tradução", "Traduzione", "Traducció", "Übersetzung", "Oversættelse", "Översättning",
    "Vertaling", "Tłumaczenie", "Fordítás", "Käännös", "Çeviri", "Terjemahan", "Bản dịch", "翻译", "译文", "翻訳", "번역",
    "ترجمة", "ترجمه", "תרגום",
    "अनुवाद",
)  # fmt: skip
"""What models write before a translation; the first is the key of the published few-shot text."""


def clean_characters(text: str, target: str) -> str:
    """NFC, HTML entities resolved, odd blanks as plain ones, invisible and control characters gone (line ends stay).

    Zero-width joiners stay in the scripts that spell with them (Persian, Hindi …).
    """
    for _ in range(_MOST_ESCAPES):  # "&amp;quot;": escaped more than once on its way
        text = _ENTITY.sub(lambda match: html.unescape(match.group()), text)
    text = regex.sub(r"\r\n?|[\u2028\u2029\u0085]", "\n", text)
    kept = _JOINERS if is_known(target) and _JOINED_SCRIPTS & set(language(target).scripts) else ""
    text = _HIDDEN.sub(lambda match: match.group() if match.group() in "\n\t" + kept else "", text)
    return unicodedata.normalize("NFC", _BLANK.sub(" ", text))


@lru_cache
def own_letters(target: str) -> regex.Pattern[str]:
    """Matches a letter (or Chinese sign) of the scripts that the language is written in."""
    return regex.compile("|".join(rf"\p{{Script={script}}}" for script in language(target).scripts))


def is_written_in(text: str, target: str) -> bool:
    """Whether some of it is in a script of the language ("JR東日本" is Japanese); what has no letters is in every script."""
    return bool(own_letters(target).search(text)) or not regex.search(r"\p{L}", text)


def alphanumeric(text: str, lang: str) -> str:
    """The letters, marks and digits only, case folded: equal for texts that differ in stops and blanks."""
    return "".join(regex.findall(r"[\p{L}\p{M}\p{N}]", fold_case(text, lang)))


def last_translation(text: str, target: str) -> str:
    """What follows the last line-initial "Translation:" (in any of the languages models put it, or "Russian:"); else the text."""
    name = language(target).name if is_known(target) else ""
    heads = "|".join(regex.escape(head) for head in (*_LEAKS, name) if head)
    leaks = list(
        regex.finditer(
            rf"^[\s*_#-]*(?:{heads})[\s*_]*[:：][\s*_]*", text, regex.IGNORECASE | regex.MULTILINE
        )
    )
    return text[leaks[-1].end() :].strip() if leaks else text


def unwrap(text: str) -> str:
    """The sentence without quotes around the whole of it; quotes around a name at either end stay."""
    for opening, closing in _QUOTES:
        inside = text[len(opening) : -len(closing)]
        wrapped = (
            len(text) > len(opening) + len(closing)
            and text.startswith(opening)
            and text.endswith(closing)
        )
        if (
            wrapped
            and opening not in inside
            and closing not in inside
            and regex.search(r"[.!?。！？।۔։…]\s*$", inside)
        ):
            return inside.strip()
    return text


def simplify(text: str, lang: str) -> str:
    """Chinese in simplified script (OpenCC t2s); any other language as it is."""
    return _converter().convert(text) if lang == "zh" else text


@lru_cache(maxsize=1)
def _converter() -> opencc.OpenCC:
    return opencc.OpenCC("t2s")
