"""The names that an object may have in a sentence, and what a relation's labels have in common.

A label may carry more than the sentence says: a category word ("русский язык", "Kota Taipei"), a
region ("Boston, Massachusetts"), a legal suffix. Which words are such is learnt from the labels of
the relation: a word that begins or ends the labels of several objects. Whole words are taken off,
never characters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fluent_mlama.locating.result import Row
from fluent_mlama.locating.similarity import stem_score
from fluent_mlama.locating.text import Word, split_words

_BRACKETS = re.compile(r"\s*[(（\[][^)）\]]*[)）\]]")
_REGION = re.compile(r"[,،、，/;]")
_LEGAL_FORMS = (
    "ab ag aps as asa bhd bv co company corp corporation cv dd doo gmbh inc incorporated kft kg"
    " kgaa kk limited llc llp lp ltd ltda nv nyrt oy oyj plc pte pty pvt sa sas sarl sdn se sl spa"
    " srl sro tbk zrt"
)
_LEGAL = frozenset(_LEGAL_FORMS.split())
_FEWEST_LABELS = 3


@dataclass(frozen=True, slots=True)
class Form:
    """One name to look for: its words, the text they come from, and how it was got (``method``)."""

    words: tuple[Word, ...]
    text: str
    method: str

    @property
    def key(self) -> tuple[str, ...]:
        """The folded words."""
        return tuple(word.text for word in self.words)

    @property
    def closing(self) -> str:
        """The character after the last word: the stop of "Inc.", the "!" of "Yahoo!"."""
        return self.text[self.words[-1].end :][:1]


@dataclass(slots=True)
class Categories:
    """Words that begin or end several objects' labels: "язык", "Kota", "市", "Inc."."""

    first: set[str] = field(default_factory=set)
    last: set[str] = field(default_factory=set)
    common: set[str] = field(default_factory=set)

    @classmethod
    def learn(cls, labels: Iterable[str], others: Iterable[tuple[str, str]] = ()) -> Categories:
        """From the distinct labels of a relation. others: (object, further name), which tell only
        what words are common.
        """
        rests: dict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
        distinct = 0
        for label in set(labels):
            key = tuple(word.text for word in split_words(label))
            distinct += 1
            if len(key) > 1:
                rests["first", key[0]].add(key[1:])
                rests["last", key[-1]].add(key[:-1])
        # A word shared by 2 % of the labels is a category; in small relations three must share it.
        needed = max(_FEWEST_LABELS, distinct // 50)
        learnt = cls()
        for (side, word), found in rests.items():
            if len(found) >= needed:
                (learnt.first if side == "first" else learnt.last).add(word)
        bearers: dict[str, set[str]] = defaultdict(set)
        for bearer, name in others:
            for part in split_words(name):
                bearers[part.text].add(bearer)
        learnt.common = {
            word for word, objects in bearers.items() if len(objects) >= _FEWEST_LABELS
        }
        return learnt

    def strip(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """The words without category words at either end (of a script without blanks: one
        character); one is left at least.
        """
        if len(words) > 1 and words[-1].unspaced:
            return words[:-1] if words[-1].text in self.last else words
        while len(words) > 1 and (legal := legal_words(words) or words[-1].text in self.last):
            words = words[: -int(legal)] or words[:1]
        while len(words) > 1 and words[0].text in self.first:
            words = words[1:]
        return words


def forms_of(row: Row, categories: Categories, known: Iterable[tuple[str, str]] = ()) -> list[Form]:
    """The names of a row's object, the surest first: label, known forms, reduced label, aliases,
    English.

    known: forms of this object found in other rows, each with the method that found it there.
    """
    forms: dict[tuple[str, ...], Form] = {}

    def add(text: str, method: str, words: tuple[Word, ...] | None = None) -> None:
        words = tuple(split_words(text)) if words is None else words
        if words:
            form = Form(words, text, method)
            forms.setdefault(form.key, form)

    def add_reduced(text: str, method: str) -> None:
        for part in _reduced(text):
            words = tuple(split_words(part))
            add(part, method, words)
            add(part, method, categories.strip(words))

    add(row.label, "exact")
    for text in row.forms:
        add(text, "known")
    for text, method in known:
        add(text, method)
    add_reduced(row.label, "reduced")
    for alias in row.aliases:
        if alias != row.english and not is_code(alias):
            add(alias, "alias")
    add(row.english, "english")
    add_reduced(row.english, "english")
    return list(forms.values())


def legal_words(words: Sequence[Word]) -> int:
    """How many of the last words are one legal form: 1 for "Inc.", 2 for "a.s.", 3 for "S.p.A."; 0
    if they are none.

    Whole words are written with a capital ("se" and "as" are words of many languages), letters with
    dots between them.
    """
    if words and words[-1].capital and words[-1].text in _LEGAL:
        return 1
    count = 0
    for word in reversed(words):
        if len(word.text) > 1:
            break
        count += 1
        if word.gap.strip() != ".":
            break
    return count if count > 1 and "".join(word.text for word in words[-count:]) in _LEGAL else 0


def is_legal_word(word: Word) -> bool:
    """Whether a capital word is a legal form, with or without an ending: "Inc", "Companyho"."""
    if not word.capital:
        return False
    return word.text in _LEGAL or any(
        len(legal) > 2 and stem_score(legal, word.bare) for legal in _LEGAL
    )


def is_code(alias: str) -> bool:
    """Whether an alias is a language code ("es", "fra"), found in any small word of a sentence."""
    return len(alias) <= 3 and alias.islower()


def _reduced(text: str) -> list[str]:
    """The text without brackets, without what follows a comma, and turned: "Surname, Name"."""
    plain = _BRACKETS.sub("", text).strip()
    pieces = [piece.strip() for piece in _REGION.split(plain)]
    turned = f"{pieces[1]} {pieces[0]}" if len(pieces) == 2 else ""
    return [piece for piece in dict.fromkeys((plain, pieces[0], turned)) if piece]
