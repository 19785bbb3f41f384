"""Google Books frequencies from whatever a person exported: the viewer's JSON, wide or long tables, raw files of 2020, 2012 or 2009.

Each reader gives phrase -> mean yearly relative frequency over the chosen years (the paper: 1800 to 2019, section 3.2).
"""

from __future__ import annotations

import gzip
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fluent_mlama.console import UserError, plain_number
from fluent_mlama.cpopqa.tables_in import delimiter_of, number, read_rows, read_text, records
from fluent_mlama.files import parse_json
from fluent_mlama.ranking.corrected import comparable

FIRST_YEAR, LAST_YEAR = 1800, 2019
LONGEST = 7
_ALL = re.compile(r"(?:\s+\(All\)|:[a-z]{2,3}[-_\w]*)+$")
_AROUND_MARKS = re.compile(r"\s*(['\-])\s*")


@dataclass(frozen=True, slots=True)
class Years:
    """The range that a mean is taken over, both ends included."""

    first: int = FIRST_YEAR
    last: int = LAST_YEAR

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __contains__(self, year: object) -> bool:
        return isinstance(year, int) and self.first <= year <= self.last


PAPER_YEARS = Years()


def key(phrase: str) -> str:
    """How phrases are compared: Google writes "New Year 's Day" and "Eid al - Fitr"; case is kept, it tells phrases apart."""
    return _AROUND_MARKS.sub(r"\1", " ".join(comparable(phrase).replace("’", "'").split()))


def read_ngrams(
    path: Path,
    years: Years = PAPER_YEARS,
    totals: Path | None = None,
    wanted: Iterable[str] | None = None,
) -> dict[str, float]:
    """key(phrase) -> mean yearly relative frequency, in any of the formats; which one is seen from the file itself.

    totals: the ``totalcounts`` file that raw files need. wanted: phrases to keep from raw files, which hold millions.
    """
    if path.suffix == ".json":
        return _viewer(path, years)
    if path.suffix == ".gz" or totals is not None:
        if totals is None:
            raise UserError(
                f"{path.name}: a raw file needs the yearly totals; give the totalcounts file with --totals"
            )
        return _raw(
            path, years, _totals(totals), None if wanted is None else {key(one) for one in wanted}
        )
    header = [cell.strip().casefold() for cell in _first_row(path)]
    if header == ["year", "ngram", "frequency"]:
        return _long(path, years)
    if header[:1] == ["year"]:
        return _wide(path, years)
    raise UserError(
        f"{path.name}: no format known here: viewer JSON, a table whose first column is year, or a raw file with --totals (docs/cpopqa.md)"
    )


def _first_row(path: Path) -> list[str]:
    line = next(iter(read_text(path).splitlines()), "")
    return next((cells for _, cells in records(path, [line], delimiter_of(line))), [])


def _viewer(path: Path, years: Years) -> dict[str, float]:
    """The viewer's JSON; rows with a parent are parts of an expansion or of a case-insensitive sum and are left out."""
    rows = parse_json(read_text(path), path.name, "save the viewer's json page as it is")
    found: dict[str, float] = {}
    for place, row in enumerate(rows if isinstance(rows, list) else [None], start=1):
        if (
            not isinstance(row, dict)
            or not isinstance(row.get("ngram"), str)
            or not isinstance(row.get("timeseries"), list)
        ):
            raise UserError(
                f"{path.name}: entry {place} has no ngram and timeseries: save the viewer's json page as it is"
            )
        if row.get("parent") or row.get("type") == "EXPANSION":
            continue
        series = row["timeseries"]
        if len(series) != len(years):
            raise UserError(
                f"{path.name}: {row['ngram']!r} has {len(series)} yearly values, {years.first} to {years.last} are {len(years)}; "
                "give the years of the export with --years"
            )
        if not all(type(value) in (int, float) and 0 <= value <= 1 for value in series):
            raise UserError(
                f"{path.name}: {row['ngram']!r} has a yearly value that is no relative frequency (a number from 0 to 1)"
            )
        name, mean = key(_ALL.sub("", row["ngram"])), math.fsum(series) / len(series)
        if found.setdefault(name, mean) != mean:
            raise UserError(
                f"{path.name}: entry {place}: {name!r} stands twice with other values; keep one of them"
            )
    return found


