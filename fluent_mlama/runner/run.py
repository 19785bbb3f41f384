"""Jobs become files: which are finished, whose turn it is, what is left of a killed run.

An experiment says what a ``Job`` asks and how its answers become a file. Whether the file is there, who may make it, and
which packs are scored already is decided here alone, for all experiments.

One lock for each output file: whoever holds it makes the file. The lock is the operating system's, on a hidden file
beside the output, and ends with its process. While a file is made, a folder beside it (``….packs``) holds one small
Parquet file per finished pack, the unit of resume: a killed run leaves whole packs only, and the next run with the same
plan scores what is missing. Log-probabilities are kept as 64-bit floats, so that a resumed run assembles the same bytes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from fluent_mlama.console import UserError, note, progress_bar
from fluent_mlama.files import new_folders, write_bytes, write_text
from fluent_mlama.records.results import RunRecord
from fluent_mlama.scoring.contract import (
    Arithmetic,
    CandidateScore,
    Plan,
    RequestScore,
    Scorer,
    ScorerDescription,
)

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
        for number, scores in self._scorer.score_packs(self._plan, missing, self._arithmetic):
            self._store.save(number, scores)
            yield scores


_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}
_told: set[Path] = set()
"""Folders without locks that the user has been told of."""


class Busy(UserError):
    """Another run is at work on this file."""


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of the output file ``path``; ``Busy`` where another run has it (wait: until it has not).

    Where the file system has no locks this is said once, and the work is done without.
    """
    place = path.with_name(f".{path.name}.lock")
    with new_folders(path.parent):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise UserError(
                f"cannot write {path}: {path.parent} is a file, or lies in one; choose another folder"
            ) from None
        # A soft lock (a file that is there or not) would outlive a killed run.
        lock = FileLock(place, blocking=wait, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            raise Busy(
                f"another run is at work on {path}; wait for it, or let this one write elsewhere"
            ) from None
        except (OSError, NotImplementedError) as error:
            _tell_no_locks(place, error)
        try:
            yield
        finally:
            # Removed while it is held: filelock looks, once it has a lock, whether its file is still there.
            with contextlib.suppress(OSError):
                place.unlink()
            lock.release()


def is_locked(path: Path) -> bool:
    """Whether another run is at work on this file."""
    try:
        with locked(path):
            return False
    except Busy:
        return True


def _tell_no_locks(place: Path, error: OSError | NotImplementedError) -> None:
    if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
        raise error
    if place.parent not in _told:
        _told.add(place.parent)
        note(
            f"the file system of {place.parent} has no locks: keep to one run at a time in this folder"
        )


_PLAN = "plan.json"
_KEY = b"plan"
_PACK_NAME = re.compile(r"pack-(\d+)\.parquet")
_PROMPT = -1
_SCHEMA = pa.schema(
    [
        ("request", pa.int32()),
        ("candidate", pa.int32()),  # _PROMPT: the prompt's own tokens
        ("token_ids", pa.list_(pa.int32())),
        ("token_logprobs", pa.list_(pa.float64())),
        ("logprob", pa.float64()),
        ("tail_tokens", pa.int32()),
        ("straddles", pa.bool_()),
    ]
)


def fingerprint(plan: Plan, description: ScorerDescription, arithmetic: str) -> str:
    """What packs must agree on to be put together: the scorer, the arithmetic, every request and how they were cut."""
    digest = hashlib.sha256()
    d = description
    for part in (
        d.model,
        d.revision,
        d.dtype,
        d.device,
        d.path,
        d.bos,
        arithmetic,
        plan.tokenisation,
        plan.packs,
        plan.requests,
    ):
        digest.update(repr(part).encode("utf-8"))
    return digest.hexdigest()


class PackStore:
    """Packs of one dump in the making. Packs of another plan are thrown away when the store is opened.

    The folder is made for the first pack, so that a run that fails before it leaves none.
    """

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self.mark = mark
        self.discarded = 0
        if not self._is_current():
            for _, path in list(self._files()):
                path.unlink()
                self.discarded += 1

    def _is_current(self) -> bool:
        try:
            return (self.folder / _PLAN).read_bytes() == self._plan_file().encode()
        except OSError:
            return False

    def _plan_file(self) -> str:
        return json.dumps({"plan": self.mark}) + "\n"

    def each(self) -> Iterator[tuple[int, dict[int, RequestScore]]]:
        """Number and scores of every readable pack; a torn or foreign file counts as not finished."""
        for number, _ in list(self._files()):
            scores = self.load(number)
            if scores is not None:
                yield number, scores

    def finished(self) -> dict[int, dict[int, RequestScore]]:
        """All of them at once."""
        return dict(self.each())

    def load(self, number: int) -> dict[int, RequestScore] | None:
        """The scores of pack ``number``; None where it is not finished (a torn or foreign file is removed)."""
        path = self._path(number)
        try:
            return _decode(path.read_bytes(), self._mark_of(number))
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
            path.unlink(missing_ok=True)
            return None

    def save(self, number: int, scores: Mapping[int, RequestScore]) -> None:
        """Keep the scores of pack ``number``; whole or not at all."""
        if not self._is_current():
            write_text(self.folder / _PLAN, self._plan_file())
        write_bytes(self._path(number), _encode(scores, self._mark_of(number)))

    def remove(self) -> None:
        """Forget everything (once the dump itself is written)."""
        forget_packs(self.folder)

    def _mark_of(self, number: int) -> str:
        """What a pack's file must carry: a pack under another's name would be waited for without end."""
        return f"{self.mark}/{number}"

    def _path(self, number: int) -> Path:
        return self.folder / f"pack-{number:06d}.parquet"

    def _files(self) -> Iterable[tuple[int, Path]]:
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.iterdir()):
            match = _PACK_NAME.fullmatch(path.name)
            if match:
                yield int(match[1]), path


