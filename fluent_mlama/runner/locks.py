"""One lock for each output file: whoever holds it makes the file.

The lock is the operating system's, on a hidden file beside the output. It ends with its process, however that ends, so the
file of a dead run is free at once and nothing has to be cleared away.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from fluent_mlama.console import UserError, note
from fluent_mlama.records.atomic import new_folders

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
