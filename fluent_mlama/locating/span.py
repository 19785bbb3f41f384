"""From matched words to the characters of the object: endings and category words in, quotes and prepositions out."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from fluent_mlama.locating.forms import Categories, is_legal_word, legal_words
from fluent_mlama.locating.matching import Match
from fluent_mlama.locating.result import Row
from fluent_mlama.locating.similarity import Similarity
from fluent_mlama.locating.text import Word, letters_before, split_words
from fluent_mlama.locating.titles import titles

_LONGEST_PREFIX = 3
_CLOSING = ".!?。…"
_LEADING = tuple("'’¡¿")
_QUOTES = tuple(
    (pair[0], pair[1])
    for pair in ("«»", "„“", "“”", "‚‘", "‘’", "‹›", "《》", "「」", "『』", "()", "（）", '""')
)


def widen(
    row: Row, words: Sequence[Word], match: Match, similarity: Similarity, categories: Categories
) -> tuple[int, int]:
    """Start and end, in characters of the row's sentence, of the object that the match stands for."""
    first, last = match.first, match.last
    if match.form is not None and _is_article(match.form.words[0], words[first:last]):
        first += 1
    if not match.trail and last < len(words) and has_ending(words, last, similarity):
        last += 1
    if (
        first
        and not match.lead
        and words[first].glued
        and words[first].gap in "-‐‑"
        and is_prefix(words[first - 1])
    ):
        first -= 1
    first, last = _with_category(row, words, first, last, similarity, categories)
    last = _with_legal_form(row, words, last, similarity)
    first, last = with_title(words, first, last, similarity)
    start, end = words[first].start, words[last - 1].end
    if match.lead and first == match.first:
        start += letters_before(row.sentence[start : words[first].end], match.lead)
    if match.trail and last == match.last:
        surface = row.sentence[words[last - 1].start : end]
        end = words[last - 1].start + letters_before(
            surface, len(words[last - 1].text) - match.trail
        )
    if _has_own_stop(row, words, match, last, end):
        end += 1
    if (
        match.form is not None
        and match.form.text[:1] in _LEADING
        and row.sentence[max(start - 1, 0) : start] == match.form.text[:1]
    ):
        start -= 1
    return _balanced(row.sentence, start, end)


def has_ending(words: Sequence[Word], place: int, similarity: Similarity) -> bool:
    """Whether the word at ``place`` is an ending of the one before ("NATO-a") and no word itself ("Praha-západ")."""
    word = words[place]
    return word.is_ending and not (
        word.hyphenated and len(word.text) > 2 and similarity.is_known(word.text)
    )


def _has_own_stop(row: Row, words: Sequence[Word], match: Match, last: int, end: int) -> bool:
    """Whether the stop behind the object is the name's own ("Co.", "Yahoo!"), not the sentence's."""
    stop = unicodedata.normalize("NFKC", row.sentence[end : end + 1])
    if not stop or stop not in _CLOSING:
        return False
    form = match.form
    if (
        form is not None
        and words[last - 1].text == form.words[-1].text
        and unicodedata.normalize("NFKC", form.closing) == stop
    ):
        return True
    goes_on = last < len(words) and not words[last].capital
    legal = legal_words(words[:last])
    # A legal form of several words is letters with stops between ("S.p.A."): it ends in a stop.
    return stop == "." and (legal > 1 or (legal == 1 and goes_on))


def _with_legal_form(row: Row, words: Sequence[Word], last: int, similarity: Similarity) -> int:
    """The legal form behind a name is part of it, in any inflection: "Walt Disney Companyho", "Škoda Auto a.s."."""
    names = split_words(row.english)
    dropped = names[
        len(names) - legal_words(names) :
    ]  # the sentence may have it in its own script: Компани
    joints = ["", ",", "."]
    while last < len(words) and words[last].gap.strip() in joints:
        word = words[last]
        translated = word.capital and any(
            similarity.resemblance(name, word) >= 0.7 for name in dropped
        )
        if translated or is_legal_word(word):
            last += 1
        elif size := next(
            (size for size in (2, 3) if legal_words(words[last : last + size]) == size), 0
        ):
            last += size
        else:
            break
        joints += ["&", ". &"]  # "GmbH & Co. KG"
    return last


def with_title(
    words: Sequence[Word], first: int, last: int, similarity: Similarity
) -> tuple[int, int]:
    """The title beside a name is part of it, before it or behind it: "reina Victoria", "Viktória királynő"."""
    if not (words[first].capital or words[first].unspaced):
        return first, last
    for title in titles(similarity.lang):
        size = len(title)
        before, behind = words[max(first - size, 0) : first], words[last : last + size]
        if (
            len(before) == size
            and not words[first].gap.strip()
            and _is_title(title, before, similarity)
        ):
            return first - size, last
        if (
            len(behind) == size
            and not behind[0].gap.strip()
            and _is_title(title, behind, similarity)
        ):
            return first, last + size
    return first, last


def _is_title(title: Sequence[Word], found: Sequence[Word], similarity: Similarity) -> bool:
    return all(
        similarity.compare(name, word).score >= 0.8 for name, word in zip(title, found, strict=True)
    )


def _balanced(sentence: str, start: int, end: int) -> tuple[int, int]:
    """A quotation mark outside goes in if its partner is inside: "《时尚》杂志" whole."""
    for opening, closing in _QUOTES:
        inside = sentence[start:end]
        lacks_opening = (
            inside.count(closing) > inside.count(opening)
            if opening != closing
            else inside.count(opening) % 2 == 1
        )
        lacks_closing = (
            inside.count(opening) > inside.count(closing) if opening != closing else lacks_opening
        )
        if lacks_opening and sentence[max(start - 1, 0) : start] == opening:
            start -= 1
        elif lacks_closing and sentence[end : end + 1] == closing:
            end += 1
    return start, end


def _is_article(name: Word, found: Sequence[Word]) -> bool:
    """Whether a name's capital first word stands small before a capital one: "los Vengadores" for "Los Vengadores"."""
    return (
        len(found) > 1
        and name.capital
        and not found[0].capital
        and found[1].capital
        and len(found[0].text) <= _LONGEST_PREFIX
    )


def is_prefix(word: Word) -> bool:
    """Whether the word before a hyphen is a short beginning: "по-гречески"."""
    return not word.capital and not word.unspaced and len(word.text) <= _LONGEST_PREFIX


def _with_category(
    row: Row,
    words: Sequence[Word],
    first: int,
    last: int,
    similarity: Similarity,
    categories: Categories,
) -> tuple[int, int]:
    """The label's own category word is kept in if it stands beside the name: "bahasa Welsh" for "Bahasa Wales"."""
    label = split_words(row.label)
    if len(label) < 2:
        return first, last
    if (
        first
        and label[0].text in categories.first
        and similarity.compare(label[0], words[first - 1]).score > 0.6
    ):
        first -= 1
    if (
        last < len(words)
        and label[-1].text in categories.last
        and similarity.compare(label[-1], words[last]).score > 0.6
    ):
        last += 1
    return first, last
