"""Protocol `corrected`: candidates are entities with one string per verbalisation (docs/protocols.md, steps 4 and 5)."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fluent_mlama.languages import Language, fold_case, is_known
from fluent_mlama.ranking.text import Frame, comparable, script_of
from fluent_mlama.records.benchmark import Benchmark, split_aliases

MAX_DISTRACTORS = 50
FEW_DISTRACTORS = 10
"""Below this many distractors a rank says little: scored and flagged."""
SEED = 0
CODE_LETTERS = 3
_UNCASED = frozenset({"Han", "Hiragana", "Katakana", "Hangul"})
"""Scripts in which a name of one to three letters is an ordinary name."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One object of the file. All strings are NFC.

    strings: verbalisation -> the form it has there most often (first met where several are); ``template``: its label.
    names: every label, found form and alias that is not a code, in the order they were met (``--forms all``).
    """

    uri: str
    strings: Mapping[str, str]
    names: tuple[str, ...]


def gather_entities(
    benchmark: Benchmark, frames: Mapping[str, Mapping[int, Frame]], language: Language
) -> dict[str, Entity]:
    """Entities of a file by obj_uri, in file order.

    frames: verbalisation -> row -> the frame of a usable object. An entity that no usable row names in a
    verbalisation has no string there.
    """
    found: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    names: dict[str, dict[str, None]] = defaultdict(dict)
    aliases: dict[str, dict[str, None]] = defaultdict(dict)
    table = benchmark.table[["obj_uri", "obj_label", "aliases"]]
    for row, uri, label, cell in table.itertuples(index=True, name=None):
        names[uri][comparable(label)] = None
        for v, of_row in frames.items():
            if row in of_row:
                form = comparable(of_row[row].form)
                found[uri][v][form] += 1
                names[uri][form] = None
        for alias in map(comparable, split_aliases(cell)):
            if not is_code(alias, language):
                aliases[uri][alias] = None
    return {
        uri: Entity(
            uri,
            # most_common keeps the order of insertion among equals: the first met
            strings={v: forms.most_common(1)[0][0] for v, forms in found[uri].items()},
            names=tuple(name for name in {**own, **aliases[uri]} if name),
        )
        for uri, own in names.items()
    }


def is_code(alias: str, language: Language) -> bool:
    """Whether an alias is a code and no name: ``de``, ``est``, ``zh-Hant``.

    Three letters or fewer, or a language code; Han, Kana and Hangul are exempt, where short names are names.
    """
    letters = [character for character in alias if character.isalpha()]
    if any(script_of(letter) in _UNCASED for letter in letters):
        return False
    code = fold_case(alias, language.code).partition("-")[0]
    return len(letters) <= CODE_LETTERS or is_known(code) or code == language.code


def subject_order(
    entities: Iterable[str], relation: str, subject: str, seed: int = SEED
) -> list[str]:
    """obj_uris in ascending sha256 of ``seed|relation|sub_uri|obj_uri``: each subject has a draw of its own."""
    head = hashlib.sha256(f"{seed}|{relation}|{subject}|".encode())

    def digest(uri: str) -> bytes:
        own = head.copy()
        own.update(uri.encode())
        return own.digest()

    return sorted(entities, key=digest)


def draw_distractors(
    gold: Mapping[str, str],
    order: Sequence[str],
    entities: Mapping[str, Entity],
    also_valid: frozenset[str],
    language: Language,
) -> tuple[Entity, ...]:
    """The first 50 entities of ``order`` that are wrong for a fact, the same for every verbalisation.

    gold: verbalisation -> gold's string. also_valid: obj_uris that are right for this subject, gold's among them.
    An entity whose string in any verbalisation is gold's or an earlier distractor's (case-folded) is passed over.
    """
    drawn: list[Entity] = []
    taken = {v: {fold_case(form, language.code)} for v, form in gold.items()}
    for uri in order:
        if len(drawn) == MAX_DISTRACTORS:
            break
        if uri in also_valid:
            continue
        strings = {v: fold_case(form, language.code) for v, form in entities[uri].strings.items()}
        if any(strings[v] in taken[v] for v in gold):
            continue
        drawn.append(entities[uri])
        for v in gold:
            taken[v].add(strings[v])
    return tuple(drawn)
