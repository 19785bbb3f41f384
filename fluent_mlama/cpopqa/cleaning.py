"""From calendar entries to holidays: what is no holiday, what is part of one, and which names are the same one.

The rules are ours. Every entry that they drop is kept with the reason and listed beside the benchmark (``dropped.tsv``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fluent_mlama.cpopqa.tables_in import read_rows

ALIASES_FILE = Path(__file__).with_name("aliases.csv")

_STATE = re.compile(
    r"\s*\((?:estimated|observed|substituted[^)]*|additional holiday|in lieu)\)\s*$", re.IGNORECASE
)
_PLACE = re.compile(r"\s*\((?:in honor of [^)]*|Guam|Terai|Vaishnava)\)\s*$")
_SLASH = re.compile(r"\s*/\s*")

_REASONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "day off, no holiday",
        re.compile(
            r"day off|non-working|^bridge\b|additional (?:public )?holiday|^(?:special |temporary )?public holiday\b|replacement holiday"
            r"|^public health holiday|^extra public|decree|^may holidays$|^national holidays?$|^christmas holidays?$"
            r"|^festival (?:day|mon|tue|wed)",
            re.IGNORECASE,
        ),
    ),
    (
        "bank holiday",
        re.compile(
            r"bank holiday|^(?:august|emancipation) (?:monday|tuesday|wednesday|thursday)$|^first weekday after",
            re.IGNORECASE,
        ),
    ),
    (
        "election or census",
        re.compile(
            r"election|polling|referendum|census|popular consultation|change of federal government",
            re.IGNORECASE,
        ),
    ),
    (
        "one-off event",
        re.compile(
            r"funeral|burial|mourning (?:for|the)|day of (?:national )?mourning|memorial service|jubilee|\b20\d\d\b"
            r"|\b\d+th anniversary|charles iii"
            r"|\bvisit\b|canonization|world cup|- 100th",
            re.IGNORECASE,
        ),
    ),
    (
        "part of another holiday",
        re.compile(
            r"^(?:the )?(?:(?:second|third|fourth|seventh) )?day (?:after|following|before|preceding)\b"
            r"|^the (?:second|third|fourth) day (?:of|following)"
            r"|^(?:second|third|fourth) day of lunar|\((?:second|third) day\)|(?<!christmas) second day$|extended holiday"
            r"|\bpartial day|^seventh day of"
            r"|- last lap$|^day following",
            re.IGNORECASE,
        ),
    ),
)
_HOLIDAY = re.compile(r"\s+holidays?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a calendar entry stands for: the holiday's name and its other names, or the reason why it is none."""

    name: str
    aliases: tuple[str, ...] = ()
    dropped: str = ""


@cache
def alias_table() -> Mapping[tuple[str, str], str]:
    """(name, country or "") -> the name that stands for it."""
    return {
        (row["alias"], row["country"]): row["holiday"]
        for _, row in read_rows(ALIASES_FILE, ("alias", "holiday", "country"))
    }


def clean(entry: str, country: str) -> Cleaned:
    """One calendar entry (already split at "; ") of a country."""
    name = " ".join(entry.replace("’", "'").split())
    if "(substituted" in name:
        return Cleaned(name, dropped="day off, no holiday")
    while _STATE.search(name):
        name = _STATE.sub("", name)
    for reason, pattern in _REASONS:
        if pattern.search(name):
            return Cleaned(name, dropped=reason)
    seen = [name]
    for _ in range(
        4
    ):  # an alias of an alias, or a name inside a suffix; four steps are more than any takes
        better = _step(seen[-1], country)
        if better == seen[-1]:
            break
        seen.append(better)
    return Cleaned(seen[-1], tuple(dict.fromkeys(_readable(seen[:-1]))))


def _step(name: str, country: str) -> str:
    table = alias_table()
    found = table.get((name, country)) or table.get((name, ""))
    if found:
        return found
    if _PLACE.search(name):
        return _PLACE.sub("", name)
    if _HOLIDAY.search(name):
        return _HOLIDAY.sub("", name)
    if "(" in name:
        return re.sub(r"\s*\([^)]*\)\s*", " ", name).strip()
    return _SLASH.split(name)[0] if _SLASH.search(name) else name


def _readable(names: list[str]) -> list[str]:
    """Other names as people write them: a parenthesis or a slash holds a second name."""
    found: list[str] = []
    for name in names:
        if _PLACE.search(name):
            continue
        inside = re.fullmatch(r"(.+?)\s*\(([^)]+)\)", name)
        if inside:
            found += [inside.group(1), inside.group(2)]
        elif _SLASH.search(name):
            found += _SLASH.split(name)[1:]
        elif not _HOLIDAY.search(name):
            found.append(name)
    return found
