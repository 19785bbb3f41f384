"""Paradigms, the template language of their rows, and the phrases that rows may name.

A paradigm file is one contrast, as a list of positions for the good and one for the bad sentence:

    {"uid": "BA_deletion", "user": "anna", "phenomenon": "BA", "strict_MP": false, "sep": "",
     "good_rule": ["pos:PN subcat:person", "把", ...], "bad_rule": [...]}

What may be at one position of a list:

    position     = alternative { "|" alternative }          "pos:PN | pos:NR subcat:person"
    alternative  = literals   words separated by blanks, one is drawn; nothing is the empty string
                 | lexical    column:value ...        every condition holds; value a/b is a or b
                 | matched    lexical + matchedPosition:N matchedProperties:p[/q]  (mPos, mPro)
                              and/or mismatchedPosition:N mismatchedProperties:p   (mmPos, mmPro)
                              and/or goodPosition:N goodProperties:p               (gPos, gPro)
                 | phrase     phrase:Name [i:<column:value ...>] ...
                              with extra conditions on element i (may be -1)

N counts from 0 within the same list (inside a phrase, within the phrase's). A property p is a
column, or ``expression`` for the very same word. goodPosition is for the bad list: a match with the good
sentence's word, for "another form of the same word" (gPos:1 gPro:lemma).

A phrase file maps names to lists of sequences of elements, of which one is drawn:

    {"Person": [ [{"type": "Lexical", "rule": {"pos": "NR", "subcat": "person"}}],
                 [{"type": "Lexical", "rule": {"pos": "PN", "subcat": "person"}}] ]}

Element types: Lexical and Matched (a dict of column: value), Direct (a list of literal words) and
Phrase ({"name": ...}). Phrases may contain phrases, but not themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from fluent_mlama.console import UserError
from fluent_mlama.files import open_source, parse_json
from fluent_mlama.zhoblimp.vocabulary import (
    Conditions,
    Vocabulary,
    composed,
    decode_utf8,
    read_utf8,
    split_values,
)

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
    """Share a value of any of the properties with the word at ``position``.

    Mismatched: have values and share none.

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
                f"{where}: '{part}' is not column:value; "
                "write e.g. pos:NN, or plain words for literals"
            )
        key = _LONG_NAMES.get(key, key)
        if key in pairs:
            raise UserError(
                f"{where}: '{key}' is given twice; join values with '/', e.g. {key}:a/b"
            )
        pairs[key] = value
    return lexical(pairs, where)


def lexical(pairs: Mapping[str, str | Sequence[str]], where: str) -> Lexical:
    """A lexical or matched alternative from the key-value pairs of a rule or a phrase file."""
    agreements = []
    for kind, match in (("matched", True), ("mismatched", False), ("good", True)):
        position, properties = pairs.get(f"{kind}Position"), pairs.get(f"{kind}Properties")
        if (position is None) != (properties is None):
            raise UserError(
                f"{where}: {kind}Position and {kind}Properties belong together; "
                "give both or neither"
            )
        if position is None or properties is None:
            continue
        names = tuple(properties.split("/")) if isinstance(properties, str) else tuple(properties)
        if not re.fullmatch(r"-?[0-9]{1,9}", str(position)):
            raise UserError(
                f"{where}: {kind}Position:{str(position):.30} is not a number; "
                "positions count from 0"
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
            f"{where}: '{rest.strip()}' behind phrase:{name} is not a filter; "
            "write e.g. -1:<animate:1>"
        )
    return PhraseRule(name, tuple(filters))


def with_conditions(rule: Alternative, extra: Conditions, where: str) -> Alternative:
    """The alternative with more conditions on its word; only lexical elements can take them."""
    if not isinstance(rule, Lexical):
        raise UserError(
            f"{where}: a filter points at an element that is not a vocabulary word; "
            "point it at a word"
        )
    return replace(rule, conditions=rule.conditions + extra)


def normalised(text: str) -> str:
    """A rule's text for comparison: trailing and doubled blanks make no difference."""
    return " | ".join(" ".join(part.split()) for part in text.split("|"))


Elements = tuple[Alternative, ...]
Phrases = Mapping[str, tuple[Elements, ...]]


def parse_phrases(text: str, where: str = "phrases") -> dict[str, tuple[Elements, ...]]:
    """Read the JSON; unknown types, unknown names and cycles are ``UserError``s."""
    raw = composed(parse_json(text, where, make_object=_no_doubles(where)))
    if not isinstance(raw, dict):
        raise UserError(f"{where}: must be an object that maps phrase names to lists of sequences")
    phrases = {}
    for name, sequences in raw.items():
        is_list = isinstance(sequences, list) and sequences
        if not is_list or not all(isinstance(one, list) and one for one in sequences):
            raise UserError(
                f"{where}: phrase '{name}' must be a non-empty list of non-empty sequences"
            )
        read = []
        for number, sequence in enumerate(sequences):
            here = f"{where}: phrase '{name}', sequence {number}"
            read.append(tuple(_element(element, here) for element in sequence))
        phrases[name] = tuple(read)
    check_phrases(phrases, {name: f"{where}: row {_row_of(name, text)}" for name in phrases})
    return phrases


