"""Tab-separated tables as published: UTF-8, LF, tab, quotes only where they are needed.

Every cell is a string and an empty cell is the empty string: ``NA``, ``null``, ``007`` and ``1e5`` are labels.
A field that holds a tab, a double quote or a line end stands in double quotes, its own quotes doubled
(RFC 4180 with a tab), so a cell may span several lines.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from fluent_mlama.console import UserError

_NEEDS_QUOTES = ("\t", '"', "\n", "\r")


def read_table(data: bytes, where: str, *, allow_no_rows: bool = False) -> pd.DataFrame:
    """The table in these bytes: a RangeIndex, all cells ``str``, header names as they stand.

    ``where`` names the file in errors. ``UserError``: empty, not UTF-8, a row with too few or too many fields
    (line, found, expected), no rows below the header (unless allowed), a column name that stands twice.
    """
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
    """The table as text; cells must be strings (missing = ``""``). With ``index`` it comes first, under its name or none."""
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
    # The csv writer of Python 3.11 leaves a lone carriage return unquoted and then reads it as a line end.
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
                    f"{where}: line {reader.line_num} ends a row of {len(row)} fields, the header has {len(header)}; "
                    "the file is cut off, or a tab or a quote is missing"
                )
            if row:
                rows.append(row)
    except csv.Error as error:
        raise UserError(
            f"{where}: line {reader.line_num}: {error}; the file is cut off, or a quote is not closed or not doubled"
        ) from None
    return header, rows


def _is_literal(text: str) -> bool:
    """Whether quotes are plain characters in this file: a hand-made table with a label such as ``"Live``.

    Only where every line has the header's number of fields and no field shows a doubled quote, the mark of a
    file that was written with quoting (which then is damaged, and must be refused rather than misread).
    """
    lines = [line.split("\t") for line in text.replace("\r\n", "\n").split("\n") if line]
    return '""' not in text and all(len(line) == len(lines[0]) for line in lines)
