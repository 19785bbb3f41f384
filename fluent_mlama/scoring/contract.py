"""What goes into the scoring engine and what comes out. Plain data, no torch.

    Request(prompt, candidates)  ──plan──▶  Plan (packs)  ──score_pack──▶  RequestScore
                                                                            └ CandidateScore a candidate

All log-probabilities are natural logarithms. How the engine gets there (trie, shared prefix, padded batch)
never shows in the numbers beyond the gap that its load-time check records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from fluent_mlama.console import UserError

Tokenisation = Literal["separate", "joint"]
"""separate: prompt ids ++ candidate ids, each tokenised alone (protocol `paper`).
joint: prompt + candidate tokenised as one string, cut by character offsets (protocol `corrected`)."""

Arithmetic = Literal["float32", "published-fp16"]
"""float32: fp32 log-softmax, float64 sums. published-fp16: softmax in fp16, then log, then a running fp16 sum."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is scored behind a prompt: ``text`` (in joint mode with its separator), then ``tail``."""

    text: str
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt and the candidates that compete to continue it."""

    prompt: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """The scored tokens of one candidate, in order; the last ``tail_tokens`` of them belong to the tail.

    logprob is their sum in the run's arithmetic. straddles: the first scored token begins before the prompt's end
    (joint mode only).
    """

    token_ids: tuple[int, ...]
    token_logprobs: tuple[float, ...]
    logprob: float
    tail_tokens: int = 0
    straddles: bool = False


@dataclass(frozen=True, slots=True)
class RequestScore:
    """Scores of one request; ``candidates`` in the request's order.

    prompt_token_ids: with special tokens. prompt_token_logprobs: tokens 2..n, so one fewer than the ids.
    prompt_logprob: their sum in the run's arithmetic, 0.0 where there are none.
    """

    prompt_token_ids: tuple[int, ...]
    prompt_token_logprobs: tuple[float, ...]
    prompt_logprob: float
    candidates: tuple[CandidateScore, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of one file cut into packs. A pack (request numbers) is one forward and the unit of resume.

    Made from all requests before anything is scored, so that a resumed run has the same packs as an undisturbed one.
    unscorable: request number -> reason, for requests with a prompt or candidate of zero tokens; in no pack.
    state: the engine's own (token ids, tries); nobody else looks at it.
    """

    requests: tuple[Request, ...]
    tokenisation: Tokenisation
    packs: tuple[tuple[int, ...], ...]
    unscorable: Mapping[int, str]
    state: Any = None


@dataclass(frozen=True, slots=True)
class ScorerDescription:
    """What made the numbers; goes into run.json and, shortened, into the signature.

    bos: what sequences begin with in the tokenisation that ``Scorer.describe`` was asked about: "0" nothing, "1" the
    tokenizer's BOS, else the text of the tokens. tokenizer: identity of what the token ids stand for. kind: causal or
    masked; the two are never set beside each other.
    """

    model: str
    revision: str
    dtype: str
    device: str
    path: str
    path_reason: str
    bos: str
    self_check: Mapping[str, Any]
    versions: Mapping[str, str]
    tokenizer: str = ""
    kind: str = "causal"


class Scorer(Protocol):
    """The causal engine (``fluent_mlama.scoring.causal.load_scorer``), or a stand-in with the same three verbs in tests."""

    def describe(self, tokenisation: Tokenisation = "separate") -> ScorerDescription:
        """What this scorer is; ``bos`` is told for the given tokenisation (the two can differ)."""

    def plan(self, requests: Sequence[Request], tokenisation: Tokenisation) -> Plan:
        """Tokenise all requests in one batch and cut them into packs."""

    def score_pack(
        self, plan: Plan, number: int, arithmetic: Arithmetic = "float32"
    ) -> dict[int, RequestScore]:
        """Score the requests of pack ``number``: request number -> score. NaN, all-equal or all-zero scores are errors."""

    def score_packs(
        self, plan: Plan, numbers: Iterable[int], arithmetic: Arithmetic = "float32"
    ) -> Iterator[tuple[int, dict[int, RequestScore]]]:
        """Each pack's number and scores as they are finished, in any order; a number is taken when there is room for it."""

    def score(
        self,
        requests: Sequence[Request],
        *,
        tokenisation: Tokenisation,
        arithmetic: Arithmetic = "float32",
        on_pack: Callable[[int, int], None] | None = None,
    ) -> list[RequestScore]:
        """Plan and score everything; ``on_pack(done, total)`` after each pack. Unscorable requests are a ``UserError``."""

    def tokens(self, token_ids: Sequence[int]) -> list[str]:
        """The tokens as text, for showing to a person."""


def score_all(
    scorer: Scorer,
    requests: Sequence[Request],
    tokenisation: Tokenisation,
    arithmetic: Arithmetic,
    on_pack: Callable[[int, int], None] | None,
) -> list[RequestScore]:
    """``Scorer.score`` of a scorer that plans and scores packs."""
    plan = scorer.plan(requests, tokenisation)
    for number, reason in plan.unscorable.items():
        raise UserError(f"request {number + 1} cannot be scored: {reason}")
    scores: dict[int, RequestScore] = {}
    for done, (_, fresh) in enumerate(
        scorer.score_packs(plan, range(len(plan.packs)), arithmetic), start=1
    ):
        scores |= fresh
        if on_pack is not None:
            on_pack(done, len(plan.packs))
    return [scores[number] for number in range(len(requests))]
