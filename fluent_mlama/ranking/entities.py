"""Protocol `corrected`: candidates are entities, each with the strings that name it (docs/protocols.md, step 4 and 5)."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fluent_mlama.languages import Language, fold_case
from fluent_mlama.ranking.text import Frame, comparable, in_another_script
from fluent_mlama.records.benchmark import TEMPLATE, Benchmark, split_aliases

DISTRACTOR_LIMIT = 50
FEW_DISTRACTORS = 10
"""Below this many distractors a rank says little: scored and flagged."""
SEED = 0
_CODE_LETTERS = 3


@dataclass(frozen=True, slots=True)
class Entity:
    """One object of the file. All strings are NFC.

    labels: its labels and the objects found in sentences, in the order they were met. aliases: further target-language
    names. located: verbalisation -> the object form found most often in it (first met where several are).
    claimed: every string that names it, case-folded, with those that also name another entity and so count for neither.
    """

    uri: str
    labels: tuple[str, ...]
    aliases: tuple[str, ...]
    located: Mapping[str, str]
    claimed: frozenset[str]

    @property
    def forms(self) -> tuple[str, ...]:
        """What is scored for it: labels, then aliases; empty where each of its strings names another entity as well."""
        return self.labels + self.aliases

    def own_form(self, verbalisation: str) -> str:
        """As a distractor: the form found in this verbalisation, else its label (else its first form that is its alone)."""
        for form in (self.located.get(verbalisation), *self.labels):
            if form is not None and form in self.forms:
                return form
        return self.forms[0]


def gather_entities(
    benchmark: Benchmark,
    frames: Mapping[str, Mapping[int, Frame]],
    language: Language,
    *,
    with_aliases: bool = True,
    with_english: bool = False,
) -> dict[str, Entity]:
    """Entities of a file by obj_uri, in file order.

    frames: verbalisation -> row -> the frame of a usable object; rows without one add their label and aliases alone.
    with_english: let the English label be a form (off in the protocol; the ablation asks what it does).
    """
    labels: dict[str, dict[str, None]] = defaultdict(dict)
    aliases: dict[str, dict[str, None]] = defaultdict(dict)
    located: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    columns = ["obj_uri", "obj_label", "aliases"]
    has_english = "en_obj_label" in benchmark.table.columns
    english_of = (
        benchmark.table["en_obj_label"].tolist() if has_english else [""] * len(benchmark.table)
    )
    published = all(benchmark.columns(v).status is None for v in benchmark.verbalisations)
    for (row, (uri, label, cell)), english in zip(
        _rows(benchmark, columns), english_of, strict=True
    ):
        if comparable(label):
            labels[uri][comparable(label)] = None
        for v, found in frames.items():
            if v != TEMPLATE and row in found:
                form = comparable(found[row].form)
                labels[uri][form] = None
                located[uri][v][form] += 1
        if with_aliases:
            listed = [comparable(alias) for alias in split_aliases(cell) if alias.strip()]
            names = (
                listed if with_english else _without_english(listed, comparable(english), published)
            )
            aliases[uri].update(
                dict.fromkeys(alias for alias in names if not _is_foreign_code(alias, language))
            )
        if with_english and comparable(english):
            aliases[uri][comparable(english)] = None
    claimed = {uri: {**names, **aliases[uri]} for uri, names in labels.items()}
    owners = Counter(form for names in claimed.values() for form in names)
    return {
        uri: Entity(
            uri,
            labels=tuple(form for form in names if owners[form] == 1),
            aliases=tuple(form for form in aliases[uri] if form not in names and owners[form] == 1),
            located={v: counts.most_common(1)[0][0] for v, counts in located[uri].items()},
            claimed=frozenset(fold_case(form, language.code) for form in claimed[uri]),
        )
        for uri, names in labels.items()
    }


def _rows(benchmark: Benchmark, columns: Sequence[str]) -> Iterable[tuple[int, tuple[str, ...]]]:
    cells = benchmark.table[list(columns)].itertuples(index=False, name=None)
    return zip((int(row) for row in benchmark.table.index), cells, strict=True)


def _without_english(listed: Sequence[str], english: str, published: bool) -> list[str]:
    """The aliases less the English label, which published files put first; if it comes again it is a target-language form too."""
    if listed and (published or listed[0] == english):
        return list(listed[1:])
    return list(listed)


def _is_foreign_code(alias: str, language: Language) -> bool:
    """A code such as `nl` in a Cyrillic or Chinese file: three letters or fewer, in another script."""
    return sum(character.isalpha() for character in alias) <= _CODE_LETTERS and in_another_script(
        alias, language
    )


def sampling_order(entities: Iterable[Entity], relation: str, seed: int = SEED) -> list[Entity]:
    """Entities in ascending sha256 of ``seed|relation|obj_uri``: one fixed, recorded draw."""
    return sorted(
        entities,
        key=lambda entity: hashlib.sha256(f"{seed}|{relation}|{entity.uri}".encode()).digest(),
    )


def draw_distractors(
    gold: Entity, also_valid: frozenset[str], order: Sequence[Entity]
) -> list[Entity]:
    """The first 50 entities of ``order`` that are wrong for this fact.

    Not gold; no other object that the benchmark gives for the same subject (``also_valid``: obj_uris); none that shares
    a case-folded string with gold; none without a string of its own.
    """
    drawn: list[Entity] = []
    for entity in order:
        if len(drawn) == DISTRACTOR_LIMIT:
            break
        if entity.uri == gold.uri or entity.uri in also_valid or not entity.forms:
            continue
        if gold.claimed.isdisjoint(entity.claimed):
            drawn.append(entity)
    return drawn
