"""Ways to ask: typed and untyped queries to a masked model, the same question to a causal one.

Typed (TyQ): every candidate in the template with as many masks as it has pieces; the best mean
log-probability wins. Untyped (UnTyQ): for each number of masks the likeliest piece at each, and the
number with the best mean; right if the pieces are the gold object's (Kassner et al. 2021, section
3.2). Causal: the mean log-probability of the object after the text left of it (``causal``), or of
object and tail (``causal-sentence``): these numbers are not comparable, so they have names of their
own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluent_mlama.console import UserError, note
from fluent_mlama.files import BadJson, parse_json, write_text
from fluent_mlama.mlama.items import Question
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
"""Questions scored at a time: bounds memory where a relation has 1,000 candidates and more."""

NOTHING = ""
"""The prediction where no candidate competes: each has an unknown piece here."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Chunk:
    """Some questions' answers, kept on disk until the relation is done.

    status: label -> why it did not compete, or ok. longest: pieces of the longest candidate that
    did.
    """

    rows: list[Row]
    status: dict[str, str]
    longest: int


class ChunkStore:
    """Finished chunks of a relation that a masked model is asked, one JSON file each.

    mark: what made them; chunks of another mark are removed.
    """

    def __init__(self, folder: Path, mark: str) -> None:
        self._folder, self._mark = folder, mark

    def load(self, number: int) -> Chunk | None:
        """What an earlier run kept; None where there is none, or it is another run's or damaged."""
        path = self._path(number)
        try:
            kept = parse_json(path.read_bytes(), str(path))
            if kept.pop("mark") == self._mark:
                return Chunk(**kept)
        except FileNotFoundError:
            return None
        except (BadJson, AttributeError, KeyError, TypeError):
            pass
        path.unlink(missing_ok=True)
        return None

    def save(self, number: int, chunk: Chunk) -> None:
        """Keep a chunk; JSON gives every float back bit for bit."""
        write_text(
            self._path(number),
            json.dumps({"mark": self._mark, **vars(chunk)}, ensure_ascii=False),
        )

    def _path(self, number: int) -> Path:
        return self._folder / f"chunk-{number:06d}.json"


class MaskedAsker:
    """Asks a masked model.

    untyped: UnTyQ instead of TyQ. max_masks: longer candidates do not compete. compat: displaced
    masks. kept: where finished chunks are kept until the relation is done.
    """

    def __init__(
        self,
        scorer: MaskedScorer,
        candidates: Sequence[str],
        *,
        untyped: bool,
        max_masks: int | None,
        top: int,
        compat: bool,
        kept: ChunkStore,
    ) -> None:
        self.scorer, self.untyped, self.max_masks = scorer, untyped, max_masks
        self.top, self.compat, self.kept = top, compat, kept
        alone = dict(zip(candidates, scorer.pieces(candidates), strict=True))
        unknown = scorer.loaded.tokenizer.unk_token_id
        if all(not ids or unknown in ids for ids in alone.values()):
            raise UserError(
                f"model {scorer.loaded.name} has known pieces for none of the {len(candidates)} "
                "candidates; is it made for this script?"
            )
        self.candidates = tuple(candidates)
        self.status: dict[str, str] = {}
        """Of each candidate, ok if it competed in any question: pieces depend on the sentence."""
        lengths = [len(ids) for ids in alone.values()]
        # The displaced layouts are made for every number of masks that a candidate may need.
        self._layouts = (
            max(one for one in lengths if max_masks is None or one <= max_masks) if compat else 0
        )
        self.longest = self._layouts

    def _status(self, score: PieceScore) -> str:
        if not score.token_ids:
            return "no-pieces"
        if score.unknown:
            return "unknown"
        return "ok" if score.token_logprobs else "too-long"

    def ask(self, questions: Sequence[Question], advance: Callable[[int], None]) -> list[Row]:
        """A row of answers per question; finished chunks are kept until the relation is done."""
        parts = [questions[start : start + CHUNK] for start in range(0, len(questions), CHUNK)]
        done = {number: chunk for number in range(len(parts)) if (chunk := self.kept.load(number))}
        advance(sum(len(chunk.rows) for chunk in done.values()))
        missing = [number for number in range(len(parts)) if number not in done]
        queries = ([self._query(question) for question in parts[number]] for number in missing)
        for number, results in zip(missing, typed_chunks(self.scorer, queries), strict=True):
            done[number] = self._chunk(parts[number], results)
            self.kept.save(number, done[number])
            advance(len(parts[number]))
        rows: list[Row] = []
        for _, chunk in sorted(done.items()):
            rows += chunk.rows
            self.longest = max(self.longest, chunk.longest)
            self._note(self.status, chunk.status)
        return rows

    @staticmethod
    def _note(statuses: dict[str, str], news: Mapping[str, str]) -> None:
        """A candidate that competed once has competed, whatever other questions say."""
        for label, one in news.items():
            statuses[label] = "ok" if statuses.get(label) == "ok" else one

    def _chunk(self, questions: Sequence[Question], results: Sequence[TypedResult]) -> Chunk:
        rows: list[Row] = []
        statuses: dict[str, str] = {}
        longest = 0
        for question, result in zip(questions, results, strict=True):
            scores = dict(zip(self.candidates, result.candidates, strict=True))
            status = {label: self._status(score) for label, score in scores.items()}
            self._note(statuses, status)
            means = {label: score.mean for label, score in scores.items() if status[label] == "ok"}
            longest = max(longest, *(len(scores[label].token_ids) for label in means), 0)
            gold = question.triple.obj_label
            if self.untyped:
                rows.append(self._untyped_row(question, result.untyped, scores[gold], status[gold]))
            else:
                ordered = order(list(means), list(means.values()))
                pieces = len(scores[gold].token_ids)
                rows.append(answer_row(question, ordered, pieces, status[gold], self.top))
        return Chunk(rows, statuses, longest)

    def _query(self, question: Question) -> TypedQuery:
        layouts = {}
        if self.compat:
            tokenizer = self.scorer.loaded.tokenizer
            for k in range(1, self._layouts + 1):
                layouts[k] = displaced_layout(
                    tokenizer, self._pieces_of, question.left, question.right, k
                )
        return TypedQuery(
            question.left, question.right, self.candidates, self.untyped, self.max_masks, layouts
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
            **_known(question),
            "prediction": next(iter(texts), NOTHING),
            "score": answers[0].mean if answers else math.nan,
            "rank": 1 if right else None,
            "correct": right,
            **_gold(gold.mean if status == "ok" else None, len(gold.token_ids), status),
            "tied": 0,
            "top": texts[: self.top],
            "top_scores": [answer.mean for answer in answers[: self.top]],
        }


