"""Who is at work on what in an output folder: claims that die with their process.

One hidden file a folder (``.claims``), one byte of it a claim, locked with POSIX record locks. The system drops a process's
locks when it ends, however it ends, so a dead run's claims are free at once and none has to be cleared away. The byte need
not exist; the file holds one line alone, which says what the runs at work here make. Record locks, not ``flock``: NFS has them.

byte 0   the gate: who holds it may come, go, and write the line
byte 1   every run at work holds it together with the others (shared): the line counts while somebody does
others   a dump or a pack, by the hash of its name

Without record locks (Windows) a lock file lets one run at a time into the folder.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fluent_mlama.console import UserError, note
from fluent_mlama.json_text import parse_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = ".claims"
_GATE, _PRESENCE, _FIRST = 0, 1, 2
_TAKEN = {errno.EACCES, errno.EAGAIN}
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}
_LINE = 1 << 16

Making = Mapping[str, Any]
"""What a run makes: whatever must be equal for all that work in one folder."""
_open: dict[Path, Claims] = {}
"""Record locks belong to the process, and closing any handle of the file drops them: one handle a folder and process."""


class Claimed(UserError):
    """Another run is at work on this."""


class Claims:
    """The claims of this process in one folder. Get it with ``claims_in``."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._runs = 0
        self._held: set[int] = set()
        self._handle: int | None = None
        self._works = fcntl is not None
        self._alone = FileLock(self.path.with_suffix(".lock"), timeout=0)

    @contextlib.contextmanager
    def at_work(self, making: Making, differs: Callable[[Making], str]) -> Iterator[bool]:
        """Be one of the runs at work in this folder; yields whether this process was none before.

        ``UserError`` where others are at work and ``differs`` (of what they make) says, in words, what sets them apart.
        """
        first = self._runs == 0
        if first:
            self._come(making, differs)
        self._runs += 1
        try:
            yield first
        finally:
            self._runs -= 1
            if self._runs == 0:
                self._go()

    def take(self, name: str) -> bool:
        """Claim ``name`` (inside ``at_work``); False where another run, or this one, has it."""
        place = _place(name)
        if place in self._held or not self._lock(place):
            return False
        self._held.add(place)
        return True

    def drop(self, name: str) -> None:
        """Give a claim back."""
        place = _place(name)
        if place in self._held:
            self._held.discard(place)
            self._unlock(place)

    @contextlib.contextmanager
    def claimed(self, name: str) -> Iterator[None]:
        """Hold a claim; ``Claimed`` where another run has it."""
        if not self.take(name):
            raise Claimed(
                f"another run is at work on {self.path.parent / name}; wait for it, or choose another folder with --out"
            )
        try:
            yield
        finally:
            self.drop(name)

    def _come(self, making: Making, differs: Callable[[Making], str]) -> None:
        if fcntl is None:
            self._come_alone()
        with self._gate():
            if self._lock(_PRESENCE):  # nobody else is here
                self._write_line(making)
                self._lock(_PRESENCE, shared=True)
            else:
                others = self._read_line()
                difference = differs(others)
                if difference:
                    self._close()
                    raise UserError(
                        f"{self._busy()} with another {difference}; choose another folder with --out"
                    )
                self._lock(_PRESENCE, shared=True)

    def _come_alone(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._alone.acquire()
        except Timeout:
            raise Claimed(
                f"{self._busy()}; wait for it, or choose another folder with --out"
            ) from None

    def _go(self) -> None:
        self._held.clear()
        self._alone.release()
        if self._handle is None:
            return
        with self._gate(), contextlib.suppress(OSError):
            if self._works and self._lock(_PRESENCE):  # the last one puts out the light
                self.path.unlink(missing_ok=True)
        self._close()

    @contextlib.contextmanager
    def _gate(self) -> Iterator[None]:
        """Alone at the gate of the file that stands under this name now (the last run may just have removed the one opened)."""
        while self._works:
            try:
                if self._handle is None:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
                if not self._lock(_GATE, wait=True) or os.path.samestat(
                    os.fstat(self._handle), self.path.stat()
                ):
                    break
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno != errno.ESTALE:
                    raise
            self._close()
        try:
            yield
        finally:
            self._unlock(_GATE)

    def _lock(self, place: int, *, shared: bool = False, wait: bool = False) -> bool:
        if not self._works or self._handle is None:
            return True
        how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
        try:
            fcntl.lockf(self._handle, how, 1, place)
        except OSError as error:
            if error.errno in _TAKEN:
                return False
            if error.errno not in _NO_LOCKS:
                raise
            self._works = False
            note(
                f"the file system of {self.path.parent} has no locks ({error.strerror}): keep to one run at a time in this folder"
            )
        return True

    def _unlock(self, place: int) -> None:
        if self._works and self._handle is not None:
            fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, place)

    def _close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)  # drops every lock
            self._handle = None

    def _busy(self) -> str:
        return f"another run is at work in {self.path.parent}"

    def _write_line(self, making: Making) -> None:
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.pwrite(
                self._handle, json.dumps(making, ensure_ascii=False).encode("utf-8") + b"\n", 0
            )

    def _read_line(self) -> Making:
        line = os.pread(self._handle, _LINE, 0) if self._handle is not None else b"{}"
        try:
            return dict(parse_json(line, NAME))
        except (ValueError, TypeError):
            raise UserError(
                f"{self._busy()}, and {NAME} there is damaged; wait for it, or choose another folder with --out"
            ) from None


def claims_in(folder: Path) -> Claims:
    """The claims of this process in ``folder``."""
    key = folder.resolve()
    if key not in _open:
        _open[key] = Claims(folder)
    return _open[key]


def _place(name: str) -> int:
    return _FIRST + int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest()[:7], "big")
