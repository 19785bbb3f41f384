"""How popular a concept is for a target: relative frequencies from a person's files, or the wordfreq proxy.

A value belongs to a name, or to a name in one group (country) where a file says so. The proxy's target is ``EN-proxy``:
it says nothing of the United States or the United Kingdom, nor of phrases, and is for demonstrations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from fluent_mlama.console import UserError, note
from fluent_mlama.cpopqa.countries import countries
from fluent_mlama.cpopqa.ngrams import PAPER_YEARS, Years, key, read_ngrams
from fluent_mlama.cpopqa.tables_in import number, read_rows

PROXY = "EN-proxy"
TARGETS = {"US": "the United States", "UK": "the United Kingdom", PROXY: "English texts"}


@dataclass
class Popularity:
    """The values of one target. values: (name, group or "" for any group) -> frequency."""

    target: str
    source: str
    values: dict[tuple[str, str], float] = field(default_factory=dict)

    def of(self, name: str, group: str) -> float | None:
        """The value of a name in a group, None where there is none."""
        return self.values.get((name, group), self.values.get((name, "")))


def from_ngrams(
    target: str,
    path: Path,
    names: Mapping[str, Sequence[str]],
    years: Years = PAPER_YEARS,
    totals: Path | None = None,
) -> Popularity:
    """Google Books values; names: name -> its aliases, whose frequencies are added to its own (section 3.2)."""
    wanted = [phrase for name, aliases in names.items() for phrase in (name, *aliases)]
    table = read_ngrams(path, years, totals, wanted)
    found = Popularity(target, f"Google Books {years.first}-{years.last}, {path.name}")
    for name, aliases in names.items():
        keys = dict.fromkeys(key(phrase) for phrase in (name, *aliases))
        parts = [table[one] for one in keys if one in table]
        if parts:
            found.values[name, ""] = sum(parts)
    strange = sorted(set(table) - {key(phrase) for phrase in wanted})
    refuse_or_count(path, len(table), strange, bool(found.values))
    return found


def refuse_or_count(path: Path, values: int, strange: Sequence[str], matched: bool) -> None:
    """Say how many of a file's values are for no name of the benchmark; a file that gives no name a value is a UserError."""
    example = f", e.g. {strange[0]!r}" if strange else ""
    if not matched:
        raise UserError(
            f"{path.name}: none of its {values} names is one of the benchmark{example}; build --proxy lists those in concepts.tsv"
        )
    if strange:
        note(f"{path.name}: {len(strange)} of {values} names are none of the benchmark{example}")


def read_native(path: Path, names: Collection[str]) -> dict[str, Popularity]:
    """The project's own format: ``holiday,target,frequency`` and, where known, ``country`` and ``source``; by target.

    names: those of the benchmark; how many of the file's are others is told.
    """
    found: dict[str, Popularity] = {}
    for row, cells in read_rows(path, ("holiday", "target", "frequency")):
        target = cells["target"]
        if not target or not cells["holiday"]:
            raise UserError(f"{path.name}: row {row}: holiday and target must not be empty")
        if target == PROXY:
            raise UserError(
                f"{path.name}: row {row}: the target {PROXY} is kept for the word frequencies of --proxy; give another name"
            )
        one = found.setdefault(target, Popularity(target, cells.get("source") or path.name))
        place = (cells["holiday"], cells.get("country", ""))
        if place[1] and place[1] not in countries():
            raise UserError(
                f"{path.name}: row {row}: unknown country {place[1]!r}; give an ISO code of two letters, or none for all"
            )
        if place in one.values:
            raise UserError(
                f"{path.name}: row {row}: {cells['holiday']!r} stands twice for {target}"
            )
        one.values[place] = number(path, row, "frequency", cells["frequency"])
    given = {name for one in found.values() for name, _ in one.values}
    if not given:
        raise UserError(f"{path.name}: a header and no rows; is the file cut off?")
    refuse_or_count(path, len(given), sorted(given - set(names)), bool(given & set(names)))
    return found


@cache
def proxy_frequency(name: str) -> float:
    """wordfreq's value of an English phrase: 1 / Σ 1/f over its words, so the rarest word decides; 0 with an unknown word."""
    import wordfreq

    return float(wordfreq.word_frequency(name, "en"))


def proxy(names: Iterable[str]) -> Popularity:
    """The wordfreq proxy of these names; aliases are not added, as they share their words."""
    from importlib.metadata import version

    return Popularity(
        PROXY,
        f"wordfreq {version('wordfreq')} (words, not phrases)",
        {(name, ""): proxy_frequency(name) for name in names},
    )


def join(tables: Iterable[Popularity]) -> dict[str, Popularity]:
    """Several files by target, in their order; a later file of a target adds to an earlier one."""
    joined: dict[str, Popularity] = {}
    for table in tables:
        old = joined.get(table.target)
        if old is None:
            joined[table.target] = Popularity(table.target, table.source, dict(table.values))
        else:
            old.values |= table.values
            old.source += f"; {table.source}"
    return joined


def unmatched(table: Popularity, concepts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The (name, group) pairs that have no value."""
    return [(name, group) for name, group in concepts if table.of(name, group) is None]
