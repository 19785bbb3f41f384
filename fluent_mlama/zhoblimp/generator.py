"""From a paradigm to minimal pairs, with the semantics that the published data obeys.

    good list   [Person] [把] [NP    ] [V]        1. draw an alternative a position, referents before dependants
                    |      |     |       |
    bad list    [Person] [V ] [NP    ] [""]       2. a changed position whose rule stands elsewhere in the good list
                                                     takes the word from there (word order), another is drawn afresh

Everything random comes from one generator seeded with (seed, uid): the same seed gives the same file in any process.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from fluent_mlama.languages import capitalize
from fluent_mlama.zhoblimp.paradigm import (
    Agreement,
    Alternative,
    Lexical,
    Literals,
    Paradigm,
    PhraseRule,
    Phrases,
    with_conditions,
)
from fluent_mlama.zhoblimp.vocabulary import Entry, Vocabulary

ANY_LANGUAGE = ""
"""Paradigms do not say which language they are of."""
_CLOSING = frozenset(".,;:?!。，？！；：")


@dataclass(frozen=True)
class Item:
    """What stands at one position: its words in order, the ones that must not repeat, and the head to agree with.

    The head of a phrase is its last vocabulary word (phrases here are head-final).
    """

    words: tuple[str, ...]
    unique: tuple[str, ...]
    head: Entry


@dataclass(frozen=True)
class Pair:
    """One minimal pair."""

    good: str
    bad: str


@dataclass
class Generated:
    """The pairs of one paradigm and why draws were rejected (reason -> count)."""

    paradigm: Paradigm
    pairs: list[Pair] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    attempts: int = 0


class Rejected(Exception):
    """This draw does not work; the message is the reason that is counted."""


class Generator:
    """Draws pairs of one paradigm."""

    def __init__(
        self, paradigm: Paradigm, vocabulary: Vocabulary, phrases: Phrases, seed: int = 0
    ) -> None:
        self.paradigm, self.vocabulary, self.phrases = paradigm, vocabulary, phrases
        self.random = random.Random(f"{seed}|{paradigm.uid}|{paradigm.user}")
        self.sources = paradigm.sources()
        self._good: Sequence[Item] = ()
        self._agreeing: dict[tuple[Lexical, tuple[Entry, ...]], tuple[Entry, ...]] = {}

    def generate(self, count: int, attempts_per_pair: int = 100) -> Generated:
        """Up to ``count`` pairs with distinct good sentences, in at most ``count * attempts_per_pair`` draws."""
        result = Generated(self.paradigm)
        seen: set[str] = set()
        while len(result.pairs) < count and result.attempts < count * attempts_per_pair:
            result.attempts += 1
            try:
                pair = self.draw()
                if pair.good in seen:
                    raise Rejected("good sentence already produced")
            except Rejected as reason:
                result.rejected[str(reason)] += 1
                continue
            seen.add(pair.good)
            result.pairs.append(pair)
        return result

    def draw(self) -> Pair:
        """One pair, or ``Rejected``."""
        good = self._draw_list(
            [self.random.choice(position) for position in self.paradigm.good],
            [None] * len(self.paradigm.good),
            "good",
        )
        self._good = good
        copied = [None if source is None else good[source] for source in self.sources]
        bad = self._draw_list(
            [self.random.choice(position) for position in self.paradigm.bad], copied, "bad"
        )
        pair = Pair(
            join_words(good, self.paradigm.separator), join_words(bad, self.paradigm.separator)
        )
        if pair.good == pair.bad:
            raise Rejected("good and bad sentence are equal")
        if self.paradigm.strict and self._length(good) != self._length(bad):
            raise Rejected("lengths differ in a strict minimal pair")
        return pair

    def _draw_list(
        self, rules: Sequence[Alternative], given: Sequence[Item | None], side: str
    ) -> list[Item]:
        """Fill one list, referents before dependants; ``given`` positions are already filled."""
        items: list[Item | None] = list(given)
        waiting = [index for index, item in enumerate(items) if item is None]
        while waiting:
            ready = [
                index
                for index in waiting
                if all(
                    items[position] is not None for position in referents(rules[index], len(items))
                )
            ]
            if not ready:
                raise Rejected(
                    f"{side} rows {', '.join(map(str, waiting))} wait for each other's words"
                )
            for index in ready:
                items[index] = self._draw_item(rules[index], items, f"{side} row {index}")
            waiting = [index for index in waiting if index not in ready]
        filled = [item for item in items if item is not None]
        words = [
            word
            for item, copy in zip(filled, given, strict=True)
            if copy is None
            for word in item.unique
        ]
        words += {
            word for copy in given if copy is not None for word in copy.unique
        }  # a rule may copy one word twice
        if len(set(words)) < len(words):
            raise Rejected(f"a word repeats in the {side} sentence")
        return filled

    def _draw_item(self, rule: Alternative, items: Sequence[Item | None], where: str) -> Item:
        if isinstance(rule, Literals):
            word = self.random.choice(rule.words)
            return Item((word,) if word else (), (), self.vocabulary.literal(word))
        if isinstance(rule, PhraseRule):
            return self._draw_phrase(rule, where)
        sources = (
            (self._good if agreement.good else items)[agreement.position]
            for agreement in rule.agreements
        )
        heads = tuple(item.head for item in sources if item is not None)
        entries = self._candidates(rule, heads)
        if not entries:
            raise Rejected(f"no word fits {where}")
        entry = self.random.choice(entries)
        repeats = any(
            agreement.match and "expression" in agreement.properties
            for agreement in rule.agreements
        )
        return Item((entry.expression,), () if repeats else (entry.expression,), entry)

    def _draw_phrase(self, rule: PhraseRule, where: str) -> Item:
        sequence = list(self.random.choice(self.phrases[rule.name]))
        for index, conditions in rule.filters:
            sequence[index] = with_conditions(sequence[index], conditions, where)
        parts = self._draw_list(sequence, [None] * len(sequence), f"{where}, phrase {rule.name},")
        lexical = [
            part.head
            for part, element in zip(parts, sequence, strict=True)
            if not isinstance(element, Literals)
        ]
        return Item(
            tuple(word for part in parts for word in part.words),
            tuple(word for part in parts for word in part.unique),
            lexical[-1] if lexical else parts[-1].head,
        )

    def _candidates(self, rule: Lexical, heads: tuple[Entry, ...]) -> tuple[Entry, ...]:
        key = (rule, tuple(heads))
        if key not in self._agreeing:
            selected = self.vocabulary.select(rule.conditions)
            self._agreeing[key] = tuple(
                entry for entry in selected if agrees_with_all(entry, rule.agreements, heads)
            )
        return self._agreeing[key]

    def _length(self, items: Sequence[Item]) -> int:
        words = [word for item in items for word in item.words]
        return len(words) if self.paradigm.separator else sum(map(len, words))


def referents(rule: Alternative, length: int) -> list[int]:
    """The positions of its own list that a rule agrees with, as non-negative indices."""
    return (
        [agreement.position % length for agreement in rule.agreements if not agreement.good]
        if isinstance(rule, Lexical)
        else []
    )


def agrees_with_all(entry: Entry, agreements: Sequence[Agreement], heads: Sequence[Entry]) -> bool:
    """Whether the entry meets each agreement with its head, in the same order."""
    return all(
        agrees(entry, agreement, head) for agreement, head in zip(agreements, heads, strict=True)
    )


def agrees(entry: Entry, agreement: Agreement, head: Entry) -> bool:
    """Match: a value in common in any of the properties. Mismatch: values on the entry, none of them in common."""
    shared = any(entry.values(name) & head.values(name) for name in agreement.properties)
    if agreement.match:
        return shared
    return not shared and any(entry.values(name) for name in agreement.properties)


def join_words(items: Sequence[Item], separator: str) -> str:
    """The sentence. With a separator it is set as prose: capital first letter, no blank before closing punctuation."""
    words = [word for item in items for word in item.words]
    if not separator:
        return "".join(words)
    text = "".join(
        word if word[0] in _CLOSING or not index else separator + word
        for index, word in enumerate(words)
    )
    return capitalize(text, ANY_LANGUAGE)
