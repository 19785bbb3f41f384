"""Scorers whose models live in Ray workers: the same methods and bytes as a local scorer.

A plan is made once, by one worker, and sent to all. Packs are the slices: a pack's scores depend on
the plan alone, so it does not matter who scores it, when, or how often. ``Pool`` holds the workers.
What dies or fails is replaced and its jobs are done again: Ray is told neither to restart actors
nor to repeat their calls, so a job of a dead worker goes to the next free one at once, while the
new worker still loads its model.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import ray
import torch
from tenacity import retry, retry_if_not_exception_type, stop_after_attempt

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
from fluent_mlama.scoring.tokens import TextTokeniser

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
        """Load the model: a call of its own, so that a failure is reported in one line."""
        self.scorer = self._load()

    def ask(self, verb: str, *arguments: Any) -> Any:
        """What the scorer's verb answers."""
        return getattr(self.scorer, verb)(*arguments)

    def loaded(self) -> Any:
        """What was loaded, with its tokenizer and without the model."""
        return dataclasses.replace(self.scorer.loaded, model=None)

    def score_pack(self, plan: Sequence[Any], number: int, arithmetic: Arithmetic) -> Result:
        """plan: its place in Ray's store, in a list, lest Ray fetch it for each pack."""
        # The last plan is kept under its reference: one fetch for all of its packs.
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
    """Implements ``contract.Scorer`` with several packs in the making at once, and serves masked models."""

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
        """What a worker's scorer is, with the counts of all workers."""
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
        self, plan: Plan, numbers: Iterable[int], arithmetic: Arithmetic = "float32"
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
        """All workers must be the same scorer; different GPUs get a note."""
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


ATTEMPTS = 3
"""So often a job may fail, or take its worker with it, before the run ends."""
IN_FLIGHT = 2
"""Jobs a worker has at a time: the next one is there when it is done."""
_STORE_BYTES = 1 << 29
Job = tuple[Any, str, tuple[Any, ...]]
"""(key, method of the worker, arguments)"""


class Pool:
    """Workers made by ``worker(threads, *arguments)``. One pool at a time has the cluster."""

    _last: Pool | None = None

    def __init__(self, cluster: Cluster, worker: type, arguments: tuple[Any, ...]) -> None:
        # The last model's workers would hold the GPUs that these need.
        if Pool._last is not None:
            Pool._last.close()
        connect(cluster)
        gpus, self.size = count_workers(
            cluster, ray.cluster_resources(), len([node for node in ray.nodes() if node["Alive"]])
        )
        # As many as a local run would have here: sums depend on the number of threads, bit by bit.
        threads = torch.get_num_threads()
        environment = {"env_vars": {"OMP_NUM_THREADS": str(threads)}}
        self._kind = ray.remote(
            num_cpus=1, num_gpus=gpus, scheduling_strategy="SPREAD", runtime_env=environment
        )(worker)
        self._arguments = (threads, *arguments)
        self._loading: dict[Any, Any] = {}
        self._workers = [self._begin() for _ in range(self.size)]
        self._deaths = 0
        Pool._last = self

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Any, Any]]:
        """(key, result) of each job when done, in any order; jobs are taken as workers have room."""
        source, again = iter(jobs), deque[Job]()
        failures: Counter[Any] = Counter()
        running: dict[Any, tuple[Job, Any]] = {}
        while True:
            # None once all jobs are taken; anything else means that some may be left.
            job: Job | None = ("", "", ())
            for worker in self._with_room(running):
                job = again.popleft() if again else next(source, None)
                if job is None:
                    break
                running[getattr(worker, job[1]).remote(*job[2])] = (job, worker)
            if job is None and not running:
                return
            # Workers that load are waited for too: the first one ready takes the next job.
            done, _ = ray.wait([*running, *self._loading], num_returns=1)
            if done[0] in self._loading:
                self._has_loaded(done[0])
                continue
            job, worker = running.pop(done[0])
            try:
                result = ray.get(done[0])
            except ray.exceptions.RayError as error:
                why = _why(error)
                failures[job[0]] += 1
                if failures[job[0]] >= ATTEMPTS:
                    raise UserError(
                        f"a Ray worker failed {ATTEMPTS} times at the same work: {why}"
                    ) from error
                self._replace(worker, why)
                again.append(job)
                continue
            yield job[0], result

    def call(self, method: str, *arguments: Any) -> Any:
        """The result of one job."""
        return next(self.run([(None, method, arguments)]))[1]

    def close(self) -> None:
        """End the workers, so that the next model finds room."""
        for worker in self._workers:
            ray.kill(worker)
        self._workers, self._loading = [], {}

    def _begin(self) -> Any:
        """A worker that begins to load its model."""
        worker = self._kind.remote(*self._arguments)
        self._loading[worker.load.remote()] = worker
        return worker

    def _has_loaded(self, loaded: Any) -> None:
        worker = self._loading.pop(loaded)
        try:
            ray.get(loaded)
        except ray.exceptions.RayError as error:
            self._replace(worker, _why(error))

    def _with_room(self, running: Mapping[Any, tuple[Job, Any]]) -> Iterator[Any]:
        """Workers that have loaded, idle ones first, each as often as it has room for a job."""
        load = Counter(id(worker) for _, worker in running.values())
        loading = {id(worker) for worker in self._loading.values()}
        # Depth 0 yields the idle workers, depth 1 all that have fewer than two jobs, and so on.
        for depth in range(IN_FLIGHT):
            yield from (
                worker
                for worker in list(self._workers)
                if load[id(worker)] <= depth and id(worker) not in loading
            )

    def _replace(self, worker: Any, why: str) -> None:
        """Replace a worker that failed; its other jobs fail too and find it gone."""
        if worker not in self._workers:
            return
        self._deaths += 1
        # Deaths count over the whole run: a model that never loads must end it.
        if self._deaths > ATTEMPTS * self.size:
            raise UserError(f"Ray workers failed {self._deaths} times; the last: {why}")
        note(f"a Ray worker failed and is replaced, its work is done again: {why}")
        ray.kill(worker)
        self._workers[self._workers.index(worker)] = self._begin()


