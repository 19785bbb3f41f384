"""The template language: what may stand at one position of a paradigm's good or bad list.

    position     = alternative { "|" alternative }          "pos:PN | pos:NR subcat:person"
    alternative  = literals     words separated by blanks, one is drawn; nothing at all is the empty string
                 | lexical      column:value ...             every condition holds; value a/b is a or b
                 | matched      lexical + matchedPosition:N matchedProperties:p[/q]  (short mPos, mPro)
                                and/or mismatchedPosition:N mismatchedProperties:p   (short mmPos, mmPro)
                   and/or, in the bad list, goodPosition:N goodProperties:p (short gPos, gPro): a match with the good
                   sentence's word, so that "another form of the same word" can be said (gPos:1 gPro:lemma)
                 | phrase       phrase:Name [i:<column:value ...>] ...   extra conditions on element i (may be -1)

N counts from 0 within the same list (within the phrase's list inside a phrase). A property p is a column, or
``expression`` for the very same word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fluent_mlama.console import UserError
from fluent_mlama.zhoblimp.vocabulary import Conditions, split_values

_KEYED = re.compile(r"^[A-Za-z_]\w*:\S")
_FILTER = re.compile(r"(-?[0-9]{1,9}):<([^<>]*)>")
_LONG_NAMES = {
    "mPos": "matchedPosition",
    "mPro": "matchedProperties",
    "mmPos": "mismatchedPosition",
    "mmPro": "mismatchedProperties",
    "gPos": "goodPosition",
    "gPro": "goodProperties",
}
_AGREEMENT_KEYS = frozenset(_LONG_NAMES.values())


@dataclass(frozen=True)
class Agreement:
    """Share a value of any of the properties with the word at ``position`` (or, mismatched, have values and share none).

    good: the position is one of the good list, whichever list the rule stands in.
    """

    position: int
    properties: tuple[str, ...]
    match: bool
    good: bool = False


@dataclass(frozen=True)
class Literals:
    """One of these strings; a single empty string for "nothing here"."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Lexical:
    """One vocabulary entry that meets the conditions and the agreements."""

    conditions: Conditions
    agreements: tuple[Agreement, ...] = ()


@dataclass(frozen=True)
class PhraseRule:
    """One expansion of a named phrase; ``filters`` adds conditions to its elements by index."""

    name: str
    filters: tuple[tuple[int, Conditions], ...] = ()


Alternative = Literals | Lexical | PhraseRule
Position = tuple[Alternative, ...]


def parse_position(text: str, where: str) -> Position:
    """One cell of a good or bad list; ``where`` (file and row) opens every error."""
    return tuple(_alternative(part.strip(), where) for part in text.split("|"))


def _alternative(text: str, where: str) -> Alternative:
    if not _KEYED.match(text):
        return Literals(tuple(text.split()) or ("",))
    if text.startswith("phrase:"):
        return _phrase(text, where)
    pairs: dict[str, str] = {}
    for part in text.split():
        key, colon, value = part.partition(":")
        if not colon or not value:
            raise UserError(
                f"{where}: '{part}' is not column:value; write e.g. pos:NN, or plain words for literals"
            )
        key = _LONG_NAMES.get(key, key)
        if key in pairs:
            raise UserError(
                f"{where}: '{key}' is given twice; join values with '/', e.g. {key}:a/b"
            )
        pairs[key] = value
    return lexical(pairs, where)


def lexical(pairs: Mapping[str, str | Sequence[str]], where: str) -> Lexical:
    """A lexical or matched alternative from its key-value pairs (from a rule's text or a phrase file)."""
    agreements = []
    for kind, match in (("matched", True), ("mismatched", False), ("good", True)):
        position, properties = pairs.get(f"{kind}Position"), pairs.get(f"{kind}Properties")
        if (position is None) != (properties is None):
            raise UserError(
                f"{where}: {kind}Position and {kind}Properties belong together; give both or neither"
            )
        if position is None or properties is None:
            continue
        names = tuple(properties.split("/")) if isinstance(properties, str) else tuple(properties)
        if not re.fullmatch(r"-?[0-9]{1,9}", str(position)):
            raise UserError(
                f"{where}: {kind}Position:{str(position):.30} is not a number; positions count from 0"
            )
        agreements.append(Agreement(int(str(position)), names, match, kind == "good"))
    conditions = tuple(
        (key, split_values(value) if isinstance(value, str) else frozenset(value))
        for key, value in pairs.items()
        if key not in _AGREEMENT_KEYS
    )
    return Lexical(conditions, tuple(agreements))


def _phrase(text: str, where: str) -> PhraseRule:
    name, _, rest = text.removeprefix("phrase:").partition(" ")
    filters = []
    for index, conditions in _FILTER.findall(rest):
        parsed = _alternative(conditions.strip(), where)
        if not isinstance(parsed, Lexical) or parsed.agreements:
            raise UserError(
                f"{where}: the filter {index}:<{conditions}> must be column:value conditions"
            )
        filters.append((int(index), parsed.conditions))
    if _FILTER.sub("", rest).strip():
        raise UserError(
            f"{where}: '{rest.strip()}' behind phrase:{name} is not a filter; write e.g. -1:<animate:1>"
        )
    return PhraseRule(name, tuple(filters))


def with_conditions(rule: Alternative, extra: Conditions, where: str) -> Alternative:
    """The alternative with more conditions on its word (a phrase's filter); only lexical elements can take them."""
    if not isinstance(rule, Lexical):
        raise UserError(
            f"{where}: a filter points at an element that is not a vocabulary word; point it at a word"
        )
    return replace(rule, conditions=rule.conditions + extra)


def normalised(text: str) -> str:
    """A rule's text for comparison: trailing or doubled blanks are no difference between good and bad."""
    return " | ".join(" ".join(part.split()) for part in text.split("|"))