class CausalAsker:
    """Asks a causal model. whole: object and tail count; else the object alone."""

    def __init__(
        self, scorer: Scorer, candidates: Sequence[str], *, whole: bool, top: int, packs: Path
    ) -> None:
        self.scorer, self.candidates = scorer, tuple(candidates)
        self.whole, self.top, self.packs = whole, top, packs
        self.longest = 0
        self.status: dict[str, str] = {}

    def ask(self, questions: Sequence[Question], advance: Callable[[int], None]) -> list[Row]:
        """A row of answers per question; finished packs are kept until the relation is done."""
        plan = self.scorer.plan([self._request(question) for question in questions], "joint")
        for number, reason in plan.unscorable.items():
            raise UserError(f"{_where(questions[number])} cannot be scored: {reason}")
        packs = Packs(self.packs, _relation(questions[0]), self.scorer, plan)
        rows: dict[int, Row] = {}
        # With a thousand candidates per fact only one pack's scores may be in memory at a time.
        for source in (packs.stored(), packs.fresh()):
            for scores in source:
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
            f"{where}: {len(added)} objects are in no candidate list and were added (the first: "
            f"{min(added)!r})"
        )
    return tuple(sorted(present | added)), added


TOLERANCE = 1e-6
"""Nats within which two scores are a tie: what another batch size may change in float32."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Candidates from best to worst. tied_with_best: how many share the first one's score."""

    labels: tuple[str, ...]
    scores: tuple[float, ...]
    tied_with_best: int

    def rank(self, label: str) -> int | None:
        """1 = best; None for what did not compete."""
        return self.labels.index(label) + 1 if label in self.labels else None


def order(labels: Sequence[str], scores: Sequence[float] | NDArray[np.float64]) -> Ordered:
    """Sort by (score, label); scores within ``TOLERANCE`` of the best of their group are equal. NaN
    does not compete.
    """
    values = np.asarray(scores, dtype=np.float64)
    places = [
        int(place) for place in np.argsort(-values, kind="stable") if not np.isnan(values[place])
    ]
    groups: list[list[int]] = []
    for place in places:
        if groups and values[groups[-1][0]] - values[place] <= TOLERANCE:
            groups[-1].append(place)
        else:
            groups.append([place])
    sequence = [place for group in groups for place in sorted(group, key=lambda one: labels[one])]
    tied = len(groups[0]) - 1 if groups else 0
    return Ordered(
        tuple(labels[place] for place in sequence),
        tuple(float(values[place]) for place in sequence),
        tied,
    )


Ids = tuple[int, ...]
_HAN = re.compile("([㐀-䶿一-鿿豈-﫿])")
_MASK = "[MASK]"


def displaced_words(left: str, right: str, masks: int) -> Iterator[tuple[str, bool]]:
    """The words of the filled template in the published order: (text, False) an ordinary word,
    (text, True) one not to be split.

    The mask itself is ("[MASK]", True).
    """
    filled = _HAN.sub(r" \1 ", left) + " ".join([_MASK] * masks) + _HAN.sub(r" \1 ", right)
    for word in filled.split():
        if _MASK not in word:
            yield word, False
            continue
        yield from [(_MASK, True)] * word.count(_MASK)
        rest = word.replace(_MASK, "")
        if rest:
            yield rest, True


def displaced_layout(
    tokenizer: Any, pieces: Callable[[str], Ids], left: str, right: str, masks: int
) -> tuple[Ids, tuple[int, ...]]:
    """Token ids and mask positions as published, for a WordPiece tokenizer; ``UserError`` for any
    other.
    """
    model = tokenizer.backend_tokenizer.model
    if type(model).__name__ != "WordPiece":
        raise UserError(
            "--compat repeats what a WordPiece tokeniser did; this model has "
            f"{type(model).__name__}"
        )
    ids: list[int] = []
    places = []
    for word, whole in displaced_words(left, right, masks):
        if whole and word == _MASK:
            places.append(len(ids))
            ids.append(tokenizer.mask_token_id)
        else:
            ids.extend([token.id for token in model.tokenize(word)] if whole else pieces(word))
    return tuple(ids), tuple(places)
