"""The frame of a relation: what stands around the object in most of its sentences.

Sentences of one (language, relation) share nearly all words but the subject's and the object's.
Which words stand right before and right after the object is counted over the rows whose object was
found surely. The counts tell which of two places is the object's, and where it must be when its
form is like no known name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fluent_mlama.locating.matching import overlaps_all
from fluent_mlama.locating.text import Word, is_break

_FEWEST_SEEN = 3
_CONTEXT = 3
_LONGEST_FILLER = 8
_LEAST_PRECISION = 0.5
_START, _END, _BREAK = "^", "$", "—"

Context = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """Words ``first`` to ``last`` (exclusive) stand where objects stand; precision 0 to 1."""

    first: int
    last: int
    precision: float


class SentenceFrame:
    """Contexts left and right of the object, with how often they are followed (preceded) by it."""

    def __init__(self) -> None:
        self._hits: dict[str, Counter[Context]] = {"left": Counter(), "right": Counter()}
        self._seen: dict[str, Counter[Context]] = {"left": Counter(), "right": Counter()}
        self._objects: dict[str, dict[Context, set[str]]] = {
            "left": defaultdict(set),
            "right": defaultdict(set),
        }
        self._capitals = 0
        self._endings: Counter[str] = Counter()
        self.rows = 0

    @property
    def known(self) -> bool:
        """Whether enough rows were seen for the frame to have a say."""
        return self.rows >= 8

    def add(self, words: Sequence[Word], first: int, last: int, key: str) -> None:
        """Count one sentence whose object (``key``) is surely words ``first`` to ``last``."""
        self.rows += 1
        self._capitals += words[first].capital
        self._endings[words[last - 1].bare[-2:]] += 1
        # Every word's contexts are seen; only those beside the object are hits. Their ratio is the
        # precision of a context.
        items, places = _items(words)
        for place in places:
            for context in _lefts(items, place):
                self._seen["left"][context] += 1
            for context in _rights(items, place):
                self._seen["right"][context] += 1
        for side, contexts in (
            ("left", _lefts(items, places[first])),
            ("right", _rights(items, places[last - 1])),
        ):
            for context in contexts:
                self._hits[side][context] += 1
                self._objects[side][context].add(key)

    def _precision(self, side: str, contexts: Sequence[Context]) -> float:
        """Precision of the longest well-known context; 0 if none was ever beside an object."""
        for context in contexts:
            seen = self._seen[side][context]
            if seen >= _FEWEST_SEEN and len(self._objects[side].get(context, ())) >= 2:
                return self._hits[side][context] / seen
        return 0.0

    @staticmethod
    def _both(left: float, right: float) -> float:
        """Both sides together; where word order varies, one side alone may tell."""
        if not left or not right:
            return max(left, right) / 3
        # As good as both, or nearly as good as the better one alone.
        return max(left * right, 0.8 * max(left, right))

    def agreement(self, words: Sequence[Word], first: int, last: int) -> float:
        """0 to 1: how much the words around the span look like those around an object."""
        items, places = _items(words)
        left = self._precision("left", _lefts(items, places[first]))
        right = self._precision("right", _rights(items, places[last - 1]))
        return self._both(left, right)

    def slot(self, words: Sequence[Word], subject: Sequence[tuple[int, int]] = ()) -> Slot | None:
        """Where the object must be by the words around it; never where the subject is."""
        items, places = _items(words)
        lefts = [self._precision("left", _lefts(items, place)) for place in places]
        rights = [self._precision("right", _rights(items, place)) for place in places]
        best: Slot | None = None
        for first, left in enumerate(lefts):
            if not left:
                continue
            # The nearest right context that fits closes the slot.
            for last in range(first + 1, min(len(words), first + _LONGEST_FILLER) + 1):
                precision = self._both(left, rights[last - 1])
                if precision >= _LEAST_PRECISION and rights[last - 1]:
                    if (best is None or precision > best.precision) and not overlaps_all(
                        first, last, subject
                    ):
                        best = Slot(first, last, precision)
                    break
        return best

    def without_head(self, words: Sequence[Word], first: int, last: int) -> int:
        """Where the name begins in "команди «Іглз»", if objects here are capitalized."""
        if self._capitals > 0.9 * self.rows and any(word.capital for word in words[first:last]):
            while not words[first].capital:
                first += 1
        return first

    def looks_like_object(self, words: Sequence[Word], first: int, last: int) -> bool:
        """Whether the span is written as objects here are: capital, ending."""
        share = self._capitals / max(self.rows, 1)
        capital = words[first].capital
        if (capital and share < 0.1) or (not capital and share > 0.9 and not words[first].unspaced):
            return False
        varied = len(self._endings) > 0.3 * self.rows
        return (
            varied
            or words[first].unspaced
            or share > 0.5
            or self._endings[words[last - 1].bare[-2:]] >= max(2, self.rows // 100)
        )


def _items(words: Sequence[Word]) -> tuple[list[str], list[int]]:
    """The sentence as start, words, dashes and end, and where each word stands in it."""
    items, places = [_START], []
    for word in words:
        if is_break(word.gap):
            items.append(_BREAK)
        places.append(len(items))
        items.append(word.text)
    items.append(_END)
    return items, places


def _lefts(items: Sequence[str], place: int) -> list[Context]:
    """What stands before, the longest first."""
    return [tuple(items[place - size : place]) for size in range(min(_CONTEXT, place), 0, -1)]


def _rights(items: Sequence[str], place: int) -> list[Context]:
    """What stands behind, the longest first."""
    return [
        tuple(items[place + 1 : place + 1 + size])
        for size in range(min(_CONTEXT, len(items) - place - 1), 0, -1)
    ]
