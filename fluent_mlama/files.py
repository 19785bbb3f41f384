"""Files and folders: names that every system takes, reading from folder or zip, writing whole or not at all.

Writing: a file is written beside its final name (same file system) and moved into place with
``os.replace``. A killed process leaves at most a hidden ``.name.….partial``, which nothing here reads.

Reading: a folder and a zip are read alike, one level deep. Nothing is unpacked to the disk and nothing
recurses: a folder of results inside a folder of results is a different experiment. ``__MACOSX`` and dot
files are what operating systems leave behind; they are not data.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from fluent_mlama.console import UserError, plain_number

_REFUSED = re.compile(r'[\x00-\x1f\x7f/\\:|*?"<>]')
_STRANGE = re.compile(r"[^A-Za-z0-9_.-]+")
_DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)),
}
"""Names of devices on Windows, whatever ending follows."""


def is_file_name(name: str) -> bool:
    """Whether this is one bare, visible file name on Linux, macOS and Windows alike."""
    if (
        not name
        or name != name.strip()
        or name[0] == "."
        or name[-1] == "."
        or _REFUSED.search(name)
    ):
        return False
    return name.split(".")[0].rstrip().casefold() not in _DEVICES


def by_number(relation: str) -> tuple[int, str]:
    """Sorts relations as people count: P19 before P101, what has no number last."""
    number = plain_number(relation[1:])
    return (10**18 if number is None else number, relation)


def as_file_name(word: str, joint: str = "--", instead: str = "model") -> str:
    """A file name for a model or a label: other characters become ``joint``, nothing ``instead``."""
    name = _STRANGE.sub(joint, word).strip("-.") or instead
    return name if is_file_name(name) else f"_{name}"


@contextlib.contextmanager
def new_folders(*folders: Path) -> Iterator[None]:
    """Remove, on an error, those of these folders (and their parents) that are new and empty."""
    missing = _missing(*folders)
    try:
        yield
    except BaseException:
        _remove_empty(missing)
        raise


def check_writable(folder: Path, option: str) -> None:
    """Check that files can be written into a folder, before any work is done; leaves nothing behind.

    option: what names the folder on the command line.
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
    """Yield a temporary path beside ``path``; on success it is moved there, on error removed.

    The folder is made if missing. ``OSError`` (full disk, no permission) goes up to ``run_main``,
    which prints one line.
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
        raise UserError(f"cannot write {path}: it is a folder; move it away")
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


@contextlib.contextmanager
def replacing_folder(
    path: Path | str, *, find_foreign: Callable[[Path], str | None]
) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; on success it takes its place, on any error it is removed.

    find_foreign: names a file in the old folder that no earlier run made, None where there is none.
    Such a file is a ``UserError`` before anything is written, so that it is not lost with the folder.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise UserError(f"cannot write {path}: it is a file; choose another folder")
    foreign = find_foreign(path) if path.is_dir() else None
    if foreign is not None:
        raise UserError(
            f"{path} holds other files ({foreign}), so it is left as it is; choose a new folder"
        )
    target = path.resolve()
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    temporary = target.with_name(f".{target.name}.{token}.partial")
    earlier = target.with_name(f".{target.name}.{token}.earlier.partial")
    try:
        temporary.mkdir(parents=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError(
            f"cannot write {path}: {path.parent} is a file, or lies in one; choose another folder"
        ) from None
    try:
        yield temporary
        if target.exists():
            os.replace(target, earlier)
        os.replace(temporary, target)
    except BaseException:
        if earlier.exists() and not target.exists():
            os.replace(earlier, target)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(earlier, ignore_errors=True)


class Source(Protocol):
    """Files of one level, by bare name, and the folders beside them."""

    @property
    def path(self) -> Path:
        """The folder or the zip file on the disk."""

    def names(self) -> list[str]:
        """Bare names of the files here, sorted."""

    def folders(self) -> list[str]:
        """Bare names of the folders here, sorted."""

    def folder(self, name: str) -> Source:
        """The files of one folder here."""

    def read(self, name: str) -> bytes:
        """The bytes of one file here; ``UserError`` where there is none or it cannot be read."""

    def where(self, name: str) -> str:
        """How to name this file to a person."""


@dataclass
class _Tree:
    """What a zip holds: folder prefix ("" or "stats/") -> bare names of the files and of the folders in it."""

    files: dict[str, set[str]]
    folders: dict[str, set[str]]


class FolderSource:
    """A folder on the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _entries(self) -> list[Path]:
        return sorted(entry for entry in self.path.iterdir() if not _is_litter(entry.name))

    def names(self) -> list[str]:
        return [entry.name for entry in self._entries() if entry.is_file()]

    def folders(self) -> list[str]:
        return [entry.name for entry in self._entries() if entry.is_dir()]

    def folder(self, name: str) -> FolderSource:
        return FolderSource(self.path / _bare(name))

    def read(self, name: str) -> bytes:
        try:
            return (self.path / _bare(name)).read_bytes()
        except FileNotFoundError:
            raise _no_file(self, name) from None

    def where(self, name: str) -> str:
        return str(self.path / name)


