"""Datasets for LM-Pub-Quiz, in the layout of BEAR (Wiland, Ploner and Akbik 2024), made for version
0.3.3.

    ru_phrasebook/                      one dataset a language and verbalisation
      metadata_relations.json           relation -> templates, answer space, what it is part of
      P36.jsonl                         one instance per line: sub_id, sub_label, obj_id, obj_label, …

A BEAR relation has one template and one answer space with one label per entity. Where all sentences
of a relation are one template with the subject's own label in it, that is what is written.
Elsewhere (the subject inflected, a verb with the subject's gender) ``[X]`` takes the sentence up to
the object, so that every row is asked as it stands; ``subject`` keeps the label. Sentences with
another tail, or another form of the same object, make further relations (`P407-2`), which
``relation`` in the metadata holds together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fluent_mlama.console import UserError
from fluent_mlama.exporting.facts import (
    Fact,
    Facts,
    LeftOut,
    export_folder,
    write_json,
    write_json_lines,
)
from fluent_mlama.files import is_file_name
from fluent_mlama.languages import fold_case, language
from fluent_mlama.ranking.corrected import Entity, gather_entities, select_frames
from fluent_mlama.records.benchmark import Benchmark

METADATA = "metadata_relations.json"
SUBJECT, ANSWER = "[X]", "[Y]"


class Key(NamedTuple):
    """What the instances of one BEAR relation share: the template, and the one entity whose label
    differs from the others'."""

    template: str
    entity: str = ""
    form: str = ""


@dataclass(frozen=True)
class AnswerSpace:
    """The entities that compete in one file. valid: sub_uri -> every obj_uri that the file gives
    for it."""

    entities: Mapping[str, Entity]
    valid: Mapping[str, Set[str]]

    def labels(self, verbalisation: str) -> dict[str, str]:
        """obj_uri -> its form in the verbalisation."""
        return {uri: entity.strings[verbalisation] for uri, entity in self.entities.items()}

    def why_not(self, fact: Fact) -> str:
        """Why the fact cannot be asked in this answer space ("" where it can)."""
        if len(self.valid[fact.cells["sub_uri"]] & self.entities.keys()) > 1:
            return "another answer is right for its subject as well"
        name = fold_case(fact.own_forms[fact.gold], fact.lang)
        if any(
            uri != fact.gold and fold_case(label, fact.lang) == name
            for uri, label in self.labels(fact.verbalisation).items()
        ):
            return "another answer shares a name with its object"
        if SUBJECT in fact.tail or ANSWER in fact.tail:
            return f"its sentence holds {SUBJECT} or {ANSWER} behind the object"
        return ""


def export_bear(facts: Facts, path: Path) -> None:
    """Write the datasets; questions that the format cannot hold move from ``facts.facts`` to
    ``facts.left_out``."""
    for v in dict.fromkeys(fact.verbalisation for fact in facts.facts):
        if not is_file_name(f"x_{v}"):
            raise UserError(
                f"verbalisation '{v}' cannot be part of a folder's name, which BEAR needs; "
                "rename its columns"
            )
    spaces = {
        (bench.lang, bench.relation): answer_space(bench, verbalisations)
        for bench, verbalisations in facts.files.items()
    }
    names = {(bench.lang, bench.relation): bench.name for bench in facts.files}
    kept: list[Fact] = []
    for fact in facts.facts:
        place = (fact.lang, fact.relation)
        if reason := spaces[place].why_not(fact):
            uris = fact.cells["sub_uri"], fact.gold
            facts.left_out.append(
                LeftOut(names[place], fact.row, *uris, fact.verbalisation, reason)
            )
        else:
            kept.append(fact)
    if not kept:
        raise UserError(
            "BEAR holds questions with one right answer in a space that the relation shares; "
            f"there is none: {facts.told()}"
        )
    facts.facts = kept
    with export_folder(path, facts, "bear") as folder:
        for (lang, v), its_facts in facts.by_task().items():
            labels = {
                relation: spaces[lang, relation].labels(v) for relation in _relations(its_facts)
            }
            _write_dataset(folder / f"{lang}_{v}", its_facts, labels)


