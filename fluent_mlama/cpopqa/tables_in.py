"""CSV and TSV files that a person hands in: read whole, by column name, with the row number for every complaint."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fluent_mlama.console import UserError
from fluent_mlama.ranking.corrected import comparable


def read_text(path: Path) -> str:
    """The file as text; not there, a folder or not UTF-8 is a UserError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise UserError(f"{path}: no such file; check the path") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path.name}: not UTF-8 (byte {error.start}); save it as UTF-8") from None


def delimiter_of(header: str) -> str:
    """Tab where the header line has one, else a comma."""
    return "\t" if "\t" in header else ","


def read_rows(path: Path, required: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(row number, cells) of a CSV or TSV with a header that names at least these columns.

    Cells are in NFC, without characters that nobody sees, white space as single blanks: equal names are equal strings.

    A row with another number of fields than the header is a UserError that names it.
    """
    text = read_text(path)
    lines = text.splitlines()
    if not lines:
        raise UserError(
            f"{path.name}: the file is empty; its header must name {', '.join(required)}"
        )
    rows = records(path, io.StringIO(text, newline=""), delimiter_of(lines[0]))
    header = [_tidy(cell) for cell in next(rows)[1]]
    missing = [name for name in required if name not in header]
    if missing:
        raise UserError(
            f"{path.name}: row 1 lacks the column {missing[0]}; it must name {', '.join(required)}"
        )
    doubled = [name for name in header if header.count(name) > 1]
    if doubled:
        raise UserError(f"{path.name}: row 1 names the column {doubled[0]!r} twice; remove one")
    for row, cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise UserError(
                f"{path.name}: row {row} has {len(cells)} fields, the header {len(header)}; quote commas"
            )
        yield row, {name: _tidy(cell) for name, cell in zip(header, cells, strict=True)}


def _tidy(cell: str) -> str:
    return " ".join(comparable(cell).split())


def records(
    path: Path, lines: Iterable[str], delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """(line in which it ends, fields) of each record; a field without end, which an open quotation mark makes, is a UserError."""
    reader = csv.reader(lines, delimiter=delimiter)
    last = 0
    try:
        for cells in reader:
            last = reader.line_num
            yield last, cells
    except csv.Error as error:
        raise UserError(
            f"{path.name}: row {last + 1}: {error}; is a quotation mark open there?"
        ) from None


def number(path: Path, row: int, column: str, value: str) -> float:
    """A finite number of at least 0 in plain digits, else a UserError that says where."""
    try:
        found = float(value if value.isascii() and "_" not in value else "nan")
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found >= 0):
        raise UserError(
            f"{path.name}: row {row}: {column} {value!r} is no number of at least 0; correct it or remove the row"
        )
    return found
