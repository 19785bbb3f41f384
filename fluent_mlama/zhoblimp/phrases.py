"""Named phrases: sequences of elements that a rule ``phrase:Name`` expands to.

    {"Person": [ [{"type": "Lexical", "rule": {"pos": "NR", "subcat": "person"}}],        one sequence
                 [{"type": "Lexical", "rule": {"pos": "PN", "subcat": "person"}}] ]}      another one

Element types: Lexical and Matched (a dict of column: value, as in ``fluent_mlama.zhoblimp.rules``), Direct (a list of
literal words) and Phrase ({"name": ...}). Phrases may contain phrases, but not themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fluent_mlama.console import UserError
from fluent_mlama.json_text import parse_json
from fluent_mlama.zhoblimp.rules import Alternative, Lexical, Literals, PhraseRule, lexical
from fluent_mlama.zhoblimp.vocabulary import composed, read_utf8

Sequence = tuple[Alternative, ...]
Phrases = Mapping[str, tuple[Sequence, ...]]


def parse_phrases(text: str, where: str = "phrases") -> dict[str, tuple[Sequence, ...]]:
    """Read the JSON; broken JSON, unknown types, unknown names and cycles are ``UserError``s that name the phrase."""
    raw = composed(parse_json(text, where, make_object=_no_doubles(where)))
    if not isinstance(raw, dict):
        raise UserError(f"{where}: must be an object that maps phrase names to lists of sequences")
    phrases = {}
    for name, sequences in raw.items():
        if (
            not isinstance(sequences, list)
            or not sequences
            or not all(isinstance(one, list) and one for one in sequences)
        ):
            raise UserError(
                f"{where}: phrase '{name}' must be a non-empty list of non-empty sequences"
            )
        phrases[name] = tuple(
            tuple(
                _element(element, f"{where}: phrase '{name}', sequence {number}")
                for element in sequence
            )
            for number, sequence in enumerate(sequences)
        )
    check_phrases(phrases, {name: f"{where}: row {_row_of(name, text)}" for name in phrases})
    return phrases


def _row_of(name: str, text: str) -> int:
    """The row in which a phrase is defined (1 if it is spelt with escapes)."""
    found = re.search(re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:\s*\[", text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def read_phrases(path: Path) -> dict[str, tuple[Sequence, ...]]:
    """``parse_phrases`` of a UTF-8 file."""
    return parse_phrases(read_utf8(path), path.name)


def check_phrases(phrases: Phrases, where: Mapping[str, str]) -> None:
    """Every phrase that is named exists, and none contains itself. ``where``: file and row of each phrase."""
    for name in phrases:
        trail = [name]
        stack = [_inner(phrases, name)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
                trail.pop()
                continue
            if inner not in phrases:
                raise UserError(
                    f"{where[trail[-1]]}: phrase '{trail[-1]}' uses unknown phrase '{inner}'; known: {', '.join(sorted(phrases))}"
                )
            if inner in trail:
                raise UserError(
                    f"{where[trail[-1]]}: cycle in phrases: {' -> '.join([*trail, inner])}; a phrase must not contain itself"
                )
            trail.append(inner)
            stack.append(_inner(phrases, inner))


def _inner(phrases: Phrases, name: str) -> Iterator[str]:
    return iter(
        [
            element.name
            for sequence in phrases[name]
            for element in sequence
            if isinstance(element, PhraseRule)
        ]
    )


def _element(raw: Any, where: str) -> Alternative:
    kind, rule = (raw.get("type"), raw.get("rule")) if isinstance(raw, dict) else (None, None)
    if kind == "Direct" and isinstance(rule, list) and rule:
        return Literals(tuple(str(word) for word in rule))
    if kind == "Phrase" and isinstance(rule, dict) and isinstance(rule.get("name"), str):
        return PhraseRule(rule["name"])
    if kind in {"Lexical", "Matched"} and isinstance(rule, dict) and rule:
        parsed = lexical(rule, where)
        assert isinstance(parsed, Lexical)
        return parsed
    raise UserError(
        f"{where}: {json.dumps(raw, ensure_ascii=False)} is no element; type is Lexical, Matched, Direct or Phrase, with its rule"
    )


def _no_doubles(where: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in items]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"{where}: '{name}' is defined twice; rename one of them")
        return dict(items)

    return pairs
