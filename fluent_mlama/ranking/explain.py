"""One fact for a person to follow: prompt, tokens, candidates and scores, best first, correct forms marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tabulate import tabulate

from fluent_mlama.console import mark_span
from fluent_mlama.ranking.task import Question, Task, cells_by_row, stable_ranks, tied_rank
from fluent_mlama.scoring.contract import Arithmetic, CandidateScore, RequestScore, Scorer

_MARKS = {"correct": "correct", "alias": "alias (correct in the wide ranks)", "distractor": ""}


def only_subject(task: Task, subject: str, obj: str = "") -> Task:
    """The task's questions (and left-out rows) about this sub_uri, and this obj_uri where one is given."""
    cells = cells_by_row(task.benchmark)

    def wanted(row: int) -> bool:
        return cells[row]["sub_uri"] == subject and obj in {"", cells[row]["obj_uri"]}

    return replace(
        task,
        questions=tuple(question for question in task.questions if wanted(question.row)),
        left_out={row: reason for row, reason in task.left_out.items() if wanted(row)},
        neutral_prompt=None,
    )


def explain_task(task: Task, scorer: Scorer, arithmetic: Arithmetic) -> str:
    """Score the task's questions afresh and tell each in full."""
    answers = scorer.score(task.requests(), tokenisation=task.tokenisation, arithmetic=arithmetic)
    cells = cells_by_row(task.benchmark)
    parts = []
    for question, answer in zip(task.questions, answers, strict=True):
        row = cells[question.row]
        parts += [
            f"{task.benchmark.name} row {question.row}, {question.verbalisation}: {row['sub_label']} ({question.sub_uri}), "
            f"{task.benchmark.relation}, {row['obj_label']} ({question.obj_uri})",
            *_prompt_lines(question, answer, scorer),
            (_entity_table if task.protocol == "corrected" else _form_table)(
                question, answer, scorer
            ),
            "",
        ]
    return "\n".join(parts)


def _prompt_lines(question: Question, answer: RequestScore, scorer: Scorer) -> list[str]:
    used = next(
        (
            n
            for n, choice in enumerate(question.choices)
            if choice.own and choice.role != "distractor"
        ),
        0,
    )
    shown = question.request.candidates[used]
    sentence = question.request.prompt + shown.text + shown.tail
    end = len(question.request.prompt + shown.text)
    return [
        f"  sentence   {mark_span(sentence, end - len(question.choices[used].form), end)}",
        f"  prompt     {question.request.prompt!r}",
        f"  tokens     {_spell(scorer, answer.prompt_token_ids)}",
        f"  prompt log-probability {answer.prompt_logprob:z.4f} (natural log, tokens 2 to {len(answer.prompt_token_ids)})",
    ]


def _form_table(question: Question, answer: RequestScore, scorer: Scorer) -> str:
    """Protocol `paper`: each form is a candidate of its own; aliases have a place in the wide ranks only."""
    logprobs = [part.logprob for part in answer.candidates]
    wide = stable_ranks(logprobs)
    competing = [number for number, choice in enumerate(question.choices) if choice.role != "alias"]
    narrow = dict(
        zip(competing, stable_ranks([logprobs[number] for number in competing]), strict=True)
    )
    rows = []
    for number in sorted(range(len(wide)), key=lambda number: wide[number]):
        choice, part = question.choices[number], answer.candidates[number]
        places = [narrow.get(number, ""), wide[number]]
        rows.append(
            [
                *places,
                f"{part.logprob:z.4f}",
                choice.form,
                _MARKS[choice.role],
                _pieces(scorer, part),
            ]
        )
    return _tabulate(
        ["rank", "wide", "log-prob", "candidate", "", "tokens and their log-probs"], rows
    )


def _entity_table(question: Question, answer: RequestScore, scorer: Scorer) -> str:
    """Protocol `corrected`: an entity scores what its best form scores; the other forms stand below it."""
    forms: dict[str, list[int]] = {}
    for number, choice in enumerate(question.choices):
        forms.setdefault(choice.entity, []).append(number)
    logprobs = [part.logprob for part in answer.candidates]
    best = {
        entity: max(logprobs[number] for number in numbers) for entity, numbers in forms.items()
    }
    rows = []
    for entity in sorted(forms, key=lambda entity: -best[entity]):
        rank = tied_rank(best[entity], [score for other, score in best.items() if other != entity])
        for place, number in enumerate(sorted(forms[entity], key=lambda number: -logprobs[number])):
            choice, part = question.choices[number], answer.candidates[number]
            head = [f"{rank.mid:g}", entity] if place == 0 else ["", ""]
            marks = [
                *(["correct"] if entity == question.obj_uri else []),
                *(["own form"] if choice.own else []),
            ]
            rows.append(
                [
                    *head,
                    f"{part.logprob:z.4f}",
                    choice.form,
                    ", ".join(marks),
                    _pieces(scorer, part),
                ]
            )
    own = {
        choice.entity: part.logprob
        for choice, part in zip(question.choices, answer.candidates, strict=True)
        if choice.own
    }
    lines = [
        _tabulate(
            ["mid-rank", "entity", "log-prob", "form", "", "tokens and their log-probs"], rows
        )
    ]
    if question.obj_uri in own:
        rank = tied_rank(own.pop(question.obj_uri), list(own.values()))
        lines.append(f"  by own forms alone: mid-rank {rank.mid:g} of {1 + len(own)}")
    return "\n".join(lines)


def _tabulate(headers: list[str], rows: list[list[Any]]) -> str:
    return tabulate(
        rows,
        headers=headers,
        disable_numparse=True,
        colalign=("right", *["left"] * (len(headers) - 1)),
    )


def _pieces(scorer: Scorer, part: CandidateScore) -> str:
    return " ".join(
        f"{token!r}:{logprob:z.3f}"
        for token, logprob in zip(scorer.tokens(part.token_ids), part.token_logprobs, strict=True)
    )


def _spell(scorer: Scorer, token_ids: Sequence[int]) -> str:
    return " ".join(map(repr, scorer.tokens(token_ids)))
