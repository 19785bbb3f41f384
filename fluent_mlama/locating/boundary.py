"""Whether a found name is but a piece of a longer one: hyphenated, in capitalized words, in Han."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fluent_mlama.locating.similarity import Similarity
from fluent_mlama.locating.span import has_ending, is_prefix
from fluent_mlama.locating.text import Word

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


def in_compound(words: Sequence[Word], first: int, last: int, similarity: Similarity) -> bool:
    """Whether a hyphen joins the words to another name: "Praha" in "Praha-západ", "Йорк" in "Нью-Йорк"."""
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
    """Whether a Han name goes on, to the left or to the right, with a character that may belong to it: 大阪 in 東大阪市."""
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
