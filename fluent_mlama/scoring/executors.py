"""Where scoring happens: in this process, or in Ray workers (docs/scaling.md).

Light: neither torch nor Ray is imported before a model is loaded.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fluent_mlama.console import UserError
from fluent_mlama.scoring.masked_contract import TypedQuery, TypedResult

REACHABLE_WITHIN_S = 10.0
Item = TypeVar("Item")
AnyScorer = TypeVar("AnyScorer")
Queries = Sequence[TypedQuery]


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster and how to use it.

    address: None starts one on this machine, for this run alone. workers: None = one for every
    ``gpus_per_worker`` GPUs there are (without GPUs one per machine). gpus_per_worker: more than
    one for models spread with ``--device-map``.
    """

    address: str | None = None
    workers: int | None = None
    gpus_per_worker: int = 1


def _check_reachable(address: str | None) -> None:
    """``UserError`` where nothing listens: Ray itself would try for a minute, with warnings."""
    if address in {None, "auto"}:
        return
    host, _, port = str(address).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHABLE_WITHIN_S).close()
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"no Ray cluster at --address {address} ({error}); start one as docs/scaling.md says"
        ) from None


def load_in(
    cluster: Cluster | None, load: Callable[..., AnyScorer], *arguments: Any, **options: Any
) -> AnyScorer:
    """``load(*arguments, **options)`` here, or in every worker of the cluster.

    load: a function of a module, which the workers import by its name.
    """
    if cluster is None:
        return load(*arguments, **options)
    _check_reachable(cluster.address)
    # Ray reads its settings when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if cluster.address is None:
        # 15 otherwise: behind whatever else the machine does.
        os.environ.setdefault("RAY_worker_niceness", "0")
        # Nobody without the token may use this run's own cluster.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    from fluent_mlama.scoring.cluster import ClusterScorer

    return ClusterScorer(cluster, load, arguments, options)  # type: ignore[return-value]


def typed_chunks(scorer: Any, chunks: Iterable[Queries]) -> Iterator[list[TypedResult]]:
    """The results of each chunk of typed queries to a masked scorer, in order."""
    if hasattr(scorer, "typed_chunks"):
        yield from scorer.typed_chunks(chunks)
        return
    for queries in chunks:
        yield scorer.typed(queries)


def in_order(numbered: Iterable[tuple[int, Item]]) -> Iterator[Item]:
    """Put items numbered 0, 1, 2 … in order, each as soon as all before it are there."""
    waiting: dict[int, Item] = {}
    turn = 0
    for number, item in numbered:
        waiting[number] = item
        while turn in waiting:
            yield waiting.pop(turn)
            turn += 1