def forget_packs(folder: Path) -> None:
    """Remove a folder of packs, if it is there, whatever plan they are of."""
    if not folder.is_dir():
        return
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _encode(scores: Mapping[int, RequestScore], mark: str) -> bytes:
    rows = []
    for request, score in sorted(scores.items()):
        prompt = CandidateScore(
            score.prompt_token_ids, score.prompt_token_logprobs, score.prompt_logprob
        )
        for candidate, part in enumerate((prompt, *score.candidates), start=_PROMPT):
            rows.append(
                (
                    request,
                    candidate,
                    part.token_ids,
                    part.token_logprobs,
                    part.logprob,
                    part.tail_tokens,
                    part.straddles,
                )
            )
    columns = zip(*rows, strict=True) if rows else [[] for _ in _SCHEMA]
    table = pa.table(
        [pa.array(list(column), kind.type) for column, kind in zip(columns, _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
    table = table.replace_schema_metadata({_KEY: mark.encode("ascii")})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, write_page_checksum=True)  # a flipped bit must not become a score
    return buffer.getvalue()


def _decode(data: bytes, mark: str) -> dict[int, RequestScore]:
    prompts: dict[int, CandidateScore] = {}
    candidates: dict[int, list[CandidateScore]] = {}
    table = pq.read_table(io.BytesIO(data), page_checksum_verification=True)
    if (table.schema.metadata or {}).get(_KEY) != mark.encode("ascii"):
        raise ValueError("a pack of another plan")
    for row in table.cast(_SCHEMA).to_pylist():
        part = CandidateScore(
            tuple(row["token_ids"]),
            tuple(row["token_logprobs"]),
            row["logprob"],
            row["tail_tokens"],
            row["straddles"],
        )
        if row["candidate"] == _PROMPT:
            prompts[row["request"]] = part
        else:
            candidates.setdefault(row["request"], []).append(part)
    return {
        request: RequestScore(
            prompt.token_ids,
            prompt.token_logprobs,
            prompt.logprob,
            tuple(candidates.get(request, ())),
        )
        for request, prompt in prompts.items()
    }


def record_of(
    made: ScorerDescription,
    protocol: str,
    *,
    rows: int,
    data: str,
    pool: int,
    ties: str,
    data_name: str = "",
    scores_sha256: str = "",
    settings: dict[str, Any] | None = None,
) -> RunRecord:
    """The run record of an experiment's scores, with the one-line signature that dumps have.

    data: sha256 of what was asked. pool: alternatives of a question, at most. ties: how equal
    scores count. settings: as asked for; a run with the same ones is not made again.
    """
    return RunRecord(
        lang="",
        relation="",
        verbalisations=(),
        model=made.model,
        revision=made.revision,
        dtype=made.dtype,
        device=made.device,
        arithmetic="float32",
        path=made.path,
        path_reason=made.path_reason,
        tokenisation="joint",
        bos=made.bos,
        protocol=protocol,
        pool_size=pool,
        ties=ties,
        limit=None,
        data_name=data_name,
        data_sha256=data,
        rows_in=rows,
        rows_scored=rows,
        scores_sha256=scores_sha256,
        self_check=dict(made.self_check),
        packages=dict(made.versions),
        tokenizer=made.tokenizer,
        extras={} if settings is None else {"settings": settings},
    )
