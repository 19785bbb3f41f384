"""A paradigm file: one contrast, as a list of positions for the good sentence and one for the bad sentence.

{"uid": "BA_deletion", "user": "anna", "phenomenon": "BA", "strict_MP": false, "sep": "",
 "good_rule": ["pos:PN subcat:person", "把", ...], "bad_rule": [...]}
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fluent_mlama.console import UserError
from fluent_mlama.json_text import parse_json
from fluent_mlama.records.source import open_source
from fluent_mlama.zhoblimp.phrases import Phrases
from fluent_mlama.zhoblimp.rules import Lexical, PhraseRule, Position, normalised, parse_position
from fluent_mlama.zhoblimp.vocabulary import Vocabulary, composed, decode_utf8, read_utf8

_TEXT_FIELDS = ("uid", "user", "phenomenon")


@dataclass(frozen=True)
class Paradigm:
    """One contrast. ``good`` and ``bad`` are parsed position by position; the rules keep their text for comparison.

    strict: only pairs of equal length (characters for an empty separator, else words) are minimal pairs.
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
        """Where each word of the bad sentence comes from: a good position to copy, or None to draw afresh.

        A position whose rule is the same in both lists copies itself. A changed one whose bad rule equals the good
        rule at j takes the word of j (a word-order contrast); among several such j, one that moved and is not yet
        taken is preferred. to_the_letter: a trailing blank counts as a difference, as in the published generator.
        """
        good, bad = (
            [rule if to_the_letter else normalised(rule) for rule in rules]
            for rules in (self.good_rules, self.bad_rules)
        )
        sources: list[int | None] = []
        for index, wanted in enumerate(bad):
            same = [j for j, rule in enumerate(good) if rule == wanted]
            same.sort(key=lambda j: (j != index, j in sources, good[j] == bad[j], j))
            sources.append(same[0] if same else None)
        return tuple(sources)


def parse_paradigm(text: str, where: str) -> Paradigm:
    """Read one paradigm; what is wrong is said with the file and the row (rows count from 0, as the rules do)."""
    raw = composed(parse_json(text, where))
    if not isinstance(raw, dict):
        raise UserError(f"{where}: must be an object with uid, phenomenon, good_rule and bad_rule")
    for name in ("uid", "good_rule", "bad_rule"):
        if not raw.get(name):
            raise UserError(f"{where}: '{name}' is missing or empty; add it")
    for name in ("good_rule", "bad_rule"):
        if not isinstance(raw[name], list) or not all(isinstance(rule, str) for rule in raw[name]):
            raise UserError(f"{where}: '{name}' must be a list of strings, one a position")
    if len(raw["good_rule"]) != len(raw["bad_rule"]):
        raise UserError(
            f"{where}: good_rule has {len(raw['good_rule'])} rows, bad_rule {len(raw['bad_rule'])}; fill the shorter one with empty rows"
        )
    for name in _TEXT_FIELDS:
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
    """Names that do not exist and word sets that are empty are ``UserError``s before anything is generated."""
    for side, positions in (("good_rule", paradigm.good), ("bad_rule", paradigm.bad)):
        for index, position in enumerate(positions):
            for alternative in position:
                where = f"{paradigm.where}: {side} row {index}"
                if isinstance(alternative, Lexical):
                    if side == "good_rule" and any(
                        agreement.good for agreement in alternative.agreements
                    ):
                        raise UserError(
                            f"{where}: goodPosition refers to the good sentence, so it belongs in bad_rule only"
                        )
                    check_lexical(alternative, len(positions), vocabulary, where)
                elif isinstance(alternative, PhraseRule):
                    check_phrase_rule(alternative, vocabulary, phrases, where)


def check_lexical(rule: Lexical, length: int, vocabulary: Vocabulary, where: str) -> None:
    """Columns exist, positions are inside the list of ``length``, and at least one word meets the conditions."""
    agreed = [
        (name, agreement.position) for agreement in rule.agreements for name in agreement.properties
    ]
    for name in [name for name, _ in rule.conditions] + [name for name, _ in agreed]:
        if name not in vocabulary.columns:
            raise UserError(
                f"{where}: unknown column '{name}'; {vocabulary.where} has {', '.join(vocabulary.columns)}"
            )
    for _, position in agreed:
        if not -length <= position < length:
            raise UserError(
                f"{where}: position {position} is out of range; the list has rows 0 to {length - 1}"
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
                    f"{where}: filter index {index} is out of range for phrase '{rule.name}' of {len(sequence)} elements"
                )
            check_lexical(Lexical(conditions), len(sequence), vocabulary, where)
        for element in sequence:
            if isinstance(element, Lexical):
                if any(agreement.good for agreement in element.agreements):
                    raise UserError(
                        f"{where}: phrase '{rule.name}': goodPosition cannot stand in a phrase; use it in a bad_rule row"
                    )
                check_lexical(element, len(sequence), vocabulary, f"{where}: phrase '{rule.name}'")
            elif isinstance(element, PhraseRule):
                check_phrase_rule(element, vocabulary, phrases, where)
