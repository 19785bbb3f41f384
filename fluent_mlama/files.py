"""Files: found, read and written, in folders and zips. Every room may use it.

- names that every file system takes, relations in the order of their numbers;
- writing beside the final name and moving into place: a killed run leaves the old file or the new;
- a folder or a zip as one ``Source`` of files;
- tab-separated tables as published: UTF-8, LF, tab, quotes only where they are needed. Every cell
  is a string and an empty cell is the empty string: ``NA``, ``null``, ``007`` and ``1e5`` are
  labels. A field that holds a tab, a double quote or a line end is quoted, its own quotes doubled
  (RFC 4180 with a tab);
- JSON that may be damaged: one error for every way in which it can be.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import secrets
import shutil
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from fluent_mlama.console import UserError, plain_number

if TYPE_CHECKING:
    import pandas as pd


@contextlib.contextmanager
def new_folders(*folders: Path) -> Iterator[None]:
    """What of these folders (and of those above them) is made inside and still empty when an error
    ends it, is removed again.
    """
    missing = _missing(*folders)
    try:
        yield
    except BaseException:
        _remove_empty(missing)
        raise


def check_writable(folder: Path, option: str) -> None:
    """Try whether files can be written into a folder, before any work is done for it; nothing is
    left behind.

    ``UserError``: it is a file or lies in one, cannot be made, or takes no file. option: what names
    it on the command line.
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
    """Yield a temporary path beside ``path``; on success it is moved there, on any error it is
    removed.

    The folder is made where it is missing. ``OSError`` (full disk, no permission) goes up to
    ``run_main``, which tells it in one line.
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
    """Whether this is one bare, visible file name on Linux, macOS and Windows alike: no path, no
    ``:`` or ``|``, no device.
    """
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
    """A name for the files of whatever is called ``word`` (a model, a label): other characters
    become ``joint``, nothing ``instead``.
    """
    name = _STRANGE.sub(joint, word).strip("-.") or instead
    return name if is_file_name(name) else f"_{name}"


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
    """What a zip holds: folder prefix ("" or "stats/") -> bare names of the files and of the
    folders in it.
    """

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
            raise _no_such_file(self, name) from None

    def where(self, name: str) -> str:
        return str(self.path / name)


class ZipSource:
    """A zip file, or one folder inside it. ``inside`` is that folder as a path prefix ("" or
    "stats/").

    ``zipfile.Path`` would go through all members for each listing: five times as long for a whole
    mLAMA.
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
            raise _no_such_file(self, name) from None
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

    A zip that holds nothing but one top folder (as the published ones do) is read from inside that
    folder, unless ``enter_top_folder`` is off. ``UserError``: nothing there, not a zip, damaged, or
    member names that point outside the zip.
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
    """Nothing is unpacked here, but a zip made to write outside its folder deserves no trust at
    all.
    """
    for name in members:
        if (
            name.startswith("/")
            or "\\" in name
            or ".." in PurePosixPath(name).parts
            or name[1:2] == ":"
        ):
            raise UserError(
                f"{path} holds the member name {name!r}, which points outside the zip; it is not "
                "read"
            )


def _bare(name: str) -> str:
    if not name or name in {".", ".."} or "/" in name or "\\" in name:
        raise UserError(f"not a bare file name: {name!r}")
    return name


def _no_such_file(source: Source, name: str) -> UserError:
    return UserError(f"no file {name} in {source.path}")


_NEEDS_QUOTES = ("\t", '"', "\n", "\r")


def read_table(data: bytes, where: str, *, allow_no_rows: bool = False) -> pd.DataFrame:
    """The table in these bytes: a RangeIndex, all cells ``str``, header names as they stand.

    ``where`` names the file in errors. ``UserError``: empty, not UTF-8, a row with too few or too
    many fields (line, found, expected), no rows below the header (unless allowed), a column name
    that stands twice.
    """
    import pandas as pd  # commands that only look for files do not wait for it

    text = _decode(data, where)
    try:
        header, rows = _parse(text, where, quoted=True)
    except UserError:
        if not _is_literal(text):
            raise
        header, rows = _parse(text, where, quoted=False)
    doubled = sorted({name for name in header if header.count(name) > 1})
    if doubled:
        raise UserError(f"{where}: column {doubled[0]!r} stands twice in the header; remove one")
    if not rows and not allow_no_rows:
        raise UserError(f"{where}: a header and no rows; is the file cut off?")
    return (
        pd.DataFrame(rows, columns=header, dtype="str")
        if rows
        else pd.DataFrame({name: pd.Series([], dtype="str") for name in header})
    )


def refuse_nul(data: bytes, where: str) -> None:
    """``UserError`` where a file of labels holds a NUL byte, which is no label's but a disk's."""
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise UserError(f"{where}: a NUL byte in line {line}, so the file is damaged; get it again")