def _row_of(name: str, text: str) -> int:
    """The row in which a phrase is defined (1 if it is spelt with escapes)."""
    found = re.search(re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:\s*\[", text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def read_phrases(path: Path) -> dict[str, tuple[Elements, ...]]:
    """``parse_phrases`` of a UTF-8 file."""
    return parse_phrases(read_utf8(path), path.name)


def check_phrases(phrases: Phrases, where: Mapping[str, str]) -> None:
    """Every phrase that is named exists, and none contains itself.

    ``where``: file and row of each phrase.
    """
    for name in phrases:
        for inner in _inner(phrases, name):
            if inner not in phrases:
                raise UserError(
                    f"{where[name]}: phrase '{name}' uses unknown phrase '{inner}'; "
                    f"known: {', '.join(sorted(phrases))}"
                )
    try:
        TopologicalSorter({name: list(_inner(phrases, name)) for name in phrases}).prepare()
    except CycleError as error:
        # Each name of the cycle is in the next one's phrase, and the last is the first again.
        cycle = error.args[1][:0:-1]
        start = cycle.index(min(cycle, key=list(phrases).index))
        names = [*cycle[start:], *cycle[: start + 1]]
        raise UserError(
            f"{where[names[-2]]}: cycle in phrases: {' -> '.join(names)}; "
            "a phrase must not contain itself"
        ) from None


def _inner(phrases: Phrases, name: str) -> Iterator[str]:
    for sequence in phrases[name]:
        for element in sequence:
            if isinstance(element, PhraseRule):
                yield element.name


def _element(raw: Any, where: str) -> Alternative:
    kind, rule = (raw.get("type"), raw.get("rule")) if isinstance(raw, dict) else (None, None)
    if kind == "Direct" and isinstance(rule, list) and rule:
        return Literals(tuple(str(word) for word in rule))
    if kind == "Phrase" and isinstance(rule, dict) and isinstance(rule.get("name"), str):
        return PhraseRule(rule["name"])
    if kind in {"Lexical", "Matched"} and isinstance(rule, dict) and rule:
        return lexical(rule, where)
    raise UserError(
        f"{where}: {json.dumps(raw, ensure_ascii=False)} is no element; "
        "type is Lexical, Matched, Direct or Phrase, with its rule"
    )


def _no_doubles(where: str) -> Any:
    def make_object(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in items:
            if name in made:
                raise UserError(f"{where}: '{name}' is defined twice; rename one of them")
            made[name] = value
        return made

    return make_object


@dataclass(frozen=True)
class Paradigm:
    """One contrast: ``good`` and ``bad`` are parsed, the rules keep their text for comparison.

    strict: only pairs of equal length are minimal pairs (in words, or in characters where the
    separator is empty).
    """

    uid: str
    user: str
    phenomenon: str
    strict: bool
    separator: str
    good_rules: tuple[str, ...]
    bad_rules: tuple[str, ...]
    good: tuple[Position, ...]
    bad: tuple[Position, ...]
    where: str

    def sources(self, to_the_letter: bool = False) -> tuple[int | None, ...]:
        """Which good position each bad one copies; None where a word is drawn.

        A position whose rule is the same in both lists copies itself. A changed one whose bad rule
        equals the good rule at j takes the word of j (a word-order contrast); among several such j,
        one that moved and is not yet taken is preferred. to_the_letter: a trailing blank counts as
        a difference, as in the published generator.
        """
        good, bad = list(self.good_rules), list(self.bad_rules)
        if not to_the_letter:
            good, bad = list(map(normalised, good)), list(map(normalised, bad))
        sources: list[int | None] = []
        for index, wanted in enumerate(bad):
            same = [j for j, rule in enumerate(good) if rule == wanted]
            same.sort(key=lambda j: (j != index, j in sources, good[j] == bad[j], j))
            sources.append(same[0] if same else None)
        return tuple(sources)


def parse_paradigm(text: str, where: str) -> Paradigm:
    """Read one paradigm; errors name the file and the row (rows count from 0)."""
    raw = composed(parse_json(text, where))
    if not isinstance(raw, dict):
        raise UserError(f"{where}: must be an object with uid, phenomenon, good_rule and bad_rule")
    for name in ("uid", "good_rule", "bad_rule"):
        if not raw.get(name):
            raise UserError(f"{where}: '{name}' is missing or empty; add it")
    for name in ("good_rule", "bad_rule"):
        if not isinstance(raw[name], list) or not all(isinstance(rule, str) for rule in raw[name]):
            raise UserError(f"{where}: '{name}' must be a list of strings, one per position")
    if len(raw["good_rule"]) != len(raw["bad_rule"]):
        raise UserError(
            f"{where}: good_rule has {len(raw['good_rule'])} rows, bad_rule "
            f"{len(raw['bad_rule'])}; fill the shorter one with empty rows"
        )
    for name in ("uid", "user", "phenomenon"):
        if not isinstance(raw.get(name, ""), str):
            raise UserError(f"{where}: '{name}' must be a string")
    sides = [
        tuple(parse_position(rule, f"{where}: {name} row {i}") for i, rule in enumerate(raw[name]))
        for name in ("good_rule", "bad_rule")
    ]
    return Paradigm(
        uid=raw["uid"],
        user=raw.get("user", ""),
        phenomenon=raw.get("phenomenon", ""),
        strict=bool(raw.get("strict_MP", True)),
        separator=str(raw.get("sep", "")),
        good_rules=tuple(raw["good_rule"]),
        bad_rules=tuple(raw["bad_rule"]),
        good=sides[0],
        bad=sides[1],
        where=where,
    )


def read_paradigms(path: Path) -> list[Paradigm]:
    """One file, or all ``.json`` files of a folder or zip in name order."""
    if path.suffix == ".json":
        return [parse_paradigm(read_utf8(path), path.name)]
    source = open_source(path)
    names = [name for name in source.names() if name.endswith(".json")]
    if not names:
        raise UserError(f"{path}: no .json paradigm files here; name a folder or zip of them")
    return [parse_paradigm(decode_utf8(source.read(name), name), name) for name in names]


def check_paradigm(paradigm: Paradigm, vocabulary: Vocabulary, phrases: Phrases) -> None:
    """``UserError`` for a name that does not exist and for a set of words that is empty."""
    for side, positions in (("good_rule", paradigm.good), ("bad_rule", paradigm.bad)):
        for index, position in enumerate(positions):
            where = f"{paradigm.where}: {side} row {index}"
            for alternative in position:
                check_alternative(
                    alternative,
                    len(positions),
                    vocabulary,
                    phrases,
                    where,
                    in_good=side == "good_rule",
                )


def check_alternative(
    rule: Alternative,
    length: int,
    vocabulary: Vocabulary,
    phrases: Phrases,
    where: str,
    *,
    in_good: bool,
) -> None:
    """``UserError`` for a rule of a list of ``length`` rows that cannot draw anything."""
    if isinstance(rule, PhraseRule):
        check_phrase_rule(rule, vocabulary, phrases, where)
    elif isinstance(rule, Lexical):
        if in_good and any(agreement.good for agreement in rule.agreements):
            raise UserError(
                f"{where}: goodPosition refers to the good sentence, so it belongs in bad_rule only"
            )
        check_lexical(rule, length, vocabulary, where)


def check_lexical(rule: Lexical, length: int, vocabulary: Vocabulary, where: str) -> None:
    """Columns exist, positions are inside the list, and at least one word meets the conditions."""
    columns = [name for name, _ in rule.conditions]
    for agreement in rule.agreements:
        columns += agreement.properties
    for name in columns:
        if name not in vocabulary.columns:
            raise UserError(
                f"{where}: unknown column '{name}'; "
                f"{vocabulary.where} has {', '.join(vocabulary.columns)}"
            )
    for agreement in rule.agreements:
        if not -length <= agreement.position < length:
            raise UserError(
                f"{where}: position {agreement.position} is out of range; "
                f"the list has rows 0 to {length - 1}"
            )
    if not vocabulary.select(rule.conditions):
        conditions = " ".join(
            f"{name}:{'/'.join(sorted(values))}" for name, values in rule.conditions
        )
        raise UserError(
            f"{where}: no word of {vocabulary.where} meets {conditions}; loosen it or add words"
        )


def check_phrase_rule(
    rule: PhraseRule, vocabulary: Vocabulary, phrases: Phrases, where: str
) -> None:
    """The phrase exists, its filters point inside it, and each of its words can be drawn."""
    if rule.name not in phrases:
        raise UserError(
            f"{where}: unknown phrase '{rule.name}'; known: {', '.join(sorted(phrases))}"
        )
    for sequence in phrases[rule.name]:
        for index, conditions in rule.filters:
            if not -len(sequence) <= index < len(sequence):
                raise UserError(
                    f"{where}: filter index {index} is out of range for phrase '{rule.name}' of "
                    f"{len(sequence)} elements"
                )
            check_lexical(Lexical(conditions), len(sequence), vocabulary, where)
        for element in sequence:
            if isinstance(element, Lexical):
                if any(agreement.good for agreement in element.agreements):
                    raise UserError(
                        f"{where}: phrase '{rule.name}': goodPosition cannot be in a phrase; "
                        "use it in a bad_rule row"
                    )
                check_lexical(element, len(sequence), vocabulary, f"{where}: phrase '{rule.name}'")
            elif isinstance(element, PhraseRule):
                check_phrase_rule(element, vocabulary, phrases, where)
