"""What a protocol asks the engine about one benchmark file, and how the answers become a table of scores.

    Benchmark ──paper_task / corrected_task──▶ Task (questions) ──engine──▶ RequestScores ──score_table──▶ scores file ──▶ ranks

Ranks are made from the table of scores alone, whether it has just been made or was read from a file, so that ranking
again with a run's own settings gives its dumps byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.records.benchmark import Benchmark
from fluent_mlama.records.dump import ProtocolName
from fluent_mlama.records.scores import COLUMNS, NEUTRAL, Role
from fluent_mlama.scoring.contract import Candidate, Plan, Request, RequestScore, Tokenisation


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate of a question. entity: its obj_uri ("" in protocol `paper`). own: the form this verbalisation uses."""

    form: str
    role: Role
    entity: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One row in one verbalisation: the request for the engine, and what its candidates are (in the same order)."""

    row: int
    verbalisation: str
    sub_uri: str
    obj_uri: str
    request: Request
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Task:
    """All questions about one benchmark file by one protocol.

    questions: rows in file order, verbalisations in column order. left_out: row -> reason. beyond_limit: kept rows that
    ``--limit`` cut off. pool_limit, sampling: the most distractors a row gets, and how they are drawn. neutral_prompt:
    the prompt behind which every continuation is scored once more, None = not.
    notes: what the protocol wants kept in the run record.
    """

    benchmark: Benchmark
    verbalisations: tuple[str, ...]
    protocol: ProtocolName
    tokenisation: Tokenisation
    questions: tuple[Question, ...]
    left_out: Mapping[int, str]
    pool_limit: int
    sampling: str
    beyond_limit: int = 0
    neutral_prompt: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[int, ...]:
        """Row numbers that are to be scored, in file order."""
        return tuple(dict.fromkeys(question.row for question in self.questions))

    def requests(self) -> list[Request]:
        """For the engine: the questions' requests, then (for PMI) one that holds each continuation once."""
        requests = [question.request for question in self.questions]
        if self.neutral_prompt is not None:
            requests.append(Request(self.neutral_prompt, self._continuations()))
        return requests

    def _continuations(self) -> tuple[Candidate, ...]:
        return tuple(
            dict.fromkeys(
                candidate
                for question in self.questions
                for candidate in question.request.candidates
            )
        )

    def neutral_logprobs(self, scores: Mapping[int, RequestScore]) -> dict[Candidate, float] | None:
        """Continuation -> its log-probability behind the neutral prompt; None where there is no such prompt."""
        if self.neutral_prompt is None:
            return None
        parts = scores[len(self.questions)].candidates
        return {
            candidate: part.logprob
            for candidate, part in zip(self._continuations(), parts, strict=True)
        }

    def left_out_by(self, plan: Plan) -> dict[int, str]:
        """Reasons by row, those of the plan included: a row with a prompt or form of zero tokens is left out as a whole."""
        reasons = dict(self.left_out)
        for number, question in enumerate(self.questions):
            if number in plan.unscorable:
                reasons.setdefault(
                    question.row, f"{question.verbalisation}: {plan.unscorable[number]}"
                )
        return reasons


def choose_verbalisations(benchmark: Benchmark, wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    """The verbalisations to compare, in the file's order; one that the file lacks is a ``UserError``."""
    there = benchmark.verbalisations
    if wanted is None:
        return there
    lacking = [v for v in wanted if v not in there]
    if lacking:
        raise UserError(
            f"{benchmark.name} has no verbalisation '{lacking[0]}': its columns hold {', '.join(there)} (--verbalisations)"
        )
    return tuple(v for v in there if v in wanted)


def score_table(
    task: Task, scores: Mapping[int, RequestScore], left_out: Mapping[int, str]
) -> pd.DataFrame:
    """The scores file of a task: one row per (fact, verbalisation, candidate), in the order of the questions.

    scores: question number -> score, for every question whose row is not in ``left_out``.
    """
    neutral = task.neutral_logprobs(scores)
    rows: list[tuple[Any, ...]] = []
    for number, question in enumerate(task.questions):
        if question.row in left_out:
            continue
        answer = scores[number]
        head = (question.row, question.sub_uri, question.obj_uri, question.verbalisation)
        prompt = (len(answer.prompt_token_ids), answer.prompt_logprob)
        for choice, candidate, part in zip(
            question.choices, question.request.candidates, answer.candidates, strict=True
        ):
            row = (
                *head, choice.form, choice.role, choice.entity, choice.own, *prompt,
                part.token_ids, part.token_logprobs, part.tail_tokens, part.logprob,
            )  # fmt: skip
            rows.append(row if neutral is None else (*row, neutral[candidate]))
    return pd.DataFrame(rows, columns=[*COLUMNS, *([] if neutral is None else [NEUTRAL.name])])


def count_straddling(scores: Mapping[int, RequestScore]) -> int:
    """Candidates whose first scored token begins before the prompt's end (joint tokenisation): scored, and counted."""
    return sum(part.straddles for answer in scores.values() for part in answer.candidates)


def count_reasons(left_out: Mapping[int, str]) -> dict[str, int]:
    """Reason -> number of rows, most frequent first."""
    return dict(sorted(Counter(left_out.values()).items(), key=lambda pair: (-pair[1], pair[0])))


def cut(rows: Sequence[int], limit: int | None) -> tuple[Sequence[int], int]:
    """The rows to be scored and how many ``--limit`` leaves for another time."""
    kept = rows if limit is None else rows[:limit]
    return kept, len(rows) - len(kept)


def cells_by_row(benchmark: Benchmark) -> dict[int, dict[str, str]]:
    """Row number -> column -> cell."""
    names = [str(name) for name in benchmark.table.columns]
    rows = benchmark.table.itertuples(index=True, name=None)
    return {int(row[0]): dict(zip(names, row[1:], strict=True)) for row in rows}
