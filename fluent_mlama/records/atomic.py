"""Files that are either the old one or the new one, never half of either.

A file is written beside its final name (same file system) and moved into place with ``os.replace``.
A killed process leaves at most a hidden ``.name.….partial`` beside it, which no reader of this project looks at.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from fluent_mlama.console import UserError


@contextlib.contextmanager
def new_folders(*folders: Path) -> Iterator[None]:
    """What of these folders (and of those above them) is made inside and still empty when an error ends it, is removed again."""
    missing = _missing(*folders)
    try:
        yield
    except BaseException:
        _remove_empty(missing)
        raise


def check_writable(folder: Path, option: str) -> None:
    """Try whether files can be written into a folder, before any work is done for it; nothing is left behind.

    ``UserError``: it is a file or lies in one, cannot be made, or takes no file. option: what names it on the command line.
    """
    missing = _missing(folder)
    probe = folder / f".writable-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except (FileExistsError, NotADirectoryError):
        raise UserError(f"{option} {folder} is a file, or lies in one; name a folder") from None
    except OSError as error:
        raise UserError(
            f"cannot write into {option} {folder} ({error.strerror}); choose another folder"
        ) from None
    finally:
        _remove_empty(missing)


def _missing(*folders: Path) -> list[Path]:
    """What of these folders and those above them is not there, the innermost first."""
    places = {
        place
        for folder in folders
        for place in (folder, *folder.parents)
        if not os.path.lexists(place)
    }
    return sorted(places, key=lambda place: len(place.parts), reverse=True)


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


@contextlib.contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success it is moved there, on any error it is removed.

    The folder is made where it is missing. ``OSError`` (full disk, no permission) goes up to ``run_main``,
    which tells it in one line.
    """
    path = Path(path)
    with new_folders(path.parent), _beside(path) as temporary:
        yield temporary


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError(
            f"cannot write {path}: {path.parent} is a file, or lies in one; choose another folder"
        ) from None
    if path.is_dir():
        raise UserError(f"cannot write {path}: a folder stands there; move it away")
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        yield temporary
        with temporary.open("rb+") as handle:
            os.fsync(handle.fileno())  # the name must not reach the disk before the bytes do
        os.replace(temporary, path)
    except OSError as error:
        if error.filename is None:  # a full disk in the middle of a write names no file
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path | str, data: bytes) -> None:
    """Put these bytes at ``path``, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path | str, text: str) -> None:
    """Put this text at ``path`` as UTF-8 with its line ends as they are, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))