class ZipSource:
    """A zip file, or one folder inside it. ``inside`` is that folder as a path prefix ("" or "stats/").

    ``zipfile.Path`` would go through all members for each listing: five times as long for a whole mLAMA.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile, tree: _Tree, inside: str = "") -> None:
        self.path = path
        self._archive = archive
        self._tree = tree
        self._inside = inside

    def names(self) -> list[str]:
        return sorted(self._tree.files.get(self._inside, ()))

    def folders(self) -> list[str]:
        return sorted(self._tree.folders.get(self._inside, ()))

    def folder(self, name: str) -> ZipSource:
        return ZipSource(self.path, self._archive, self._tree, f"{self._inside}{_bare(name)}/")

    def read(self, name: str) -> bytes:
        try:
            return self._archive.read(self._inside + _bare(name))
        except KeyError:
            raise _no_file(self, name) from None
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise UserError(f"{self.where(name)} is damaged ({error}); get the zip again") from None
        except (RuntimeError, NotImplementedError) as error:
            # encrypted, or a compression zipfile does not know
            raise UserError(f"{self.where(name)} cannot be unpacked: {error}") from None

    def where(self, name: str) -> str:
        return f"{self.path}:{self._inside}{name}"


def open_source(path: Path | str, *, enter_top_folder: bool = True) -> Source:
    """A folder or a zip as a ``Source``.

    A zip that holds nothing but one top folder (as the published ones do) is read from inside that
    folder, unless ``enter_top_folder`` is off.
    """
    path = Path(path)
    if path.is_dir():
        return FolderSource(path)
    if not path.exists():
        raise UserError(f"no such folder or zip file: {path}; check the path")
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise UserError(f"{path} is neither a folder nor a readable zip file ({error})") from None
    _refuse_escapes(path, archive.namelist())
    members = [name for name in archive.namelist() if not _is_litter(name)]
    source = ZipSource(path, archive, _grow(members))
    top = source.folders()
    if enter_top_folder and len(top) == 1 and not source.names():
        return source.folder(top[0])
    return source


def _grow(members: Iterable[str]) -> _Tree:
    tree = _Tree(defaultdict(set), defaultdict(set))
    for member in members:
        *parents, name = member.split("/")
        prefix = ""
        for parent in parents:
            tree.folders[prefix].add(parent)
            prefix += f"{parent}/"
        if name:  # a folder's own entry ends in a slash
            tree.files[prefix].add(name)
    return tree


def _is_litter(name: str) -> bool:
    return any(
        part == "__MACOSX" or (part.startswith(".") and part not in {".", ".."})
        for part in PurePosixPath(name).parts
    )


def _refuse_escapes(path: Path, members: Iterable[str]) -> None:
    """Nothing is unpacked here, but a zip made to write outside its folder deserves no trust at all."""
    for name in members:
        if (
            name.startswith("/")
            or "\\" in name
            or ".." in PurePosixPath(name).parts
            or name[1:2] == ":"
        ):
            raise UserError(
                f"{path} holds the member name {name!r}, which points outside the zip; it is not read"
            )


def _bare(name: str) -> str:
    if not name or name in {".", ".."} or "/" in name or "\\" in name:
        raise UserError(f"not a bare file name: {name!r}")
    return name


def _no_file(source: Source, name: str) -> UserError:
    return UserError(f"no file {name} in {source.path}")
