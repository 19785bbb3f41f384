"""Jobs become files: which are finished, whose turn it is, what is left of a killed run.

An experiment says what a ``Job`` asks and how its answers become a file. Whether the file is there, who may make it, and
which packs are scored already is decided here alone, for all experiments.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fluent_mlama.console import note, progress_bar
from fluent_mlama.runner.locks import Busy, locked
from fluent_mlama.runner.packs import PackStore, fingerprint, forget_packs
from fluent_mlama.scoring.contract import Arithmetic, Plan, RequestScore, Scorer, score_packs

PATIENCE = 0.2
"""Seconds between two looks at what other runs have finished."""

OnItems = Callable[[int, int], None]
"""Told after each pack: items finished so far, items in all."""


class Job(Protocol):
    """One output file to be made.

    label: how a person calls it. unit: what its progress counts, in the plural. target: the file that is made, and
    whose lock it is. packs: the folder of its finished packs.
    """

    @property
    def label(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def target(self) -> Path: ...
    @property
    def packs(self) -> Path: ...

    def is_finished(self, scorer: Any) -> bool:
        """Whether this scorer would make what is there already; a reason to make it again is told."""

    def make(self, scorer: Any, on_items: OnItems) -> None:
        """Score what is not scored yet (``Packs``) and write the files, the run record last."""


AnyJob = TypeVar("AnyJob", bound=Job)


def run_jobs(jobs: Sequence[AnyJob], scorer: Any) -> None:
    """Make all files together with other runs; on return every one of them is finished.

    A file that another run is making is left to it; where that run dies, the file is made here from the packs it left.
    """
    waiting = list(enumerate(jobs, start=1))
    told = False
    while waiting:
        left = []
        for number, job in waiting:
            try:
                _run_shown(job, scorer, f"{number} of {len(jobs)}: {job.label}")
            except Busy:
                left.append((number, job))
        if left and not told:
            note(f"others are at work on {', '.join(job.label for _, job in left)}: waiting")
            told = True
        if len(left) == len(waiting):
            time.sleep(PATIENCE)
        waiting = left


def run_job(job: Job, scorer: Any, on_items: OnItems | None = None) -> bool:
    """Make one file; False where it is finished already, ``Busy`` where another run is making it."""
    with locked(job.target):
        made = not job.is_finished(scorer)
        if made:
            job.make(scorer, on_items or (lambda done, total: None))
        tidy(job)
    return made


def tidy(job: Job) -> None:
    """Forget the packs of a finished file: a run that was killed between its last two steps leaves them."""
    with contextlib.suppress(OSError):  # a folder that may only be read keeps them
        forget_packs(job.packs)


def _run_shown(job: Job, scorer: Any, label: str) -> None:
    """Make one file under a bar of items, items/s and time left."""
    total = 0
    with contextlib.ExitStack() as shown:
        bar = None

        def on_items(done: int, of: int) -> None:
            nonlocal bar, total
            total = of
            if bar is None:  # what an earlier run finished does not count as this run's speed
                bar = shown.enter_context(
                    progress_bar(total=of, unit=job.unit, label=label, initial=done)
                )
            bar.update(done - bar.n)

        started = time.monotonic()
        made = run_job(job, scorer, on_items)
        seconds = time.monotonic() - started
    if made:
        note(
            f"{job.label}: {total} {job.unit} in {seconds:.0f} s ({total / seconds:.1f} {job.unit}/s)"
        )
    else:
        note(f"{job.label}: another run has just made it")


class Packs:
    """The packs of one plan: those that an earlier run finished, then the others as they are scored and kept."""

    def __init__(
        self,
        folder: Path,
        label: str,
        scorer: Scorer,
        plan: Plan,
        arithmetic: Arithmetic = "float32",
    ) -> None:
        mark = fingerprint(plan, scorer.describe(plan.tokenisation), arithmetic)
        self._scorer, self._plan, self._arithmetic = scorer, plan, arithmetic
        self._store = PackStore(folder, mark)
        self._finished: set[int] = set()
        if self._store.discarded:
            note(
                f"{label}: {self._store.discarded} packs of another run thrown away "
                "(its model, data or settings differ)"
            )

    def stored(self) -> Iterator[dict[int, RequestScore]]:
        """Request number -> score, of each pack that an earlier run finished."""
        for number, scores in self._store.each():
            self._finished.add(number)
            yield scores

    def fresh(self) -> Iterator[dict[int, RequestScore]]:
        """The same of each pack that ``stored`` did not have, in any order; kept before it is handed on."""
        missing = [n for n in range(len(self._plan.packs)) if n not in self._finished]
        for number, scores in score_packs(self._scorer, self._plan, missing, self._arithmetic):
            self._store.save(number, scores)
            yield scores
