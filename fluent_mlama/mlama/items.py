"""What mLAMA asks: a question per fact (the text left and right of the object) and the candidates.

Candidates are all objects that the relation has in that language: the objects of the triples at
hand, or published lists, folders or zips of ``<lang>.json`` files that hold ``{relation:
{"subjects": [...], "objects": [...]}}``. Several lists may be given (T-REx and GoogleRE); a
relation is looked up in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from fluent_mlama.console import UserError
from fluent_mlama.files import Source, open_source, parse_json
from fluent_mlama.reader import MLama, fill_template, is_valid_template
from fluent_mlama.records.facts import Triple

SLOT = "[Y]"


@dataclass(frozen=True, slots=True)
class Question:
    """A fact that is asked for: its triple and the texts around the object."""

    triple: Triple
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """All questions of one (language, relation). left_out: reason -> triples that cannot be asked
    for.
    """

    lang: str
    relation: str
    template: str
    questions: tuple[Question, ...]
    left_out: Mapping[str, int]

    @property
    def ends_with_object(self) -> bool:
        """Whether nothing but marks and blanks follows the object."""
        return not any(
            character.isalnum()
            for character in self.template.partition(SLOT)[2].replace("[X]", "X")
        )


def make_questions(
    data: MLama,
    lang: str,
    relation: str,
    templates: Mapping[str, str] | None = None,
    masks: Sequence[str] = (),
) -> QuestionSet:
    """The questions of a relation, in the order of lineid.

    templates: relation -> template instead of the data's own. masks: mask tokens, which no subject
    may hold: such a triple is left out, since its subject would be taken for the question.
    ``UserError``: no template, or not one [X] and one [Y].
    """
    template = (
        data.template(lang, relation)
        if templates is None
        else _other_template(templates, lang, relation)
    )
    before, _, after = template.partition(SLOT)
    questions = []
    masked = 0
    for _, triple in sorted(data.triples(lang, relation).items()):
        if any(mask in triple.sub_label for mask in masks):
            masked += 1
            continue
        left, right = (fill_template(side, triple, "x") for side in (before, after))
        questions.append(Question(triple, left, right))
    return QuestionSet(
        lang, relation, template, tuple(questions), {"mask-in-subject": masked} if masked else {}
    )


def _other_template(templates: Mapping[str, str], lang: str, relation: str) -> str:
    template = templates.get(relation)
    if template is None:
        raise UserError(
            f"the template set has no template for {relation} in {lang}; add one or choose other "
            "relations"
        )
    if not is_valid_template(template):
        raise UserError(
            f"the template set's template of {relation} in {lang} needs one [X] and one [Y]: "
            f"{template!r}"
        )
    return template


class CandidateLists:
    """Published lists, read a language at a time; without any, the objects of the triples are the
    candidates.
    """

    def __init__(self, paths: Sequence[Path] = ()) -> None:
        self._sources: list[Source] = [open_source(path) for path in paths]
        self._read: dict[str, dict[str, list[str]]] = {}

    @property
    def kind(self) -> str:
        """For the record: where candidates come from."""
        return "published" if self._sources else "own"

    def of(self, lang: str, relation: str, triples: Iterable[Triple]) -> tuple[str, ...]:
        """Sorted, each once, without blanks; () where there are none. ``UserError``: the lists have
        no such language or relation.
        """
        if not self._sources:
            return distinct(triple.obj_label for triple in triples)
        if lang not in self._read:
            self._read[lang] = self._load(lang)
        if relation not in self._read[lang]:
            raise UserError(
                f"the candidate lists {self._names()} have no relation {relation} in {lang}.json; "
                "leave --candidates out"
            )
        return distinct(self._read[lang][relation])

    def _load(self, lang: str) -> dict[str, list[str]]:
        name = f"{lang}.json"
        holding = [source for source in self._sources if name in source.names()]
        if not holding:
            raise UserError(
                f"no candidate list {name} in {self._names()}; choose other languages or leave "
                "--candidates out"
            )
        lists: dict[str, list[str]] = {}
        for source in holding:
            for relation, objects in read_objects(source.read(name), source.where(name)).items():
                lists.setdefault(relation, []).extend(objects)
        return lists

    def _names(self) -> str:
        return ", ".join(str(source.path) for source in self._sources)


def read_objects(data: bytes, where: str) -> dict[str, list[str]]:
    """relation -> objects of one published file. ``UserError`` where it is cut off or of another
    layout.
    """
    content = parse_json(data, where)
    try:
        lists = {relation: part["objects"] for relation, part in content.items()}
    except (AttributeError, KeyError, TypeError):
        raise UserError(
            f'{where} is no candidate list: expected {{relation: {{"objects": [...]}}}}'
        ) from None
    for relation, objects in lists.items():
        if not isinstance(objects, list) or not all(isinstance(label, str) for label in objects):
            raise UserError(f"{where}: the objects of {relation} are no list of labels")
    return {
        relation: [normalize("NFC", label) for label in labels]
        for relation, labels in lists.items()
    }


def distinct(labels: Iterable[str]) -> tuple[str, ...]:
    """The labels in order, each once, those of blanks left out."""
    return tuple(sorted({label for label in labels if label.strip()}))
