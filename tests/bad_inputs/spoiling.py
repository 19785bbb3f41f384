"""Ways to spoil a file of the good desk; each gives a function of the desk's folder."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.bad_inputs.case import Break

NESTED = "[" * 100_000
"""JSON that no reader of Python's can follow."""


def both(*breaks: Break) -> Break:
    """One after the other."""

    def spoil(desk: Path) -> None:
        for one in breaks:
            one(desk)

    return spoil


def put(name: str, content: str | bytes) -> Break:
    """A file with this content."""

    def spoil(desk: Path) -> None:
        path = desk / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))

    return spoil


def change(name: str, make: Callable[[bytes], bytes]) -> Break:
    """The file's bytes, made into others."""
    return lambda desk: (desk / name).write_bytes(make((desk / name).read_bytes())) and None


def swap(name: str, old: str, new: str, count: int = -1) -> Break:
    """Some text of the file put in place of other text (which must be there)."""

    def make(data: bytes) -> bytes:
        assert old.encode() in data, f"{name} has no {old!r}"
        return data.replace(old.encode(), new.encode(), count)

    return change(name, make)


def cut(name: str, share: float = 0.5) -> Break:
    """The end of the file is missing."""
    return change(name, lambda data: data[: int(len(data) * share)])


def lines(name: str, make: Callable[[list[str]], list[str]]) -> Break:
    """The file's lines, made into others."""
    return change(
        name,
        lambda data: "".join(f"{line}\n" for line in make(data.decode().splitlines())).encode(),
    )


def without_column(name: str, *columns: str) -> Break:
    """Columns of a TSV left out."""

    def make(rows: list[str]) -> list[str]:
        table = [row.split("\t") for row in rows]
        kept = [place for place, head in enumerate(table[0]) if head not in columns]
        assert len(kept) == len(table[0]) - len(columns)
        return ["\t".join(row[place] for place in kept) for row in table]

    return lines(name, make)


def cell(name: str, row: int, column: str, value: str) -> Break:
    """One cell of a TSV, the first row below the header being 0."""

    def make(rows: list[str]) -> list[str]:
        place = rows[0].split("\t").index(column)
        cells = rows[row + 1].split("\t")
        return [
            *rows[: row + 1],
            "\t".join([*cells[:place], value, *cells[place + 1 :]]),
            *rows[row + 2 :],
        ]

    return lines(name, make)


def remove(*names: str) -> Break:
    """Files or folders that are not there."""

    def spoil(desk: Path) -> None:
        for name in names:
            path = desk / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return spoil


def folder(name: str) -> Break:
    """An empty folder, also in place of a file."""

    def spoil(desk: Path) -> None:
        (desk / name).unlink(missing_ok=True)
        (desk / name).mkdir(parents=True)

    return spoil


def copy(name: str, to: str) -> Break:
    """A file or folder that stands there once more."""

    def spoil(desk: Path) -> None:
        target = desk / to
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(desk / name, target, dirs_exist_ok=True) if (
            desk / name
        ).is_dir() else shutil.copy(desk / name, target)

    return spoil


def zipped(name: str, of: str, inside: str = "") -> Break:
    """A zip of a folder's files, below ``inside``."""

    def spoil(desk: Path) -> None:
        with zipfile.ZipFile(desk / name, "w") as archive:
            for path in sorted((desk / of).rglob("*")):
                if path.is_file():
                    archive.write(path, f"{inside}{path.relative_to(desk / of)}")

    return spoil


def unreadable(name: str) -> Break:
    """A file or folder without any permission (nothing for root, who may read all)."""
    return lambda desk: os.chmod(desk / name, 0)
