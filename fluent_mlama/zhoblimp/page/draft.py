"""A paradigm while it is being written: what each row means at this moment, and what it would generate."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from fluent_mlama.console import UserError
from fluent_mlama.zhoblimp.generator import Generated, Generator
from fluent_mlama.zhoblimp.paradigm import (
    Paradigm,
    check_lexical,
    check_paradigm,
    check_phrase_rule,
    parse_paradigm,
)
from fluent_mlama.zhoblimp.phrases import Phrases
from fluent_mlama.zhoblimp.rules import Lexical, PhraseRule, normalised, parse_position
from fluent_mlama.zhoblimp.vocabulary import Vocabulary

_REFERENCE = re.compile(
    r"(?<!\S)((?:mPos|mmPos|gPos|matchedPosition|mismatchedPosition|goodPosition):)([0-9]{1,9})(?!\S)"
)
MOST_PAIRS = 1000
MOST_ATTEMPTS = 1000


@dataclass
class Draft:
    """The editable fields. good[i] and bad[i] are row i."""

    uid: str = ""
    user: str = ""
    phenomenon: str = ""
    strict: bool = True
    spaces: bool = False
    good: list[str] = field(default_factory=lambda: [""])
    bad: list[str] = field(default_factory=lambda: [""])

    def text(self) -> str:
        """The paradigm file."""
        rules = {"good_rule": self.good, "bad_rule": self.bad}
        names = {"uid": self.uid, "user": self.user, "phenomenon": self.phenomenon}
        return (
            json.dumps(
                {**names, "strict_MP": self.strict, "sep": " " if self.spaces else "", **rules},
                ensure_ascii=False,
                indent=1,
            )
            + "\n"
        )

    def paradigm(self) -> Paradigm:
        """Parsed, or the ``UserError`` that says which row is wrong."""
        return parse_paradigm(
            self.text() if self.uid else Draft(**{**vars(self), "uid": "draft"}).text(),
            self.uid or "draft",
        )


def load_draft(text: str, where: str) -> Draft:
    """A draft from a paradigm file."""
    one = parse_paradigm(text, where)
    return Draft(
        one.uid,
        one.user,
        one.phenomenon,
        one.strict,
        one.separator == " ",
        list(one.good_rules),
        list(one.bad_rules),
    )


def renumbered(rule: str, places: Mapping[int, int | None]) -> str:
    """The rule with its row numbers changed (old -> new). A row that is gone (None) becomes ``?``, an error to be mended.

    Numbers that ``places`` lacks stay: rows that are still to be written.
    """

    def place(found: re.Match[str]) -> str:
        new = places.get(int(found[2]), int(found[2]))
        return found[1] + ("?" if new is None else str(new))

    return _REFERENCE.sub(place, rule)


@dataclass(frozen=True)
class Remark:
    """What is to be said under one field."""

    text: str
    is_error: bool = False


def remark_on(
    text: str, index: int, draft: Draft, side: str, vocabulary: Vocabulary, phrases: Phrases
) -> Remark:
    """How many words the rule draws from, or what is wrong with it."""
    try:
        counts = []
        for alternative in parse_position(text, f"row {index}"):
            if isinstance(alternative, Lexical):
                if side == "good" and any(agreement.good for agreement in alternative.agreements):
                    raise UserError(f"row {index}: goodPosition belongs in the bad column only")
                check_lexical(alternative, len(draft.good), vocabulary, f"row {index}")
                if any(
                    agreement.position % len(draft.good) == index and not agreement.good
                    for agreement in alternative.agreements
                ):
                    raise UserError(
                        f"row {index} agrees with itself; name another row (rows count from 0)"
                    )
                counts.append(_count(alternative, vocabulary))
            elif isinstance(alternative, PhraseRule):
                check_phrase_rule(alternative, vocabulary, phrases, f"row {index}")
                sequences = len(phrases[alternative.name])
                counts.append(
                    f"phrase {alternative.name}, {sequences} form{'s' if sequences > 1 else ''}"
                )
            else:
                counts.append(
                    "nothing"
                    if alternative.words == ("",)
                    else f"literally {' or '.join(alternative.words)}"
                )
    except UserError as error:
        return Remark(str(error), True)
    return Remark(" | ".join(counts) + (f" · {_origin(draft, index)}" if side == "bad" else ""))


def _count(rule: Lexical, vocabulary: Vocabulary) -> str:
    """Words that meet the conditions; with an agreement also how many of them can agree with any word at all."""
    selected = vocabulary.select(rule.conditions)
    words = len({entry.expression for entry in selected})
    able = [
        one
        for one in selected
        if all(
            any(one.values(name) for name in agreement.properties) for agreement in rule.agreements
        )
    ]
    if rule.agreements and len(able) < len(selected):
        lacking = len(
            {entry.expression for entry in selected} - {entry.expression for entry in able}
        )
        return f"{words} words, {lacking} of them without the property to agree in"
    return f"{words} word{'s' if words != 1 else ''}"


def _origin(draft: Draft, index: int) -> str:
    """Where the bad sentence's word comes from."""
    good, bad = [normalised(rule) for rule in draft.good], [normalised(rule) for rule in draft.bad]
    if bad[index] == good[index]:
        return "same word as in the good sentence"
    same = [j for j, rule in enumerate(good) if rule == bad[index]]
    return f"word moved from row {same[0]}" if same and bad[index] else "changed"


def generate(
    draft: Draft, vocabulary: Vocabulary, phrases: Phrases, pairs: int, seed: int, attempts: int
) -> Generated:
    """Pairs of the draft, checked first. Numbers out of range are ``UserError``s."""
    if not 1 <= pairs <= MOST_PAIRS or not 1 <= attempts <= MOST_ATTEMPTS:
        raise UserError(
            f"pairs must lie between 1 and {MOST_PAIRS}, attempts per pair between 1 and {MOST_ATTEMPTS}"
        )
    paradigm = draft.paradigm()
    check_paradigm(paradigm, vocabulary, phrases)
    return Generator(paradigm, vocabulary, phrases, seed).generate(pairs, attempts)


def differences(
    good: str, bad: str, words: bool
) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both sentences as (piece, differs) in order; compared word by word or character by character."""
    left, right = (good.split(" "), bad.split(" ")) if words else (list(good), list(bad))
    join = " " if words else ""
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for side, pieces in zip(sides, (left[a:b], right[c:d]), strict=True):
            if pieces and side and words:
                side.append((join, False))
            if pieces:
                side.append((join.join(pieces), kind != "equal"))
    return sides


def as_jsonl(draft: Draft, pairs: Sequence[tuple[str, str]]) -> str:
    """The published layout."""
    rows = ({"UID": draft.uid or "draft", "phenomenon": draft.phenomenon, "sentence_good": g, "sentence_bad": b, "pairID": n}
            for n, (g, b) in enumerate(pairs))  # fmt: skip
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