def _wide(path: Path, years: Years) -> dict[str, float]:
    sums: dict[str, list[float]] = {}
    seen: set[int] = set()
    for row, cells in read_rows(path, ["year"]):
        year = _year(path, row, cells.pop("year"))
        if not seen:
            _refuse_doubles(path, cells)
        if year not in years:
            continue
        if year in seen:
            raise UserError(f"{path.name}: row {row}: the year {year} stands twice")
        seen.add(year)
        for phrase, value in cells.items():
            sums.setdefault(key(_ALL.sub("", phrase)), []).append(number(path, row, phrase, value))
    if len(seen) != len(years):
        raise UserError(
            f"{path.name}: {len(seen)} of the {len(years)} years {years.first} to {years.last}; give its years with --years"
        )
    return {phrase: math.fsum(values) / len(years) for phrase, values in sums.items()}


def _refuse_doubles(path: Path, header: Iterable[str]) -> None:
    """Two columns of one phrase ("New Year's Day" and "New Year 's Day") would be added up."""
    seen: dict[str, str] = {}
    for column in header:
        other = seen.setdefault(key(_ALL.sub("", column)), column)
        if other != column:
            raise UserError(
                f"{path.name}: row 1: the columns {other!r} and {column!r} are one phrase; remove one"
            )


def _long(path: Path, years: Years) -> dict[str, float]:
    values: dict[str, dict[int, float]] = {}
    for row, cells in read_rows(path, ("year", "ngram", "frequency")):
        year = _year(path, row, cells["year"])
        if year in years:
            series = values.setdefault(key(_ALL.sub("", cells["ngram"])), {})
            if year in series:
                raise UserError(
                    f"{path.name}: row {row}: {cells['ngram']!r} has the year {year} twice"
                )
            series[year] = number(path, row, "frequency", cells["frequency"])
    for phrase, series in values.items():
        if len(series) != len(years):
            raise UserError(
                f"{path.name}: {phrase!r} has {len(series)} of {len(years)} years ({years.first}-{years.last}); see --years"
            )
    return {phrase: math.fsum(series.values()) / len(years) for phrase, series in values.items()}


def _totals(path: Path) -> dict[int, int]:
    """Year -> words printed, from ``year,match_count,page_count,volume_count`` entries between tabs (or one a line)."""
    found: dict[int, int] = {}
    for entry in re.split(r"[\t\n]+", read_text(path).strip()):
        numbers = [plain_number(part) for part in entry.strip().split(",")]
        if len(numbers) != 4 or numbers[0] is None or not numbers[1] or None in numbers:
            raise UserError(
                f"{path.name}: {entry[:40]!r} is no entry of a totalcounts file (year,matches,pages,volumes)"
            )
        found[numbers[0]] = numbers[1]
    return found


def _raw(
    path: Path, years: Years, totals: Mapping[int, int], wanted: set[str] | None
) -> dict[str, float]:
    """Counts divided by the year's total; a year without an entry is 0. Lines of 2020 hold all years, older ones hold one."""
    sums: dict[str, list[float]] = {}
    for place, line in _lines(path):
        phrase, *rest = line.rstrip("\n").split("\t")
        name = key(phrase)
        if wanted is not None and name not in wanted:
            continue
        try:  # 2020: year,matches,volumes between tabs. 2012: year TAB matches TAB volumes. 2009: one column of pages more
            entries = [part.split(",")[:2] for part in rest] if "," in rest[0] else [rest[:2]]
            counts = [(_count(year), _count(matches)) for year, matches in entries]
        except (ValueError, IndexError):
            raise UserError(
                f"{path.name}: line {place} is no line of a raw ngram file: {line[:60].strip()!r}"
            ) from None
        shares = sums.setdefault(name, [])
        for year, matches in counts:
            if year in years:
                if year not in totals:
                    raise UserError(
                        f"{path.name}: line {place}: the totalcounts file has no year {year}; is it that of another corpus?"
                    )
                shares.append(matches / totals[year])
    return {name: math.fsum(shares) / len(years) for name, shares in sums.items()}


def _count(text: str) -> int:
    number = plain_number(text.strip())
    if number is None:
        raise ValueError(text)
    return number


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as handle:
            yield from enumerate(io.TextIOWrapper(handle, encoding="utf-8"), start=1)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; check the path") from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path.name}: cannot be read as a raw ngram file ({type(error).__name__}); download it again"
        ) from None


def _year(path: Path, row: int, value: str) -> int:
    year = plain_number(value)
    if year is None:
        raise UserError(f"{path.name}: row {row}: {value[:20]!r} is no year")
    return year
