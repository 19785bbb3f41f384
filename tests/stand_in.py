"""A scorer without a model and small benchmark files, for quick tests.

The scorer: a token is a character, its log-probability a hash of what stands before it.
It has the verbs of the contract and its promises: scores depend on prompt and candidate alone, packs are planned from all
requests, a prompt or candidate of zero tokens is unscorable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from fluent_mlama.records.benchmark import Benchmark, make_benchmark
from fluent_mlama.scoring.contract import (
    Arithmetic,
    CandidateScore,
    Plan,
    Request,
    RequestScore,
    ScorerDescription,
    Tokenisation,
)

PACK_SIZE = 7


class StandInScorer:
    """Counts what it scores in ``packs_scored``; ``stop_after`` packs it raises, as a machine that fails would."""

    def __init__(
        self, name: str = "stand-in", stop_after: int | None = None, dtype: str = "float32"
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.stop_after = stop_after
        self.packs_scored: list[int] = []

    def describe(self, tokenisation: Tokenisation = "separate") -> ScorerDescription:
        return ScorerDescription(
            self.name,
            "",
            self.dtype,
            "cpu",
            "hash",
            "a stand-in",
            "0",
            {"gap": 0.0},
            {"stand-in": "1"},
        )

    def plan(self, requests: Sequence[Request], tokenisation: Tokenisation) -> Plan:
        unscorable = {
            number: "a prompt of zero tokens" if not request.prompt else "a form of zero tokens"
            for number, request in enumerate(requests)
            if not request.prompt
            or any(not candidate.text + candidate.tail for candidate in request.candidates)
        }
        numbers = [number for number in range(len(requests)) if number not in unscorable]
        packs = tuple(
            tuple(numbers[start : start + PACK_SIZE]) for start in range(0, len(numbers), PACK_SIZE)
        )
        return Plan(tuple(requests), tokenisation, packs, unscorable)

    def score_packs(self, plan: Any, numbers: Any, arithmetic: Any = "float32") -> Any:
        for number in numbers:
            yield number, self.score_pack(plan, number, arithmetic)

    def score_pack(
        self, plan: Plan, number: int, arithmetic: Arithmetic = "float32"
    ) -> dict[int, RequestScore]:
        if self.stop_after is not None and len(self.packs_scored) >= self.stop_after:
            raise RuntimeError("the machine stops")
        self.packs_scored.append(number)
        return {request: self._score(plan.requests[request]) for request in plan.packs[number]}

    def score(
        self,
        requests: Sequence[Request],
        *,
        tokenisation: Tokenisation,
        arithmetic: Arithmetic = "float32",
        on_pack: Callable[[int, int], None] | None = None,
    ) -> list[RequestScore]:
        return [self._score(request) for request in requests]

    def tokens(self, token_ids: Sequence[int]) -> list[str]:
        return [chr(token) for token in token_ids]

    def _score(self, request: Request) -> RequestScore:
        prompt = [
            self._logprob(self.name + request.prompt[: end + 1])
            for end in range(1, len(request.prompt))
        ]
        candidates = []
        for candidate in request.candidates:
            text = candidate.text + candidate.tail
            logprobs = [
                self._logprob(self.name + request.prompt + "|" + text[: end + 1])
                for end in range(len(text))
            ]
            candidates.append(
                CandidateScore(
                    tuple(map(ord, text)), tuple(logprobs), sum(logprobs), len(candidate.tail)
                )
            )
        return RequestScore(
            tuple(map(ord, request.prompt)), tuple(prompt), float(sum(prompt)), tuple(candidates)
        )

    @staticmethod
    def _logprob(text: str) -> float:
        return -int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**45


def small_benchmark(
    *rows: str, lang: str = "cs", relation: str = "P19", spec: str = "test"
) -> Benchmark:
    """A benchmark with two verbalisations from lines `obj_label|gt_prompt|gt_infl_object|aliases` (aliases by commas)."""
    records: list[dict[str, str]] = []
    uris: dict[str, str] = {}
    for number, row in enumerate(rows):
        label, prompt, form, aliases = row.split("|")
        records.append({
            "sub_uri": f"Q{number}", "sub_label": f"s{number}", "obj_uri": uris.setdefault(label, f"Q10{number}"), "obj_label": label,
            "template": f"t{number} {label}.", "template_prompt": f"t{number} ",
            "gt_translation": f"{prompt}{form}.", "gt_prompt": prompt, "gt_infl_object": form,
            "aliases": aliases.replace(",", "|||"),
        })  # fmt: skip
    return make_benchmark(lang, relation, spec, pd.DataFrame(records, dtype="str"))


CITIES = (
    "Praha|Praze|Prague",
    "Brno|Brně|Bruenn",
    "Plzeň|Plzni|Pilsen",
    "Ostrava|Ostravě|Ostrau",
    "Zlín|Zlíně|Zlin",
    "Tábor|Táboře|Tabor",
)


def city_benchmark(rows: int = 30, **names: str) -> Benchmark:
    """As many facts as wanted about six cities; every tenth has no object, every seventh a prompt of a blank."""
    lines = []
    for number in range(rows):
        label, form, alias = CITIES[number % len(CITIES)].split("|")
        prompt = " " if number % 7 == 6 else f"Osoba {number} se narodila v "
        lines.append(f"{label}|{prompt}|{'ERROR' if number % 10 == 9 else form}|{alias},{label}")
    return small_benchmark(*lines, **names)
