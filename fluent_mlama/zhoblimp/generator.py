"""From a paradigm to minimal pairs, with the semantics that the published data obeys.

    good list   [Person] [把] [NP] [V ]    1. draw an alternative per position, referents first
                    |      |    |    |
    bad list    [Person] [V ] [NP] [""]    2. a changed position whose rule is elsewhere in the good
                                              list takes the word from there (word order), another
                                              one is drawn again

Everything random comes from one generator seeded with (seed, uid): the same seed gives the same
file in any process.
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
    Elements,
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
    """What is at one position: its words, those that must not repeat, and the head to agree with.

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
        """Up to ``count`` pairs with distinct good sentences."""
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
        rules = [self.random.choice(position) for position in self.paradigm.good]
        good = self._draw_list(rules, [None] * len(rules), "good")
        self._good = good
        copied = [None if source is None else good[source] for source in self.sources]
        rules = [self.random.choice(position) for position in self.paradigm.bad]
        bad = self._draw_list(rules, copied, "bad")
        separator = self.paradigm.separator
        pair = Pair(join_words(good, separator), join_words(bad, separator))
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
            ready = []
            for index in waiting:
                places = referents(rules[index], len(items))
                if all(items[place] is not None for place in places):
                    ready.append(index)
            if not ready:
                raise Rejected(
                    f"{side} rows {', '.join(map(str, waiting))} wait for each other's words"
                )
            for index in ready:
                items[index] = self._draw_item(rules[index], items, f"{side} row {index}")
            waiting = [index for index in waiting if index not in ready]
        filled = [item for item in items if item is not None]
        drawn, copied = Counter[str](), Counter[str]()
        for item, copy in zip(filled, given, strict=True):
            (drawn if copy is None else copied).update(item.unique)
        # Two rules may copy the same word; a drawn word must be new.
        if drawn.total() > len(drawn) or drawn.keys() & copied.keys():
            raise Rejected(f"a word repeats in the {side} sentence")
        return filled

    def _draw_item(self, rule: Alternative, items: Sequence[Item | None], where: str) -> Item:
        if isinstance(rule, Literals):
            word = self.random.choice(rule.words)
            return Item((word,) if word else (), (), self.vocabulary.literal(word))
        if isinstance(rule, PhraseRule):
            return self._draw_phrase(rule, where)
        heads = []
        for agreement in rule.agreements:
            source = (self._good if agreement.good else items)[agreement.position]
            assert source is not None  # referents are drawn first
            heads.append(source.head)
        entries = self._candidates(rule, tuple(heads))
        if not entries:
            raise Rejected(f"no word fits {where}")
        entry = self.random.choice(entries)
        repeats = any(one.match and "expression" in one.properties for one in rule.agreements)
        return Item((entry.expression,), () if repeats else (entry.expression,), entry)

    def _draw_phrase(self, rule: PhraseRule, where: str) -> Item:
        sequence = filtered(self.random.choice(self.phrases[rule.name]), rule, where)
        parts = self._draw_list(sequence, [None] * len(sequence), f"{where}, phrase {rule.name},")
        return phrase_item(parts, sequence)

    def _candidates(self, rule: Lexical, heads: tuple[Entry, ...]) -> tuple[Entry, ...]:
        key = (rule, heads)
        if key not in self._agreeing:
            needed = list(zip(rule.agreements, heads, strict=True))
            self._agreeing[key] = tuple(
                entry
                for entry in self.vocabulary.select(rule.conditions)
                if all(agrees(entry, agreement, head) for agreement, head in needed)
            )
        return self._agreeing[key]

    def _length(self, items: Sequence[Item]) -> int:
        words = [word for item in items for word in item.words]
        return len(words) if self.paradigm.separator else sum(map(len, words))


def filtered(sequence: Elements, rule: PhraseRule, where: str) -> list[Alternative]:
    """A phrase's elements with the conditions that the rule adds."""
    elements = list(sequence)
    for index, conditions in rule.filters:
        elements[index] = with_conditions(elements[index], conditions, where)
    return elements


def phrase_item(parts: Sequence[Item], elements: Sequence[Alternative]) -> Item:
    """A phrase as one item: its head is the last word that is not a literal, if there is one."""
    words: list[str] = []
    unique: list[str] = []
    heads = [parts[-1].head]
    for part, element in zip(parts, elements, strict=True):
        words += part.words
        unique += part.unique
        if not isinstance(element, Literals):
            heads.append(part.head)
    return Item(tuple(words), tuple(unique), heads[-1])


def referents(rule: Alternative, length: int) -> list[int]:
    """The positions of its own list that a rule agrees with, as non-negative indices."""
    if not isinstance(rule, Lexical):
        return []
    return [one.position % length for one in rule.agreements if not one.good]


def agrees(entry: Entry, agreement: Agreement, head: Entry) -> bool:
    """Match: some property has a value in common. Mismatch: there are values, none in common."""
    shared = any(entry.values(name) & head.values(name) for name in agreement.properties)
    if agreement.match:
        return shared
    return not shared and any(entry.values(name) for name in agreement.properties)


def join_words(items: Sequence[Item], separator: str) -> str:
    """The sentence; with a separator as prose (a capital first, no blank before a full stop)."""
    text = ""
    for item in items:
        for word in item.words:
            text += word if not text or word[0] in _CLOSING else separator + word
    return capitalize(text, ANY_LANGUAGE) if separator else text
