"""A masked model behind the contract of the causal one: requests in, packs and scores out.

A candidate is scored as in mLAMA's typed queries (Kassner, Dufter and Schütze 2021, section 3): in its sentence,
between prompt and tail, with as many masks as it has pieces; its score is the mean of the natural-log probabilities
of its pieces. A candidate with a piece that the tokenizer does not know scores -inf: the model cannot say it.

    prompt + separator   [MASK] [MASK]   tail       ──▶  mean of log p(piece i | everything but the masks)
    └──── left ─────┘    └ candidate ┘   └ right ┘
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fluent_mlama.console import UserError
from fluent_mlama.scoring.contract import (
    Arithmetic,
    Candidate,
    CandidateScore,
    Plan,
    Request,
    RequestScore,
    ScorerDescription,
    Tokenisation,
    score_all,
)
from fluent_mlama.scoring.masked import MaskedScorer, load_masked_scorer
from fluent_mlama.scoring.masked_contract import TypedQuery

REQUESTS_PER_PACK = 32
"""Sentences that are scored between two saved packs; the batches inside are the masked scorer's own."""
MASKED = "masked"


class TypedScorer:
    """The verbs of ``contract.Scorer`` with a masked model. There is no left-to-right prompt, so its score is NaN."""

    def __init__(self, masked: MaskedScorer) -> None:
        self.masked = masked
        self.loaded = masked.loaded

    def describe(self, tokenisation: Tokenisation = "joint") -> ScorerDescription:
        """What this scorer is, marked as masked: its numbers never stand beside causal ones."""
        return dataclasses.replace(self.masked.describe(tokenisation), kind=MASKED)

    def plan(self, requests: Sequence[Request], tokenisation: Tokenisation) -> Plan:
        """Cut the requests into packs; those with a candidate of no pieces are unscorable."""
        if tokenisation != "joint":
            raise UserError(
                "protocol paper sums what follows a prompt, which a masked model does not predict; "
                "give --protocol corrected"
            )
        unscorable: dict[int, str] = {}
        for number, request in enumerate(requests):
            for candidate in request.candidates:
                if not candidate.text.strip():
                    unscorable[number] = "a candidate of zero tokens"
        numbers = [number for number in range(len(requests)) if number not in unscorable]
        packs = tuple(
            tuple(numbers[start : start + REQUESTS_PER_PACK])
            for start in range(0, len(numbers), REQUESTS_PER_PACK)
        )
        return Plan(tuple(requests), tokenisation, packs, unscorable)

    def score_pack(
        self, plan: Plan, number: int, arithmetic: Arithmetic = "float32"
    ) -> dict[int, RequestScore]:
        """Score the requests of pack ``number``."""
        if arithmetic != "float32":
            raise UserError(
                "--logprob-precision published-fp16 is about sums of causal models; leave it out"
            )
        wanted = plan.packs[number]
        queries: list[TypedQuery] = []
        # (request, numbers of its candidates) of each query: those that share separator and tail
        owners: list[tuple[int, list[int]]] = []
        for request in wanted:
            for (separator, tail), members in _groups(plan.requests[request]).items():
                its = plan.requests[request]
                texts = tuple(its.candidates[member].text.strip() for member in members)
                queries.append(TypedQuery(its.prompt + separator, tail, texts))
                owners.append((request, members))
        found: dict[int, dict[int, CandidateScore]] = {request: {} for request in wanted}
        for (request, members), result in zip(owners, self.masked.typed(queries), strict=True):
            for member, score in zip(members, result.candidates, strict=True):
                mean = -math.inf if score.unknown or not score.token_ids else score.mean
                found[request][member] = CandidateScore(score.token_ids, score.token_logprobs, mean)
        return {
            request: RequestScore(
                (), (), math.nan, tuple(score for _, score in sorted(scores.items()))
            )
            for request, scores in found.items()
        }

    def score_packs(
        self, plan: Plan, numbers: Iterable[int], arithmetic: Arithmetic = "float32"
    ) -> Iterator[tuple[int, dict[int, RequestScore]]]:
        """One pack after the other."""
        for number in numbers:
            yield number, self.score_pack(plan, number, arithmetic)

    def score(
        self,
        requests: Sequence[Request],
        *,
        tokenisation: Tokenisation,
        arithmetic: Arithmetic = "float32",
        on_pack: Callable[[int, int], None] | None = None,
    ) -> list[RequestScore]:
        """Plan and score everything."""
        return score_all(self, requests, tokenisation, arithmetic, on_pack)

    def tokens(self, token_ids: Sequence[int]) -> list[str]:
        """The tokens as text, for showing to a person."""
        return [str(one) for one in self.loaded.tokenizer.convert_ids_to_tokens(list(token_ids))]


def _groups(request: Request) -> dict[tuple[str, str], list[int]]:
    """(separator, tail) -> numbers of the candidates that share them."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, candidate in enumerate(request.candidates):
        groups.setdefault((_separator(candidate), candidate.tail), []).append(number)
    return groups


def _separator(candidate: Candidate) -> str:
    return candidate.text[: len(candidate.text) - len(candidate.text.lstrip())]


def load_typed_scorer(model: str, **options: Any) -> TypedScorer:
    """``load_masked_scorer`` behind the causal contract."""
    return TypedScorer(load_masked_scorer(model, **options))
