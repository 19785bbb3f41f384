"""Several runs on one output folder share its files, and the packs of a file, through claims.

A run ranks every file that nobody has claimed. Then it helps with those that others are at work on, from their last pack
backwards, and waits until they are finished; where a run died, its file is free and is ranked from the packs it left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from fluent_mlama.console import note
from fluent_mlama.ranking.claims import Claimed, Claims
from fluent_mlama.ranking.packs import PackStore
from fluent_mlama.scoring.contract import Arithmetic, Plan, RequestScore, Scorer, score_packs

PATIENCE = 0.2
"""Seconds between two looks at what other runs have done."""


class File(Protocol):
    """One file to be ranked (``processor.Processor``)."""

    @property
    def label(self) -> str:
        """How a person calls it."""

    def help(self, scorer: Scorer) -> int | None:
        """Score packs for the run that has claimed it; how many, or None where that cannot be done (yet)."""


AnyFile = TypeVar("AnyFile", bound=File)


def share_files(files: Sequence[AnyFile], rank: Callable[[AnyFile], None], scorer: Scorer) -> None:
    """Rank all files together with other runs; on return every one of them is finished."""
    waiting: list[AnyFile] = []
    for file in files:
        if not _try(file, rank):
            waiting.append(file)
    if waiting:
        note(
            f"others are at work on {', '.join(file.label for file in waiting)}: helping, then waiting"
        )
    helped: set[int] = set()
    while waiting:
        left = []
        for file in waiting:
            if _try(file, rank):
                continue
            left.append(file)
            if id(file) not in helped and file.help(scorer) is not None:
                helped.add(id(file))
        if len(left) == len(waiting):
            time.sleep(PATIENCE)
        waiting = left


def _try(file: AnyFile, rank: Callable[[AnyFile], None]) -> bool:
    try:
        rank(file)
    except Claimed:
        return False
    return True


def share_packs(
    scorer: Scorer,
    plan: Plan,
    numbers: Iterable[int],
    arithmetic: Arithmetic,
    store: PackStore,
    claims: Claims,
    name: str,
) -> Iterator[tuple[int, dict[int, RequestScore]]]:
    """Score these packs of the file ``name`` and keep them; each comes once, from here or from another run, in any order.

    Returns after one round: packs that another run is scoring just then are not among them.
    """
    held: set[int] = set()
    there: list[tuple[int, dict[int, RequestScore]]] = []

    def free() -> Iterator[int]:
        for number in numbers:
            if not claims.take(_pack(name, number)):
                continue
            held.add(number)
            scores = store.load(number)
            if scores is None and (store.is_current() or not store.joining):
                yield number
                continue
            if scores is not None:
                there.append((number, scores))
            claims.drop(_pack(name, number))
            held.discard(number)

    try:
        for number, fresh in score_packs(scorer, plan, free(), arithmetic):
            store.save(number, fresh)
            claims.drop(_pack(name, number))
            held.discard(number)
            yield number, fresh
        yield from there
    finally:
        for number in held:
            claims.drop(_pack(name, number))


def _pack(name: str, number: int) -> str:
    return f"{name}/{number}"
