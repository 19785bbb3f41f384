"""The countries: ``countries.csv`` (ours, facts only) and the paper's sample of them.

A row of the file: ISO 3166 code, English name, adjective for "the following … holidays" (empty: the name is used),
continent, rank by population among all 250 rows (United Nations' estimates for 2023; 1 = most people), UN membership.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fluent_mlama.cpopqa.tables_in import read_rows

FILE = Path(__file__).with_name("countries.csv")
CONTINENTS = ("Africa", "Asia", "Europe", "North America", "Oceania", "South America")
PER_END = 5
_WITH_ARTICLE = (
    "Republic",
    "Islands",
    "Territory",
    "Lands",
    "Kingdom",
    "Netherlands",
    "States",
    "Emirates",
    "Union",
)
_ALSO_WITH_ARTICLE = {
    "Bahamas",
    "Comoros",
    "Gambia",
    "Maldives",
    "Philippines",
    "Seychelles",
    "Isle of Man",
}


@dataclass(frozen=True, slots=True)
class Country:
    """One row of ``countries.csv``; ``population_rank`` 1 is the most populous."""

    iso2: str
    name: str
    demonym: str
    continent: str
    population_rank: int
    un_member: bool

    @property
    def name_in_text(self) -> str:
        """The name as it stands behind a preposition."""
        with_article = (
            self.name in _ALSO_WITH_ARTICLE
            or self.name.endswith(_WITH_ARTICLE)
            or "Republic of" in self.name
        )
        return f"the {self.name}" if with_article else self.name


@cache
def countries() -> Mapping[str, Country]:
    """All countries by code."""
    columns = ("iso2", "name", "demonym", "continent", "population_rank", "un_member")
    return {
        row["iso2"]: Country(
            row["iso2"],
            row["name"],
            row["demonym"],
            row["continent"],
            int(row["population_rank"]),
            row["un_member"] == "yes",
        )
        for _, row in read_rows(FILE, columns)
    }


@cache
def shared_demonyms() -> frozenset[str]:
    """Adjectives that belong to more than one country (Congolese, Dominican): a question that used them would be ambiguous."""
    counts = Counter(country.demonym for country in countries().values() if country.demonym)
    return frozenset(demonym for demonym, count in counts.items() if count > 1)


def paper_sample(usable: Collection[str], per_end: int = PER_END) -> dict[str, str]:
    """The most and the least populous UN members of each continent among the usable ones: code -> ``high`` or ``low``.

    Five and five a continent as in the paper (section 3.1); a continent with fewer than ten gives each country once.
    """
    chosen: dict[str, str] = {}
    for continent in CONTINENTS:
        ranked = sorted(
            (one for one in _members(usable) if one.continent == continent),
            key=lambda one: one.population_rank,
        )
        high = ranked[: min(per_end, (len(ranked) + 1) // 2)]
        low = ranked[len(high) :][-per_end:]
        chosen |= {one.iso2: "high" for one in high} | {one.iso2: "low" for one in low}
    return chosen


def all_members(usable: Collection[str]) -> dict[str, str]:
    """All usable UN members; ``high`` is the more populous half of a continent."""
    chosen: dict[str, str] = {}
    for continent in CONTINENTS:
        ranked = sorted(
            (one for one in _members(usable) if one.continent == continent),
            key=lambda one: one.population_rank,
        )
        chosen |= {
            one.iso2: "high" if place < len(ranked) / 2 else "low"
            for place, one in enumerate(ranked)
        }
    return chosen


def _members(usable: Collection[str]) -> list[Country]:
    return [
        country for country in countries().values() if country.un_member and country.iso2 in usable
    ]
