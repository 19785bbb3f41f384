"""One fact for a person to follow: prompt, tokens, candidates and scores, best first, correct forms marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tabulate import tabulate

from fluent.console import mark_span
from fluent.ranking.ranks import stable_ranks
from fluent.ranking.task import Question, Task, cells_by_row
from fluent.scoring.contract import Arithmetic, CandidateScore, RequestScore, Scorer

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
            _table(question, answer, scorer),
            "",
        ]
    return "\n".join(parts)


def _prompt_lines(question: Question, answer: RequestScore, scorer: Scorer) -> list[str]:
    used = next((n for n, choice in enumerate(question.choices) if choice.own and choice.role != "distractor"), 0)
    shown = question.request.candidates[used]
    sentence = question.request.prompt + shown.text + shown.tail
    start = len(question.request.prompt)
    return [
        f"  sentence   {mark_span(sentence, start, start + len(shown.text))}",
        f"  prompt     {question.request.prompt!r}",
        f"  tokens     {_spell(scorer, answer.prompt_token_ids)}",
        f"  prompt log-probability {answer.prompt_logprob:.4f} (natural log, tokens 2 to {len(answer.prompt_token_ids)})",
    ]


def _table(question: Question, answer: RequestScore, scorer: Scorer) -> str:
    scores = [part.logprob for part in answer.candidates]
    ranks = stable_ranks(scores)
    rows = []
    for number in sorted(range(len(ranks)), key=lambda number: ranks[number]):
        choice, part = question.choices[number], answer.candidates[number]
        rows.append([ranks[number], f"{part.logprob:.4f}", choice.form, _MARKS[choice.role], _pieces(scorer, part)])
    return tabulate(
        rows,
        headers=["rank", "log-prob", "candidate", "", "tokens and their log-probs"],
        disable_numparse=True,
        colalign=("right", "right"),
    )


def _pieces(scorer: Scorer, part: CandidateScore) -> str:
    return " ".join(f"{token!r}:{logprob:.3f}" for token, logprob in zip(scorer.tokens(part.token_ids), part.token_logprobs, strict=True))


def _spell(scorer: Scorer, token_ids: Sequence[int]) -> str:
    return " ".join(map(repr, scorer.tokens(token_ids)))