def connect(cluster: Cluster) -> None:
    """Join the cluster at its address, or start one for this run, on the loopback interface."""
    if ray.is_initialized():
        return
    quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if cluster.address is None:
        try:
            _start(max(2, os.cpu_count() or 1), quiet)
        except Exception as error:  # Ray has no class of errors of its own for this
            raise UserError(
                f"Ray does not start on this machine ({_first_line(error)}); RAY_TMPDIR chooses its folder"
            ) from error
        return
    try:
        ray.init(address=cluster.address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        text = f"no Ray cluster at --address {cluster.address} ({_first_line(error)}); start one as docs/scaling.md says"
        raise UserError(text) from error


@retry(retry=retry_if_not_exception_type(OSError), stop=stop_after_attempt(ATTEMPTS), reraise=True)
def _start(cpus: int, quiet: Mapping[str, Any]) -> None:
    """Start a cluster here; on a busy machine Ray may give up after 30 s, hence the retries."""
    try:
        ray.init(
            num_cpus=cpus,
            include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            _node_ip_address="127.0.0.1",
            **quiet,
        )
    except BaseException:
        ray.shutdown()
        raise


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def count_workers(
    cluster: Cluster, resources: Mapping[str, float], machines: int
) -> tuple[int, int]:
    """(GPUs per worker, workers); ``UserError`` where the cluster has fewer than asked for."""
    gpus = int(resources.get("GPU", 0))
    each = cluster.gpus_per_worker if gpus else 0
    if gpus == 0 and cluster.gpus_per_worker > 1:
        raise UserError(f"--gpus-per-worker {cluster.gpus_per_worker}: the Ray cluster has no GPU")
    most = gpus // each if each else int(resources.get("CPU", 0))
    wanted = cluster.workers or (most if each else machines)
    if wanted > most or most == 0:
        there = f"{gpus} GPUs, {each} a worker" if each else f"{most} CPUs, one a worker"
        raise UserError(
            f"--workers {cluster.workers or 1}: the Ray cluster has {there}, room for {most}; ask for fewer, or add machines"
        )
    return each, wanted


def _why(error: Exception) -> str:
    """Why a job failed, in one line. What the user can mend ends the run: it fails everywhere."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, UserError):
        raise UserError(str(cause)) from None
    # A cause's message is its last line; an error of Ray's own begins with its message.
    known = cause if cause is not None else error
    lines = str(known).strip().splitlines() or [""]
    return f"{type(known).__name__}: {lines[-1 if cause is not None else 0].strip()[:200]}"
