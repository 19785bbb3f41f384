"""From triples and a template to questions: the text left and right of the object, for each subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluent_mlama.console import UserError
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
    """All questions of one (language, relation). left_out: reason -> triples that cannot be asked for."""

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

    templates: relation -> template instead of the data's own. masks: mask tokens, which no subject may hold: such a triple is
    left out, since its subject would be taken for the question. ``UserError``: no template, or not one [X] and one [Y].
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
            f"the template set has no template for {relation} in {lang}; add one or choose other relations"
        )
    if not is_valid_template(template):
        raise UserError(
            f"the template set's template of {relation} in {lang} needs one [X] and one [Y]: {template!r}"
        )
    return template
