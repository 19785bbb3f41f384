"""Whether a paradigm could have produced a given pair: the generator's semantics, read backwards.

The good sentence is cut into positions by backtracking over the words that each position allows.
Each way to cut it fixes the copied positions of the bad sentence; its others are cut likewise.

    我把货箱扔满了袜子。   ──▶  我 | 把 | 货箱 | 扔 | 满了 | 袜子 | 。
    bad: 我 + 扔 (row 3) + 满了 + 货箱 (row 2) + "" + 袜子 + 。
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unicodedata import normalize

from fluent_mlama.languages import capitalize
from fluent_mlama.zhoblimp.generator import (
    ANY_LANGUAGE,
    Item,
    agrees,
    filtered,
    join_words,
    phrase_item,
)
from fluent_mlama.zhoblimp.paradigm import (
    Agreement,
    Alternative,
    Lexical,
    Literals,
    Paradigm,
    Phrases,
    Position,
)
from fluent_mlama.zhoblimp.vocabulary import Conditions, Entry, Vocabulary


@dataclass(frozen=True)
class Verdict:
    """What one pair is to a paradigm.

    accepted: words and order are the paradigm's, and the good sentence meets every agreement.
    remark: for an accepted pair, what it lacks (an agreement of the bad list; or it counts a
    trailing blank as a difference). For a refused one, the furthest point reached: side, row and
    the text that nothing there could start.
    """

    accepted: bool
    remark: str = ""


BAD_AGREEMENT = "an agreement of the bad list is not met"
BLANK_COUNTS = "fits only if a blank at the end of a rule counts as a difference"


class Matcher:
    """Checks pairs against one paradigm."""

    def __init__(self, paradigm: Paradigm, vocabulary: Vocabulary, phrases: Phrases) -> None:
        self.paradigm, self.vocabulary, self.phrases = paradigm, vocabulary, phrases
        self._spelt: dict[Conditions, dict[str, list[Entry]]] = {}
        self._furthest = (-1, "")
        self._enforce = True
        self._good: Sequence[Item] = ()
        self._merge_readings = False

    def check(self, good: str, bad: str) -> Verdict:
        """Whether some draw gives exactly these two sentences (in NFC, as all rules are)."""
        good, bad = normalize("NFC", good), normalize("NFC", bad)
        if good == bad:
            return Verdict(False, "good and bad sentence are equal")
        if self.paradigm.strict and not self.paradigm.separator and len(good) != len(bad):
            return Verdict(
                False, f"lengths {len(good)} and {len(bad)} differ in a strict minimal pair"
            )
        self._furthest, self._enforce, self._merge_readings = (-1, ""), True, False
        cuts = list(self.cut(self.paradigm.good, good, [None] * len(self.paradigm.good)))
        if not cuts:
            return Verdict(
                False, f"good_rule row {self._furthest[0] + 1} does not allow '{self._furthest[1]}'"
            )
        self._furthest = (-1, "")
        # A bad word must be bad in every reading of the words it disagrees with.
        self._merge_readings = True
        for enforce, to_the_letter, remark in (
            (True, False, ""),
            (False, False, BAD_AGREEMENT),
            (False, True, BLANK_COUNTS),
        ):
            self._enforce = enforce
            sources = self.paradigm.sources(to_the_letter)
            for items in cuts:
                self._good = items
                copied = [None if source is None else items[source] for source in sources]
                if next(self.cut(self.paradigm.bad, bad, copied), None) is not None:
                    return Verdict(True, remark)
        return Verdict(
            False, f"bad_rule row {self._furthest[0] + 1} does not allow '{self._furthest[1]}'"
        )

    def cut(
        self, positions: Sequence[Position], text: str, given: Sequence[Item | None]
    ) -> Iterator[list[Item]]:
        """Every way to cut ``text`` into the positions with agreements met; given items are fixed."""
        separator = self.paradigm.separator
        for items, end in self._cut_from(positions, text, 0, given, [], []):
            if end == len(text) or (separator and join_words(items, separator) == text):
                yield items

    def _cut_from(
        self,
        positions: Sequence[Position],
        text: str,
        start: int,
        given: Sequence[Item | None],
        items: list[Item],
        rules: list[Alternative | None],
    ) -> Iterator[tuple[list[Item], int]]:
        index = len(items)
        if index == len(positions):
            yield list(items), start
            return
        for item, rule, end in self._options(positions[index], text, start, given[index]):
            if not self._agreements_hold(items, rules, item, rule, len(positions)):
                continue
            if index > self._furthest[0]:
                self._furthest = (index, text[end:])
            yield from self._cut_from(positions, text, end, given, [*items, item], [*rules, rule])

    def _options(
        self, position: Position, text: str, start: int, given: Item | None
    ) -> Iterator[tuple[Item, Alternative | None, int]]:
        if given is not None:
            end = self._read_words(given.words, text, start)
            if end is not None:
                yield given, None, end
            return
        for rule in position:
            for item, end in self._readings(rule, text, start):
                yield item, rule, end

    def _readings(self, rule: Alternative, text: str, start: int) -> Iterator[tuple[Item, int]]:
        if isinstance(rule, Literals):
            for word in rule.words:
                end = self._read_words((word,) if word else (), text, start)
                if end is not None:
                    yield Item((word,) if word else (), (), self.vocabulary.literal(word)), end
        elif isinstance(rule, Lexical):
            for word, entries in self._spellings(rule.conditions).items():
                end = self._read_words((word,), text, start)
                if end is not None:
                    for entry in entries:
                        yield Item((word,), (word,), entry), end
        else:
            for raw in self.phrases[rule.name]:
                sequence = filtered(raw, rule, rule.name)
                positions = [(element,) for element in sequence]
                kept = self._furthest
                nothing = [None] * len(sequence)
                for parts, end in self._cut_from(positions, text, start, nothing, [], []):
                    yield phrase_item(parts, sequence), end
                self._furthest = kept

    def _read_words(self, words: Sequence[str], text: str, start: int) -> int | None:
        """The offset behind ``words`` if the text goes on with them at ``start``, else None."""
        end = start
        separator = self.paradigm.separator
        for word in words:
            if end and separator and text.startswith(separator + word, end):
                end += len(separator)
            begins = end == 0 and separator and not text.startswith(word)
            written = capitalize(word, ANY_LANGUAGE) if begins else word
            if not text.startswith(written, end):
                return None
            end += len(written)
        return end

    def _spellings(self, conditions: Conditions) -> dict[str, list[Entry]]:
        if conditions not in self._spelt:
            spelt: dict[str, list[Entry]] = {}
            for entry in self.vocabulary.select(conditions):
                if entry.expression:
                    spelt.setdefault(entry.expression, []).append(entry)
            self._spelt[conditions] = spelt
        return self._spelt[conditions]

    def _agreements_hold(
        self,
        items: Sequence[Item],
        rules: Sequence[Alternative | None],
        item: Item,
        rule: Alternative | None,
        length: int,
    ) -> bool:
        """The new item's agreements with earlier ones, and earlier ones' agreements with it."""
        if not self._enforce:
            return True
        index = len(items)
        # (dependant, agreement, referent), as far as both are known by now
        triples: list[tuple[Item, Agreement, Item]] = []
        if isinstance(rule, Lexical):
            for agreement in rule.agreements:
                position = agreement.position % length
                if agreement.good:
                    triples.append((item, agreement, self._good[position]))
                elif position < index:
                    triples.append((item, agreement, items[position]))
        for earlier, earlier_rule in zip(items, rules, strict=True):
            if isinstance(earlier_rule, Lexical):
                for agreement in earlier_rule.agreements:
                    if not agreement.good and agreement.position % length == index:
                        triples.append((earlier, agreement, item))
        return all(
            agrees(self._head(dependant), agreement, self._head(referent))
            for dependant, agreement, referent in triples
        )

    def _head(self, item: Item) -> Entry:
        return self.vocabulary.literal(item.head.expression) if self._merge_readings else item.head
