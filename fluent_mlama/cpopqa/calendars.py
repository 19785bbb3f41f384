"""Holidays of all countries from the ``holidays`` package, cleaned, with the dates they fall on, and a person's own ones.

Ten years are read. A name that stands in the calendar of one of them only is an event, not a holiday.
"""

from __future__ import annotations

import calendar
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import holidays
from holidays.utils import list_localized_countries, list_supported_countries

from fluent_mlama.console import UserError
from fluent_mlama.cpopqa.cleaning import clean
from fluent_mlama.cpopqa.countries import countries
from fluent_mlama.cpopqa.tables_in import read_rows

YEARS = range(2018, 2028)
MOVABLE = "movable"
LEFT_OUT_CATEGORIES = frozenset({"workday", "half_day"})
ALIAS_SEPARATOR = "|||"


@dataclass(frozen=True, slots=True)
class Holiday:
    """A holiday of a country. date: "January 1", or ``movable``, or "" where a person's file gives none."""

    name: str
    country: str
    date: str
    aliases: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A calendar entry that became no holiday, and why."""

    country: str
    entry: str
    reason: str


@dataclass
class _Found:
    aliases: dict[str, None] = field(default_factory=dict)
    days: set[date] = field(default_factory=set)


def collect(
    codes: Iterable[str] | None = None, *, all_categories: bool = False
) -> tuple[list[Holiday], list[Dropped]]:
    """The holidays of these countries (default: all that the package and ``countries.csv`` know), and what was dropped."""
    localised = list_localized_countries()
    kept: list[Holiday] = []
    dropped: list[Dropped] = []
    for code in sorted(
        set(codes or list_supported_countries(include_aliases=False)) & set(countries())
    ):
        found: dict[str, _Found] = defaultdict(_Found)
        for entry, days in entries(
            code, "en_US" if "en_US" in localised.get(code, ()) else None, all_categories
        ).items():
            cleaned = clean(entry, code)
            if cleaned.dropped:
                dropped.append(Dropped(code, entry, cleaned.dropped))
                continue
            found[cleaned.name].aliases |= dict.fromkeys(cleaned.aliases)
            found[cleaned.name].days |= days
        for name, one in sorted(found.items()):
            if len({day.year for day in one.days}) == 1:
                dropped.append(Dropped(code, name, "in the calendar of one year only"))
            else:
                kept.append(
                    Holiday(
                        name,
                        code,
                        date_of(one.days),
                        tuple(alias for alias in one.aliases if alias != name),
                    )
                )
    return kept, dropped


def entries(code: str, language: str | None, all_categories: bool) -> Mapping[str, set[date]]:
    """Entry -> days in ``YEARS``, as the package names them."""
    options: dict[str, object] = {"years": YEARS, "observed": False}
    if language:
        options["language"] = language
    if all_categories:
        known = holidays.country_holidays(code).supported_categories
        options["categories"] = tuple(one for one in known if one not in LEFT_OUT_CATEGORIES)
    found: dict[str, set[date]] = defaultdict(set)
    dates = holidays.country_holidays(code, **options)
    for day in dates:
        for entry in dates.get_list(day):
            if day.year in YEARS:
                found[entry].add(day)
    return found


def date_of(days: Iterable[date]) -> str:
    """The day on which a holiday begins in most of its years, as "January 1"; ``movable`` where there is no such day."""
    first: dict[int, date] = {}
    for day in sorted(days):
        first.setdefault(day.year, day)
    (month, number), times = Counter((day.month, day.day) for day in first.values()).most_common(1)[
        0
    ]
    return f"{calendar.month_name[month]} {number}" if 2 * times > len(first) else MOVABLE


def read_extra(path: Path) -> list[Holiday]:
    """A person's own holidays: ``holiday,country`` and, where known, ``date,movable,description,aliases`` ("|||" between aliases)."""
    found = []
    for row, cells in read_rows(path, ("holiday", "country")):
        if cells["country"] not in countries():
            raise UserError(
                f"{path.name}: row {row}: unknown country {cells['country']!r}; give an ISO code of two letters, such as IN"
            )
        if not cells["holiday"]:
            raise UserError(f"{path.name}: row {row}: the holiday has no name")
        movable = cells.get("movable", "").casefold() in {"yes", "true", "1", MOVABLE}
        aliases = tuple(
            part.strip() for part in cells.get("aliases", "").split(ALIAS_SEPARATOR) if part.strip()
        )
        found.append(
            Holiday(
                cells["holiday"],
                cells["country"],
                MOVABLE if movable else cells.get("date", ""),
                aliases,
                cells.get("description", ""),
            )
        )
    return found


def merge(kept: Iterable[Holiday], extra: Iterable[Holiday]) -> list[Holiday]:
    """Both lists; where a person's file names a holiday of the calendar again, its cells win and the aliases are joined."""
    merged = {(one.country, one.name): one for one in kept}
    for one in extra:
        old = merged.get((one.country, one.name))
        aliases = tuple(dict.fromkeys((*(old.aliases if old else ()), *one.aliases)))
        merged[one.country, one.name] = Holiday(
            one.name,
            one.country,
            one.date or (old.date if old else ""),
            aliases,
            one.description or (old.description if old else ""),
        )
    return [merged[key] for key in sorted(merged)]
