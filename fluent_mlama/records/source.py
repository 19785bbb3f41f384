"""Where files come from: a folder or a zip, read alike, one level deep.

Nothing is unpacked to the disk and nothing recurses: a folder of results inside a folder of results is a
different experiment. ``__MACOSX`` and dot files are what operating systems leave behind; they are not data.
"""

from __future__ import annotations

import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from fluent_mlama.console import UserError


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

    def names(self) -> list[str]:
        return sorted(
            entry.name
            for entry in self.path.iterdir()
            if entry.is_file() and not _is_litter(entry.name)
        )

    def folders(self) -> list[str]:
        return sorted(
            entry.name
            for entry in self.path.iterdir()
            if entry.is_dir() and not _is_litter(entry.name)
        )

    def folder(self, name: str) -> FolderSource:
        return FolderSource(self.path / _bare(name))

    def read(self, name: str) -> bytes:
        try:
            return (self.path / _bare(name)).read_bytes()
        except FileNotFoundError:
            raise _missing(self, name) from None

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
            raise _missing(self, name) from None
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise UserError(f"{self.where(name)} is damaged ({error}); get the zip again") from None
        except (
            RuntimeError,
            NotImplementedError,
        ) as error:  # encrypted, or a compression zipfile does not know
            raise UserError(f"{self.where(name)} cannot be unpacked: {error}") from None

    def where(self, name: str) -> str:
        return f"{self.path}:{self._inside}{name}"


def open_source(path: Path | str, *, enter_top_folder: bool = True) -> Source:
    """A folder or a zip as a ``Source``.

    A zip that holds nothing but one top folder (as the published ones do) is read from inside that folder,
    unless ``enter_top_folder`` is off. ``UserError``: nothing there, not a zip, damaged, or member names that
    point outside the zip.
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


def _missing(source: Source, name: str) -> UserError:
    return UserError(f"no file {name} in {source.path}")
