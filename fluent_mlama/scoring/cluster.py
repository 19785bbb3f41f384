"""Scorers whose models live in the workers of a Ray cluster: the same verbs, and the same bytes, as a local one's.

A plan is made once, by one worker, and sent to all. Packs are the slices: a pack's scores depend on the plan alone, so it
does not matter who scores it, when, or how often.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import ray
import torch

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.contract import (
    Arithmetic,
    Plan,
    Request,
    RequestScore,
    ScorerDescription,
    Tokenisation,
    score_all,
)
from fluent_mlama.scoring.executors import Cluster, Queries, in_order
from fluent_mlama.scoring.masked_contract import TypedResult
from fluent_mlama.scoring.ray_pool import Pool
from fluent_mlama.scoring.text_tokens import TextTokeniser

_COUNTERS = ("halved_for_memory", "beyond_reach")
_SAME = ("model", "revision", "dtype", "device", "path", "bos", "versions")


@dataclasses.dataclass(frozen=True)
class Result:
    """A pack's scores, by whom, and what its scorer counted meanwhile."""

    scores: dict[int, RequestScore]
    made_by: dict[str, Any]
    gpu: str
    counted: tuple[int, ...]


class Worker:
    """Holds the model. ``load`` is the first call that it gets."""

    def __init__(
        self,
        threads: int,
        load: Callable[..., Any],
        arguments: Sequence[Any],
        options: dict[str, Any],
    ) -> None:
        torch.set_num_threads(threads)
        self._load = functools.partial(load, *arguments, **options)
        self.scorer: Any = None
        self._plan: tuple[Any, Plan | None] = (None, None)

    def load(self) -> None:
        """Load the model: a call of its own, so that a model that cannot be loaded is told in one line."""
        self.scorer = self._load()

    def ask(self, verb: str, *arguments: Any) -> Any:
        """What the scorer's verb answers."""
        return getattr(self.scorer, verb)(*arguments)

    def loaded(self) -> Any:
        """What was loaded, with its tokenizer and without the model."""
        return dataclasses.replace(self.scorer.loaded, model=None)

    def score_pack(self, plan: Sequence[Any], number: int, arithmetic: Arithmetic) -> Result:
        """plan: where it lies in Ray's store, in a list, so that Ray does not fetch it anew for each pack."""
        if self._plan[0] != plan[0]:
            self._plan = (plan[0], ray.get(plan[0]))
        before = self._counters()
        scores = self.scorer.score_pack(self._plan[1], number, arithmetic)
        counted = tuple(after - one for after, one in zip(self._counters(), before, strict=True))
        description = self.scorer.describe(self._plan[1].tokenisation)  # type: ignore[union-attr]
        gpu = torch.cuda.get_device_name() if description.device.startswith("cuda") else ""
        return Result(scores, {name: getattr(description, name) for name in _SAME}, gpu, counted)

    def _counters(self) -> tuple[int, ...]:
        seen = self.scorer.describe().self_check
        return tuple(seen.get(name, 0) for name in _COUNTERS)


class ClusterScorer:
    """Implements ``fluent_mlama.scoring.contract.Scorer`` and ``ManyPacksScorer``, and stands for a masked scorer as well."""

    def __init__(
        self,
        cluster: Cluster,
        load: Callable[..., Any],
        arguments: Sequence[Any],
        options: dict[str, Any],
    ) -> None:
        self.pool = Pool(cluster, Worker, (load, arguments, options))
        self._counted = dict.fromkeys(_COUNTERS, 0)
        self._descriptions: dict[Tokenisation, ScorerDescription] = {}
        self._loaded: Any = None
        self._stored: tuple[Plan | None, list[Any]] = (None, [])
        self._gpus: set[str] = set()
        note(f"Ray: {self.pool.size} workers hold the model")

    @property
    def loaded(self) -> Any:
        """The loaded model's name, tokenizer, device and so on; ``model`` is None."""
        if self._loaded is None:
            self._loaded = self.pool.call("loaded")
        return self._loaded

    def describe(self, tokenisation: Tokenisation = "separate") -> ScorerDescription:
        """What a worker's scorer is, with the forwards that all workers halved or sent round."""
        if tokenisation not in self._descriptions:
            self._descriptions[tokenisation] = self.pool.call("ask", "describe", tokenisation)
        description = self._descriptions[tokenisation]
        counted = {
            name: count for name, count in self._counted.items() if name in description.self_check
        }
        return dataclasses.replace(description, self_check={**description.self_check, **counted})

    def plan(self, requests: Sequence[Request], tokenisation: Tokenisation) -> Plan:
        """Made by one worker."""
        plan: Plan = self.pool.call("ask", "plan", requests, tokenisation)
        return plan

    def score_packs(
        self, plan: Plan, numbers: Iterable[int], arithmetic: Arithmetic
    ) -> Iterator[tuple[int, dict[int, RequestScore]]]:
        """Packs as the workers finish them."""
        if self._stored[0] is not plan:
            self._stored = (plan, [ray.put(plan)])
        where = self._stored[1]
        made_by = {name: getattr(self.describe(plan.tokenisation), name) for name in _SAME}
        for number, result in self.pool.run(
            (number, "score_pack", (where, number, arithmetic)) for number in numbers
        ):
            self._check(result, made_by)
            for name, count in zip(_COUNTERS, result.counted, strict=True):
                self._counted[name] += count
            yield number, result.scores

    def score_pack(
        self, plan: Plan, number: int, arithmetic: Arithmetic = "float32"
    ) -> dict[int, RequestScore]:
        """One pack."""
        return next(self.score_packs(plan, [number], arithmetic))[1]

    def score(
        self,
        requests: Sequence[Request],
        *,
        tokenisation: Tokenisation,
        arithmetic: Arithmetic = "float32",
        on_pack: Callable[[int, int], None] | None = None,
    ) -> list[RequestScore]:
        """Plan and score everything; an unscorable request is a ``UserError``."""
        return score_all(self, requests, tokenisation, arithmetic, on_pack)

    def tokens(self, token_ids: Sequence[int]) -> list[str]:
        """The tokens as text."""
        spelt: list[str] = self.pool.call("ask", "tokens", list(token_ids))
        return spelt

    def pieces(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Of a masked scorer: token ids of each text, without special tokens."""
        return TextTokeniser(self.loaded.tokenizer).alone(texts)

    def typed_chunks(self, chunks: Iterable[Queries]) -> Iterator[list[TypedResult]]:
        """Of a masked scorer: the results of each chunk, in order."""
        yield from in_order(
            self.pool.run(
                (number, "ask", ("typed", queries)) for number, queries in enumerate(chunks)
            )
        )

    def _check(self, result: Result, made_by: dict[str, Any]) -> None:
        """All workers must be the same scorer; different kinds of GPU are said, since last digits may differ."""
        for name, value in result.made_by.items():
            if value != made_by[name]:
                raise UserError(
                    f"the Ray workers differ in {name}: {value} and {made_by[name]}; install the same versions on all machines"
                )
        self._gpus.add(result.gpu)
        if len(self._gpus) == 2:
            note(
                f"the Ray workers have different GPUs ({' and '.join(sorted(self._gpus))}): last digits may depend on who scores what"
            )
            self._gpus.add("said")
