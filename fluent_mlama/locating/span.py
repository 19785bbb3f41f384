"""From matched words to the characters of the object, and whether they are but a piece of a name.

Endings and category words go in, quotes and prepositions stay out. A found name may be a piece of a
longer one: hyphenated, in capitalized words, in Han.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from fluent_mlama.locating.forms import Categories, is_legal_word, legal_words
from fluent_mlama.locating.grammar import titles
from fluent_mlama.locating.matching import Match
from fluent_mlama.locating.result import Row
from fluent_mlama.locating.similarity import Similarity
from fluent_mlama.locating.text import Word, letters_before, split_words

_HAN_BEFORE = frozenset(
    "在于於是为為由属屬从從到与與和及或以用来來自至之的乃即系係向往被给給把将將对對称稱名叫作做成入出去住位近经經过過同跟比有加任当當抵达達赴"
    "落立建生死卒葬逝居国國省市县縣州区區都府道町村语語文人者会會社团團队隊司校院党黨组組织織"
)
"""Han characters that may end the word before a name: prepositions, verbs, category words."""
_HAN_BEHIND = frozenset(
    "的是在于於为為和与與及或也而等之则則市省县縣州区區国國府都県町村郡人语語话話文族队隊社会會公司集团團学學岛島山河湖海"
    "女王皇帝被由从從到出工担擔任创創成建写寫所有属屬位首官第当當就并並上下内內中前后後间間年月日"
    "去逝诞誕生死卒居住长長度过過举舉开開结結设設教留读讀播发發拍录錄演定接担擔负負最同以向对對进進参參加获獲得"
)
"""Han characters that may follow a name: particles, verbs, category words."""
_CAPITALIZED_NOUNS = frozenset(("de", "lb"))
"""Languages where a capitalized word beside a name may be any noun."""
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
    """Start and end, in characters of the sentence, of the object that the match stands for."""
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
    """Whether the word at ``place`` is an ending ("NATO-a") and no word itself ("Praha-západ")."""
    word = words[place]
    return word.is_ending and not (
        word.hyphenated and len(word.text) > 2 and similarity.is_known(word.text)
    )


def _has_own_stop(row: Row, words: Sequence[Word], match: Match, last: int, end: int) -> bool:
    """Whether the stop after the object is the name's own ("Co."), not the sentence's."""
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
    """The legal form after a name is part of it: "Walt Disney Companyho", "Škoda Auto a.s."."""
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
    """The title beside a name is part of it: "reina Victoria", "Viktória királynő"."""
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
    """Whether a name's first word is lower-case here: "los Vengadores" for "Los Vengadores"."""
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
    """The label's category word beside the name is kept: "bahasa Welsh" for "Bahasa Wales"."""
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


def in_compound(words: Sequence[Word], first: int, last: int, similarity: Similarity) -> bool:
    """Whether a hyphen joins the words to another name: "Praha-západ", "Нью-Йорк"."""
    before = first > 0 and words[first].hyphenated and not is_prefix(words[first - 1])
    behind = (
        last < len(words) and words[last].hyphenated and not has_ending(words, last, similarity)
    )
    return before or behind


def capitalized_neighbours(
    words: Sequence[Word], first: int, last: int, lang: str
) -> Iterator[int]:
    """Words beside a capitalized name that may belong to it: "New" of "New Mexico".

    The first word of a text is none: it is capitalized whatever it is.
    """
    if lang in _CAPITALIZED_NOUNS or not words[first].capital:
        return
    if first > 1 and words[first - 1].capital and words[first].gap.isspace():
        yield first - 1
    if last < len(words) and words[last].capital and words[last].gap.isspace():
        yield last


def in_longer_han(words: Sequence[Word], first: int, last: int) -> bool:
    """Whether a Han name continues with a character that may belong to it: 大阪 in 東大阪市."""
    before = (
        first > 0 and not words[first].gap and _is_han(words[first]) and _is_han(words[first - 1])
    )
    behind = (
        last < len(words)
        and not words[last].gap
        and _is_han(words[last - 1])
        and _is_han(words[last])
    )
    return (before and words[first - 1].text not in _HAN_BEFORE) or (
        behind and words[last].text not in _HAN_BEHIND
    )


def _is_han(word: Word) -> bool:
    return "\u3400" <= word.text[0] <= "\u9fff" or word.text[0] >= "\U00020000"
