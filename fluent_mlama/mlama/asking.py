"""The three ways to ask: typed and untyped queries to a masked model, and the same question to a causal one.

Typed (TyQ): every candidate in the template with as many masks as it has pieces, mean log-probability, best candidate.
Untyped (UnTyQ): for each number of masks the likeliest piece at each, and the number with the best mean; right if the
pieces are the gold object's (Kassner et al. 2021, section 3.2). Causal: the mean log-probability of the object behind the
text left of it (``causal``), or of object and tail (``causal-sentence``): other numbers under other names.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluent_mlama.console import UserError, note
from fluent_mlama.mlama.ordering import Ordered, order
from fluent_mlama.mlama.questions import Question
from fluent_mlama.runner.run import Packs
from fluent_mlama.scoring.contract import (
    Candidate,
    CandidateScore,
    Request,
    Scorer,
)
from fluent_mlama.scoring.executors import typed_chunks
from fluent_mlama.scoring.masked_contract import PieceScore, TypedQuery, TypedResult
from fluent_mlama.scoring.tokens import readable

if TYPE_CHECKING:
    from fluent_mlama.scoring.masked import MaskedScorer

CHUNK = 48
"""Questions that are scored and put in order at a time: bounds the scores of 1,000 and more candidates in memory."""

NOTHING = ""
"""The prediction where no candidate competes: each has an unknown piece in this sentence."""

Row = dict[str, Any]


class MaskedAsker:
    """Asks a masked model. untyped: UnTyQ instead of TyQ. max_masks: longer candidates do not compete. compat: displaced masks."""

    def __init__(
        self,
        scorer: MaskedScorer,
        candidates: Sequence[str],
        *,
        untyped: bool,
        max_masks: int | None,
        top: int,
        compat: bool,
    ) -> None:
        self.scorer, self.untyped, self.max_masks, self.top, self.compat = (
            scorer,
            untyped,
            max_masks,
            top,
            compat,
        )
        alone = dict(zip(candidates, scorer.pieces(candidates), strict=True))
        unknown = scorer.loaded.tokenizer.unk_token_id
        if all(not ids or unknown in ids for ids in alone.values()):
            raise UserError(
                f"model {scorer.loaded.name} has known pieces for none of the {len(candidates)} candidates; is it made for this script?"
            )
        self.candidates = tuple(candidates)
        self.status: dict[str, str] = {}
        """Of each candidate, "ok" if it competed in any question; pieces, and so the status, depend on the sentence."""
        self.longest = (
            max(len(ids) for ids in alone.values() if max_masks is None or len(ids) <= max_masks)
            if self.compat
            else 0
        )

    def _status(self, score: PieceScore) -> str:
        if not score.token_ids:
            return "no-pieces"
        if score.unknown:
            return "unknown"
        return "ok" if score.token_logprobs else "too-long"

    def ask(self, questions: Sequence[Question], advance: Callable[[int], None]) -> list[Row]:
        """A row of answers for each question."""
        rows: list[Row] = []
        chunks = [questions[start : start + CHUNK] for start in range(0, len(questions), CHUNK)]
        queries = ([self._query(question) for question in chunk] for chunk in chunks)
        for chunk, results in zip(chunks, typed_chunks(self.scorer, queries), strict=True):
            rows += [
                self._row(question, result) for question, result in zip(chunk, results, strict=True)
            ]
            advance(len(chunk))
        return rows

    def _query(self, question: Question) -> TypedQuery:
        layouts = {}
        if self.compat:
            from fluent_mlama.mlama.displacement import displaced_layout

            for k in range(1, self.longest + 1):
                tokenizer = self.scorer.loaded.tokenizer
                layouts[k] = displaced_layout(
                    tokenizer, self._pieces_of, question.left, question.right, k
                )
        return TypedQuery(
            question.left, question.right, self.candidates, self.untyped, self.max_masks, layouts
        )

    def _row(self, question: Question, result: TypedResult) -> Row:
        scores = dict(zip(self.candidates, result.candidates, strict=True))
        status = {label: self._status(score) for label, score in scores.items()}
        for label, one in status.items():
            self.status[label] = "ok" if self.status.get(label) == "ok" else one
        means = {label: score.mean for label, score in scores.items() if status[label] == "ok"}
        self.longest = max(self.longest, *(len(scores[label].token_ids) for label in means), 0)
        gold = question.triple.obj_label
        if self.untyped:
            return self._untyped_row(question, result.untyped, scores[gold], status[gold])
        return answer_row(
            question,
            order(list(means), list(means.values())),
            len(scores[gold].token_ids),
            status[gold],
            self.top,
        )

    def _pieces_of(self, word: str) -> tuple[int, ...]:
        return self.scorer.pieces([word])[0]

    def _untyped_row(
        self, question: Question, found: Mapping[int, PieceScore], gold: PieceScore, status: str
    ) -> Row:
        answers = sorted(found.values(), key=lambda score: (-score.mean, len(score.token_ids)))
        texts = [
            readable(self.scorer.loaded.tokenizer, answer.token_ids).strip() for answer in answers
        ]
        right = bool(answers) and answers[0].token_ids == gold.token_ids
        return {
            **_known(question), "prediction": next(iter(texts), NOTHING),
            "score": answers[0].mean if answers else math.nan, "rank": 1 if right else None, "correct": right,
            **_gold(gold.mean if status == "ok" else None, len(gold.token_ids), status), "tied": 0,
            "top": texts[: self.top], "top_scores": [answer.mean for answer in answers[: self.top]],
        }  # fmt: skip


class CausalAsker:
    """Asks a causal model. whole: object and tail count; else the object alone."""

    def __init__(
        self, scorer: Scorer, candidates: Sequence[str], *, whole: bool, top: int, packs: Path
    ) -> None:
        self.scorer, self.candidates, self.whole, self.top, self.packs = (
            scorer,
            tuple(candidates),
            whole,
            top,
            packs,
        )
        self.longest = 0
        self.status: dict[str, str] = {}

    def ask(self, questions: Sequence[Question], advance: Callable[[int], None]) -> list[Row]:
        """A row of answers for each question; finished packs are kept until the relation is done."""
        plan = self.scorer.plan([self._request(question) for question in questions], "joint")
        for number, reason in plan.unscorable.items():
            raise UserError(f"{_where(questions[number])} cannot be scored: {reason}")
        packs = Packs(self.packs, _relation(questions[0]), self.scorer, plan)
        rows: dict[int, Row] = {}
        # A thousand candidates a fact: each pack's scores become rows before the next is read.
        for scores in itertools.chain(packs.stored(), packs.fresh()):
            for place, score in scores.items():
                rows[place] = self._row(questions[place], score.candidates)
            advance(len(scores))
        return [rows[place] for place in range(len(questions))]

    def _request(self, question: Question) -> Request:
        prompt = question.left.rstrip()
        separator = question.left[len(prompt) :]
        tail = question.right if self.whole else ""
        return Request(
            prompt, tuple(Candidate(separator + label, tail) for label in self.candidates)
        )

    def _row(self, question: Question, scores: Sequence[CandidateScore]) -> Row:
        means = [math.fsum(score.token_logprobs) / len(score.token_logprobs) for score in scores]
        gold = self.candidates.index(question.triple.obj_label)
        pieces = len(scores[gold].token_ids) - scores[gold].tail_tokens
        self.longest = max(
            self.longest, *(len(score.token_ids) - score.tail_tokens for score in scores)
        )
        return answer_row(question, order(self.candidates, means), pieces, "ok", self.top)


def answer_row(
    question: Question, ordered: Ordered, gold_pieces: int, status: str, top: int
) -> Row:
    """One line of the results from candidates in order."""
    rank = ordered.rank(question.triple.obj_label)
    gold_score = ordered.scores[rank - 1] if rank is not None else None
    return {
        **_known(question), "prediction": next(iter(ordered.labels), NOTHING),
        "score": next(iter(ordered.scores), math.nan), "rank": rank, "correct": rank == 1,
        **_gold(gold_score, gold_pieces, status), "tied": ordered.tied_with_best,
        "top": list(ordered.labels[:top]), "top_scores": list(ordered.scores[:top]),
    }  # fmt: skip


def _known(question: Question) -> Row:
    triple = question.triple
    return {
        "lineid": triple.lineid, "sub_uri": triple.sub_uri or "", "obj_uri": triple.obj_uri or "",
        "sub_label": triple.sub_label, "gold": triple.obj_label,
    }  # fmt: skip


def _gold(score: float | None, pieces: int, status: str) -> Row:
    probability = None if score is None else math.exp(score)
    return {
        "gold_score": score,
        "gold_probability": probability,
        "gold_pieces": pieces,
        "gold_status": status,
    }


def _relation(question: Question) -> str:
    return f"{question.triple.lang} {question.triple.relation}"


def _where(question: Question) -> str:
    return f"{_relation(question)}: the triple with lineid {question.triple.lineid}"


def with_gold(
    candidates: Iterable[str], questions: Sequence[Question]
) -> tuple[tuple[str, ...], set[str]]:
    """The candidates with every gold label among them, and those labels that were not."""
    present = set(candidates)
    added = {question.triple.obj_label for question in questions} - present
    if added:
        where = _relation(questions[0])
        note(
            f"{where}: {len(added)} objects are in no candidate list and were added (the first: {min(added)!r})"
        )
    return tuple(sorted(present | added)), added
