"""A concept (a holiday, an instrument, …) in its group, with its popularity per target: what questions are made of.

Holidays and a person's CSV end in the same table, ``concepts.tsv``; everything behind it knows of no holidays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.cpopqa.calendars import ALIAS_SEPARATOR, Holiday
from fluent_mlama.cpopqa.countries import countries, shared_demonyms
from fluent_mlama.cpopqa.popularity import Popularity
from fluent_mlama.cpopqa.tables_in import number, read_rows
from fluent_mlama.files import format_table, read_table, write_text

POPULARITY = "popularity "
COLUMNS = ("name", "group", "phrase", "region", "level", "date", "aliases", "description", "groups")
FREE_COLUMNS = ("item", "group", "adjective", "region", "level", "date", "aliases", "description")


@dataclass(frozen=True, slots=True)
class Concept:
    """phrase: "Chinese holidays", as questions say it. region: the continent. level: ``high`` or ``low`` (population) or "".

    groups: in how many groups of the whole table the name stands (the ``shared`` baseline). popularity: by target; a
    target without a value for it is missing.
    """

    name: str
    group: str
    phrase: str
    region: str = ""
    level: str = ""
    date: str = ""
    aliases: tuple[str, ...] = ()
    description: str = ""
    groups: int = 1
    popularity: Mapping[str, float] = field(default_factory=dict)


def from_holidays(
    holidays: Sequence[Holiday],
    chosen: Mapping[str, str],
    tables: Mapping[str, Popularity],
    noun: str = "holidays",
) -> list[Concept]:
    """The holidays of the chosen countries (code -> ``high`` or ``low``); ``groups`` counts all countries given."""
    spread = Counter(one.name for one in holidays)
    found = []
    for one in holidays:
        if one.country in chosen:
            place = (
                one.country,
                _phrase(one.country, noun),
                countries()[one.country].continent,
                chosen[one.country],
            )
            values = _values(one.name, one.country, tables)
            found.append(
                Concept(
                    one.name,
                    *place,
                    one.date,
                    one.aliases,
                    one.description,
                    spread[one.name],
                    values,
                )
            )
    return found


def _phrase(code: str, noun: str) -> str:
    country = countries()[code]
    if not country.demonym or country.demonym in shared_demonyms():
        return f"{noun} in {country.name_in_text}"
    return f"{country.demonym} {noun}"


def _values(name: str, group: str, tables: Mapping[str, Popularity]) -> dict[str, float]:
    found = {target: table.of(name, group) for target, table in tables.items()}
    return {target: value for target, value in found.items() if value is not None}


def read_free(path: Path, noun: str) -> tuple[list[Concept], list[str]]:
    """A person's concepts and their targets: ``item,group`` and a column of numbers for each target (empty: no value).

    adjective: what stands before the noun in questions ("European"); without it the group follows ("languages in Europe").
    Other known columns: region, level, date, aliases, description.
    """
    rows = list(read_rows(path, ("item", "group")))
    targets = [name for name in (rows[0][1] if rows else {}) if name not in FREE_COLUMNS]
    if not targets:
        raise UserError(
            f"{path.name}: no popularity: beside item and group it needs a column of numbers for each target"
        )
    spread = Counter(cells["item"] for _, cells in rows)
    seen: set[tuple[str, str]] = set()
    found = []
    for row, cells in rows:
        place = (cells["item"], cells["group"])
        if not cells["item"] or place in seen:
            raise UserError(
                f"{path.name}: row {row}: item {cells['item']!r} is empty or stands twice in its group"
            )
        seen.add(place)
        adjective, group = cells.get("adjective", ""), cells["group"]
        phrase = f"{adjective} {noun}" if adjective else f"{noun} in {group}" if group else noun
        values = {
            target: number(path, row, target, cells[target]) for target in targets if cells[target]
        }
        aliases = tuple(
            part.strip() for part in cells.get("aliases", "").split(ALIAS_SEPARATOR) if part.strip()
        )
        more = (
            cells.get("region", ""),
            cells.get("level", ""),
            cells.get("date", ""),
            aliases,
            cells.get("description", ""),
        )
        found.append(Concept(cells["item"], group, phrase, *more, spread[cells["item"]], values))
    return found, targets


def write_concepts(path: Path, concepts: Sequence[Concept], targets: Sequence[str]) -> None:
    """The table as TSV; a missing value is an empty cell."""
    rows = []
    for one in concepts:
        fixed = (
            one.name,
            one.group,
            one.phrase,
            one.region,
            one.level,
            one.date,
            ALIAS_SEPARATOR.join(one.aliases),
            one.description,
        )
        rows.append(
            [
                *fixed,
                str(one.groups),
                *(
                    repr(one.popularity[target]) if target in one.popularity else ""
                    for target in targets
                ),
            ]
        )
    columns = [*COLUMNS, *(POPULARITY + target for target in targets)]
    write_text(path, format_table(pd.DataFrame(rows, columns=columns, dtype="str")))


def read_concepts(path: Path) -> list[Concept]:
    """What ``write_concepts`` wrote."""
    try:
        table = read_table(path.read_bytes(), path.name)
    except FileNotFoundError:
        raise UserError(
            f"{path.parent} holds no questions ({path.name} is missing): run build first, or check --data"
        ) from None
    if not {*COLUMNS} <= {*table.columns} or not table["groups"].str.fullmatch("[0-9]{1,9}").all():
        raise UserError(
            f"{path.name}: a column or a number is missing; the file was edited or is another one: run build again"
        )
    targets = [
        name.removeprefix(POPULARITY) for name in table.columns if name.startswith(POPULARITY)
    ]
    found = []
    for row, cells in enumerate(table.to_dict("records"), start=2):
        values = {
            one: number(path, row, one, cells[POPULARITY + one])
            for one in targets
            if cells[POPULARITY + one]
        }
        aliases = tuple(part for part in cells["aliases"].split(ALIAS_SEPARATOR) if part)
        name, group, phrase, region, level, date = (str(cells[column]) for column in COLUMNS[:6])
        found.append(
            Concept(
                name,
                group,
                phrase,
                region,
                level,
                date,
                aliases,
                cells["description"],
                int(cells["groups"]),
                values,
            )
        )
    return found