def _write_dataset(
    folder: Path, facts: Sequence[Fact], labels: Mapping[str, Mapping[str, str]]
) -> None:
    metadata: dict[str, Any] = {}
    for relation in _relations(facts):
        groups = group_by_template(
            [fact for fact in facts if fact.relation == relation], labels[relation]
        )
        for number, (key, members) in enumerate(groups.items(), start=1):
            code = relation if len(groups) == 1 else f"{relation}-{number}"
            write_json_lines(
                folder / f"{code}.jsonl", [instance(fact, key.template) for fact in members]
            )
            answers = {**labels[relation], **({key.entity: key.form} if key.entity else {})}
            metadata[code] = {
                "templates": [key.template],
                "answer_space_labels": list(answers.values()),
                "answer_space_ids": list(answers),
                "relation": relation,
            }
    write_json(folder / METADATA, metadata)


def answer_space(benchmark: Benchmark, verbalisations: Sequence[str]) -> AnswerSpace:
    """The entities of the file's usable rows, and what is right for which subject."""
    frames, usable, _ = select_frames(benchmark, verbalisations)
    entities = gather_entities(benchmark, frames, language(benchmark.lang))
    uris = dict.fromkeys(benchmark.table["obj_uri"].loc[usable])
    valid: dict[str, set[str]] = defaultdict(set)
    for sub_uri, obj_uri in zip(
        benchmark.table["sub_uri"], benchmark.table["obj_uri"], strict=True
    ):
        valid[sub_uri].add(obj_uri)
    return AnswerSpace({uri: entities[uri] for uri in uris}, valid)


def group_by_template(facts: Sequence[Fact], labels: Mapping[str, str]) -> dict[Key, list[Fact]]:
    """The facts of one relation by what a BEAR relation shares, in the order in which they are
    met."""
    patterns = {pattern_of(fact) for fact in facts}
    shared = (
        len(patterns) == 1
        and "" not in patterns
        and not all(_is_number(fact.cells["sub_label"]) for fact in facts)
    )
    groups: dict[Key, list[Fact]] = {}
    for fact in facts:
        template = pattern_of(fact) if shared else f"{SUBJECT}{fact.separator}{ANSWER}{fact.tail}"
        own = fact.own_forms[fact.gold]
        key = Key(template) if own == labels[fact.gold] else Key(template, fact.gold, own)
        groups.setdefault(key, []).append(fact)
    return groups


def pattern_of(fact: Fact) -> str:
    """The sentence with [X] for the subject's label and [Y] for the object; "" where the label does
    not stand in front of it."""
    label = fact.cells["sub_label"]
    before, found, after = fact.prompt.partition(label)
    pattern = f"{before}{SUBJECT}{after}{fact.separator}{ANSWER}{fact.tail}"
    return (
        pattern
        if label and found and (pattern.count(SUBJECT), pattern.count(ANSWER)) == (1, 1)
        else ""
    )


def instance(fact: Fact, template: str) -> dict[str, Any]:
    """One line of a relation's file."""
    cells = fact.cells
    return {
        "sub_id": cells["sub_uri"],
        "sub_label": cells["sub_label"] if template == pattern_of(fact) else fact.prompt,
        "obj_id": fact.gold,
        "obj_label": fact.own_forms[fact.gold],
        "subject": cells["sub_label"],
        "row": fact.row,
    }


def _relations(facts: Sequence[Fact]) -> list[str]:
    return list(dict.fromkeys(fact.relation for fact in facts))


def _is_number(label: str) -> bool:
    """Whether pandas, which LM-Pub-Quiz reads the file with, would make a number of this label
    (`007` becomes 7)."""
    try:
        float(label)
    except ValueError:
        return False
    return True
