"""What a protocol asks the engine about one benchmark file, and how the answers become scores and ranks.

    Benchmark ──paper_task / corrected_task──▶ Task (questions) ──engine──▶ RequestScores ──score_table──▶ scores ──▶ ranks

Ranks are made from the table of scores alone, whether it has just been made or was read from a file, so that ranking
again with a run's own settings gives its dumps byte for byte. Best first, rank 1 is best; two rules for equal scores:

- `correct first` (protocol `paper`; Fluent-mLAMA's published program): a stable sort of correct forms before
  distractors, so a tie counts for the correct form. A block of ``-inf`` scores is such a tie.
- `mid-rank` (protocol `corrected`): tied candidates share the mean of the ranks that they cover; the best and the
  worst of these are kept beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.records.benchmark import Benchmark
from fluent_mlama.records.results import COLUMNS, NEUTRAL, ProtocolName, Role
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


Ties = Literal["gold", "mid", "worst"]
"""Which rank a tie gives to the correct side: the best that it covers, their mean, or the worst."""


def stable_ranks(scores: Sequence[float]) -> list[int]:
    """The 1-based rank of each score, highest first; equal scores keep the given order.

    scores: natural-log scores, ``-inf`` allowed. NaN is a ``ValueError``: it has no place in an order.
    """
    values = np.asarray(scores, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("a score is NaN")
    order = np.argsort(-values, kind="stable")
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(1, len(values) + 1)
    return [int(rank) for rank in ranks]


def correct_last_ranks(scores: Sequence[float], correct: int) -> list[int]:
    """Ranks where a tie counts against the correct forms, which are the first ``correct`` scores."""
    ranks = stable_ranks([*scores[correct:], *scores[:correct]])
    wrong = len(scores) - correct
    return [*ranks[wrong:], *ranks[:wrong]]


def true_ranks(correct: Sequence[str], ranks: Sequence[int]) -> dict[str, int]:
    """Ranks of the correct forms, in rank order (the published `true_ranks` cell). ``ranks`` may be longer than ``correct``."""
    return dict(sorted(zip(correct, ranks, strict=False), key=lambda pair: pair[1]))


def narrow_from_wide(wide: Mapping[str, int], narrow_forms: Sequence[str]) -> dict[str, int]:
    """Narrow ranks out of wide ones: each form moves up by the aliases (not themselves narrow forms) that stand before it.

    Both draw the same distractors, so one scoring pass serves both. A narrow form that ``wide`` lacks is a ``KeyError``.
    """
    narrow = set(narrow_forms)
    alias_ranks = [rank for form, rank in wide.items() if form not in narrow]
    ranks = {
        form: wide[form] - sum(rank < wide[form] for rank in alias_ranks) for form in narrow_forms
    }
    return dict(sorted(ranks.items(), key=lambda pair: pair[1]))


def top_flag(ranks: Mapping[str, int], k: int) -> int:
    """1 if any correct form stands at rank k or better, else 0."""
    return int(min(ranks.values()) <= k)


@dataclass(frozen=True, slots=True)
class TiedRank:
    """Rank of one candidate among all: the mean over its ties, and the best and worst rank that it could be given."""

    mid: float
    lowest: int
    highest: int


def tied_rank(score: float, others: Sequence[float]) -> TiedRank:
    """Rank of ``score`` among itself and ``others`` (natural logs, ``-inf`` allowed, NaN a ``ValueError``)."""
    values = np.asarray(others, dtype=np.float64)
    if np.isnan(score) or np.isnan(values).any():
        raise ValueError("a score is NaN")
    better = int((values > score).sum())
    equal = int((values == score).sum())
    return TiedRank(mid=better + 1 + equal / 2, lowest=better + 1, highest=better + 1 + equal)