def format_table(frame: pd.DataFrame, *, index: bool = False) -> str:
    """The table as text; cells must be strings (missing = ``""``). With ``index`` it comes first,
    under its name or none.
    """
    header = [*([_name(frame.index.name)] if index else []), *map(str, frame.columns)]
    columns: list[Sequence[str]] = [frame[name].tolist() for name in frame.columns]
    if index:
        columns.insert(0, [str(label) for label in frame.index])
    return "".join(_format_row(row) for row in _with_header(header, columns))


def _with_header(
    header: Sequence[str], columns: Sequence[Sequence[str]]
) -> Iterator[Sequence[str]]:
    yield header
    yield from zip(*columns, strict=True)


def _format_row(cells: Sequence[str]) -> str:
    if len(cells) == 1 and cells[0] == "":
        return '""\n'  # an empty line would be no row at all
    return "\t".join(map(_format_cell, cells)) + "\n"


def _format_cell(cell: str) -> str:
    # Python 3.11's csv writer leaves a lone carriage return unquoted and reads it as a line end.
    if any(mark in cell for mark in _NEEDS_QUOTES):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _name(name: object) -> str:
    return "" if name is None else str(name)


def _decode(data: bytes, where: str) -> str:
    if not data.strip():
        raise UserError(f"{where}: the file is empty")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{where}: not UTF-8 (byte 0x{data[error.start]:02x} in line {line}); save it as UTF-8"
        ) from None


def _parse(text: str, where: str, *, quoted: bool) -> tuple[list[str], list[list[str]]]:
    lines: Iterable[str] = io.StringIO(text, newline="")
    reader = csv.reader(
        lines,
        delimiter="\t",
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=quoted,
    )
    rows: list[list[str]] = []
    try:
        header = next(row for row in reader if row)
        for row in reader:
            if row and len(row) != len(header):
                raise UserError(
                    f"{where}: line {reader.line_num} ends a row of {len(row)} fields, the header "
                    f"has {len(header)}; "
                    "the file is cut off, or a tab or a quote is missing"
                )
            if row:
                rows.append(row)
    except csv.Error as error:
        raise UserError(
            f"{where}: line {reader.line_num}: {error}; the file is cut off, or a quote is not "
            "closed or not doubled"
        ) from None
    return header, rows


def _is_literal(text: str) -> bool:
    """Whether quotes are plain characters in this file: a hand-made table with a label such as
    ``"Live``.

    Only where every line has the header's number of fields and no field shows a doubled quote, the
    mark of a file that was written with quoting (which then is damaged, and must be refused rather
    than misread).
    """
    lines = [line.split("\t") for line in text.replace("\r\n", "\n").split("\n") if line]
    return '""' not in text and all(len(line) == len(lines[0]) for line in lines)


class BadJson(UserError, ValueError):
    """This is no JSON. A ``ValueError`` too, for those who can go on without it."""


_MAYBE_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of one half of a surrogate pair; both halves together are a character."""


def parse_json(
    text: str | bytes,
    where: str,
    remedy: str = "is the file cut off?",
    *,
    make_object: Callable[[list[tuple[str, Any]]], Any] | None = None,
    halves: bool = False,
) -> Any:
    """What the text holds. ``BadJson``: not UTF-8, not JSON, nested deeper than Python reads, a
    number longer than it reads.

    where: begins the error line. remedy: ends it. make_object: given the names and values of each
    object, as in ``json.loads``. halves: let half of a surrogate pair through, as where a model's
    answer was cut between the two.
    """
    try:
        written = text if isinstance(text, str) else text.decode("utf-8-sig")
        found = json.loads(written, object_pairs_hook=make_object)
        if not halves and _MAYBE_HALF.search(written):
            json.dumps(found, ensure_ascii=False, default=str).encode("utf-8")
        return found
    except json.JSONDecodeError as error:
        row = f"line {error.lineno}, " if "\n" in error.doc.rstrip("\n") else ""
        what = f"{error.msg}: {row}column {error.colno}"
    except UnicodeEncodeError:  # "\\ud800": JSON lets it be written, no file can hold it
        what = "half of a surrogate pair, which is no character"
    except UnicodeDecodeError as error:
        what = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
    except RecursionError:
        what = "brackets nested too deeply"
    except ValueError:  # Python's limit to the digits of a whole number
        what = "a number of thousands of digits"
    raise BadJson(f"{where} is not JSON ({what}); {remedy}")


@contextlib.contextmanager
def replacing_folder(
    path: Path | str, *, find_foreign: Callable[[Path], str | None]
) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; on success it takes its place, on any error it is
    removed.

    find_foreign: names a file in the old folder that no earlier run made, None where there is none.
    Such a file is a ``UserError`` before anything is written, so that it is not lost with the
    folder.
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
