"""Where scoring happens: in this process, or in workers of a Ray cluster that each hold the model (docs/scaling.md).

Light: neither torch nor Ray is imported before a model is loaded.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fluent.console import UserError
from fluent.scoring.masked_contract import TypedQuery, TypedResult

Item = TypeVar("Item")
AnyScorer = TypeVar("AnyScorer")
Queries = Sequence[TypedQuery]


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster and how to use it.

    address: None starts one on this machine, for this run alone. workers: None = one for every ``gpus_per_worker`` GPUs
    there are (without GPUs one a machine). gpus_per_worker: more than one for models spread with ``--device-map``.
    """

    address: str | None = None
    workers: int | None = None
    gpus_per_worker: int = 1


def add_executor_arguments(parser: argparse.ArgumentParser) -> None:
    """``--executor`` and what belongs to it."""
    where = parser.add_argument_group("where to score")
    where.add_argument("--executor", choices=("local", "ray"), default="local", help="ray: several GPUs or machines (default: local)")
    where.add_argument("--address", metavar="HOST:PORT|auto", help="ray: a cluster that runs already (default: this machine alone)")
    where.add_argument("--workers", type=_count, metavar="N", help="ray: models held at once (default: as many as there are GPUs)")
    where.add_argument("--gpus-per-worker", type=_count, metavar="N", help="ray: GPUs of each, for --device-map (default: 1)")


def cluster_of(parsed: argparse.Namespace) -> Cluster | None:
    """What was asked for; None for this process. Ray that is not installed is a ``UserError``."""
    if parsed.executor != "ray":
        given = [option for option in ("address", "workers", "gpus_per_worker") if getattr(parsed, option) is not None]
        if given:
            raise UserError(f"--{given[0].replace('_', '-')} is about Ray workers; add --executor ray")
        return None
    if importlib.util.find_spec("ray") is None:
        raise UserError("--executor ray needs Ray, which is not installed; run: pip install -r requirements-ray.txt")
    return Cluster(parsed.address, parsed.workers, parsed.gpus_per_worker or 1)


def load_in(cluster: Cluster | None, load: Callable[..., AnyScorer], *arguments: Any, **options: Any) -> AnyScorer:
    """``load(*arguments, **options)`` here, or in every worker of the cluster behind a scorer of the same verbs.

    load: a function of a module, which the workers import by its name.
    """
    if cluster is None:
        return load(*arguments, **options)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reads its settings when it is imported
    if cluster.address is None:  # nobody without the token may use this run's own cluster
        os.environ.setdefault("RAY_worker_niceness", "0")  # 15 otherwise: behind whatever else the machine does
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    from fluent.scoring.cluster import ClusterScorer

    return ClusterScorer(cluster, load, arguments, options)  # type: ignore[return-value]


def typed_chunks(scorer: Any, chunks: Iterable[Queries]) -> Iterator[list[TypedResult]]:
    """The results of each chunk of typed queries to a masked scorer, in order, wherever that one scores."""
    if hasattr(scorer, "typed_chunks"):
        yield from scorer.typed_chunks(chunks)
        return
    for queries in chunks:
        yield scorer.typed(queries)


def in_order(numbered: Iterable[tuple[int, Item]]) -> Iterator[Item]:
    """What comes with the numbers 0, 1, 2 … in whatever order, put in order: each as soon as all before it are there."""
    waiting: dict[int, Item] = {}
    turn = 0
    for number, item in numbered:
        waiting[number] = item
        while turn in waiting:
            yield waiting.pop(turn)
            turn += 1


def _count(value: str) -> int:
    number = int(value) if value.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{value!r} is not a whole number from 1")
    return number
