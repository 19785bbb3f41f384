"""``build``: concepts, their popularity and the questions, from calendars or from a person's CSV.

<out>/concepts.tsv  items.jsonl  settings.json  card.md     dropped.tsv  unmatched.tsv  human.tsv  figures/
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from cyclopts import Parameter

from fluent_mlama.console import UserError, note, plain_number, split_list
from fluent_mlama.cpopqa import calendars, countries
from fluent_mlama.cpopqa.card import data_card
from fluent_mlama.cpopqa.concepts import Concept, from_holidays, read_free, write_concepts
from fluent_mlama.cpopqa.items import (
    FILE,
    POOL_PER_SHOT,
    QUESTION,
    Item,
    Settings,
    check,
    draw_items,
    write_items,
)
from fluent_mlama.cpopqa.ngrams import FIRST_YEAR, LAST_YEAR, Years
from fluent_mlama.cpopqa.people import agreement, read_people
from fluent_mlama.cpopqa.popularity import (
    PROXY,
    TARGETS,
    Popularity,
    from_ngrams,
    join,
    proxy,
    read_native,
    unmatched,
)
from fluent_mlama.files import check_writable, format_table, write_text
from fluent_mlama.options import Count, File, Files, Seed, whole_number

FEWEST_HOLIDAYS = 5
Entries = Annotated[tuple[str, ...], Parameter(n_tokens=1)]
Shots = Annotated[
    int, Parameter(converter=whole_number(0, 10), n_tokens=1, help="worked examples in the prompt")
]


@Parameter(name="*", group="popularity (at least one, unless --concepts holds it)")
@dataclass(frozen=True, kw_only=True)
class PopularityOptions:
    """Where frequencies come from."""

    ngrams: Entries = ()
    """TARGET=FILE: Google Books export, e.g. US=us.json; may be repeated"""
    totals: Entries = ()
    """TARGET=FILE: totalcounts of raw ngram files"""
    years: str = f"{FIRST_YEAR}-{LAST_YEAR}"
    """years of the mean"""
    popularity: Files = ()
    """CSV: holiday,target,frequency[,country,source]; may be repeated"""
    proxy: Annotated[
        bool, Parameter(help=f"word frequencies as one target {PROXY}; for demonstrations")
    ] = False


@Parameter(name="*", group="concepts")
@dataclass(frozen=True, kw_only=True)
class ConceptOptions:
    """Which concepts are asked about."""

    countries: Literal["paper", "all"] = "paper"
    """5 most and 5 least populous per continent, or all"""
    categories: Literal["public", "all"] = "public"
    """days off, or observances too"""
    holidays: Files = ()
    """CSV of more holidays: holiday,country[,date,…]; may be repeated"""
    concepts: File | None = None
    """CSV of other concepts: item,group and a column of numbers for each target"""
    noun: str = ""
    """what the concepts are (default: holidays)"""
    target_text: Entries = ()
    """TARGET=WORDS: how questions call a target; may be repeated"""


@Parameter(name="*", group="questions")
@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """How questions are drawn."""

    n: str = "2,3,5"
    """concepts per question"""
    rounds: Count = 5
    questions: Count = 200
    """per round, target and n"""
    shots: Shots = 3
    seed: Seed = 0
    wording: str = QUESTION
    """the question, with {concepts}, {target} and {options}"""


def build(
    *,
    value: PopularityOptions = PopularityOptions(),
    what: ConceptOptions = ConceptOptions(),
    draw: QuestionOptions = QuestionOptions(),
    human: File | None = None,
    out: File,
) -> None:
    """Concepts, their popularity and the questions, from calendars or from a CSV.

        fluent-mlama cpopqa build --proxy --out popularity

    Args:
        human: CSV of people's rankings: rater,country,holiday,rank
        out: folder of the benchmark
    """
    check_writable(out, "--out")
    years = parse_years(value.years)
    sizes = parse_sizes(draw.n)
    names = pairs(what.target_text, "--target-text")
    dropped: list[calendars.Dropped] = []
    without: dict[str, list[tuple[str, str]]] = {}
    if what.concepts is None:
        found, dropped = calendars.collect(all_categories=what.categories == "all")
        found = calendars.merge(
            found, [one for path in what.holidays for one in calendars.read_extra(path)]
        )
        chosen = choose(found, what.countries)
        few = len(
            {one.iso2 for one in countries.countries().values() if one.un_member} - usable(found)
        )
        if few:
            note(f"{few} countries have fewer than {FEWEST_HOLIDAYS} holidays and are left out")
        tables = popularity(value, found, years)
        concepts = from_holidays(found, chosen, tables, what.noun or "holidays")
        targets, sources = list(tables), {target: table.source for target, table in tables.items()}
        without = {
            target: unmatched(table, [(one.name, one.group) for one in concepts])
            for target, table in tables.items()
        }
        sources["holidays"] = (
            f"holidays {version('holidays')}, {calendars.YEARS[0]}-{calendars.YEARS[-1]}, {what.categories}"
        )
    else:
        refuse_calendar_options(value, what)
        concepts, targets = read_free(what.concepts, what.noun or "items")
        sources = dict.fromkeys(targets, what.concepts.name)
        without = {
            target: [(one.name, one.group) for one in concepts if target not in one.popularity]
            for target in targets
        }
    settings = Settings(
        {target: names.get(target, TARGETS.get(target, target)) for target in targets}, sizes, draw.rounds, draw.questions,
        draw.shots, draw.seed, draw.wording,
    )  # fmt: skip
    check(settings)
    unknown = sorted(set(names) - set(targets))
    if unknown:
        raise UserError(f"--target-text names {unknown[0]}, the targets are {', '.join(targets)}")
    items = draw_items(concepts, settings)
    people = agreement(read_people(human), concepts, targets) if human else None
    write(out, concepts, items, settings, sources, dropped, without, people)
    for target, pairs_without in without.items():
        if pairs_without:
            note(
                f"{target}: {len(pairs_without)} of {len(concepts)} names have no frequency and are in no question; see unmatched.tsv"
            )
    groups = len({one.group for one in concepts})
    made = f"{len(items)} questions for {', '.join(targets)} from {len(concepts)} concepts in {groups} groups"
    print(f"{made}. card.md in {out} says more")


def choose(found: Sequence[calendars.Holiday], which: str) -> dict[str, str]:
    """The countries of the benchmark: code -> ``high`` or ``low``; UN members with at least five holidays."""
    return (
        countries.paper_sample(usable(found))
        if which == "paper"
        else countries.all_members(usable(found))
    )


def usable(found: Sequence[calendars.Holiday]) -> set[str]:
    """Countries with holidays enough for a question of five."""
    counts = Counter(one.country for one in found)
    return {code for code, count in counts.items() if count >= FEWEST_HOLIDAYS}


def popularity(
    value: PopularityOptions, found: Sequence[calendars.Holiday], years: Years
) -> dict[str, Popularity]:
    """All targets asked for. Aliases of a name are those of all countries, so that it has one frequency everywhere."""
    names: dict[str, dict[str, None]] = {}
    for one in found:
        names.setdefault(one.name, {}).update(dict.fromkeys(one.aliases))
    aliases = {name: list(others) for name, others in names.items()}
    totals = pairs(value.totals, "--totals")
    for target in totals:
        if not any(entry.partition("=")[0].strip() == target for entry in value.ngrams):
            raise UserError(
                f"--totals {target}: there is no --ngrams {target}=FILE that it belongs to"
            )
    tables = []
    for entry in value.ngrams:
        ((target, file),) = pairs([entry], "--ngrams").items()
        if target == PROXY:
            raise UserError(f"--ngrams: the target {PROXY} is kept for --proxy; give another name")
        tables.append(
            from_ngrams(
                target,
                Path(file),
                aliases,
                years,
                Path(totals[target]) if target in totals else None,
            )
        )
    for path in value.popularity:
        tables += read_native(path, aliases).values()
    if value.proxy:
        tables.append(proxy(aliases))
    return join(tables)


def refuse_calendar_options(value: PopularityOptions, what: ConceptOptions) -> None:
    """Options that would be silently without effect beside --concepts."""
    names = ("ngrams", "totals", "popularity", "proxy")
    given = [name for name in names if getattr(value, name)]
    usual = ConceptOptions()
    for name in ("holidays", "countries", "categories"):
        if getattr(what, name) != getattr(usual, name):
            given.append(name)
    if given:
        raise UserError(
            f"--{given[0]} has no effect beside --concepts, whose file holds the popularity; leave one out"
        )


def write(
    out: Path,
    concepts: Sequence[Concept],
    items: Sequence[Item],
    settings: Settings,
    sources: Mapping[str, str],
    dropped: Sequence[calendars.Dropped],
    without: Mapping[str, Sequence[tuple[str, str]]],
    human: pd.DataFrame | None,
) -> None:
    """All files of a benchmark; the questions come last, and older ones go first, so a folder that has them is whole."""
    from fluent_mlama.cpopqa.data_figures import write_data_figures
    from fluent_mlama.reporting.table_io import write_tables

    if out.is_dir():
        (out / FILE).unlink(missing_ok=True)
    write_concepts(out / "concepts.tsv", concepts, list(settings.targets))
    rows = [(one.country, one.entry, one.reason) for one in dropped]
    write_text(
        out / "dropped.tsv",
        format_table(pd.DataFrame(rows, columns=["country", "entry", "reason"], dtype="str")),
    )
    missing = [(target, group, name) for target, names in without.items() for name, group in names]
    write_text(
        out / "unmatched.tsv",
        format_table(pd.DataFrame(missing, columns=["target", "country", "holiday"], dtype="str")),
    )
    if human is not None:
        write_tables(out, {"human": human})
    record = {
        "targets": dict(settings.targets), "n": list(settings.sizes), "rounds": settings.rounds, "questions": settings.questions,
        "shots": settings.shots, "pool": POOL_PER_SHOT * settings.shots, "seed": settings.seed, "wording": settings.wording,
        "sources": dict(sources),
    }  # fmt: skip
    write_text(out / "settings.json", json.dumps(record, ensure_ascii=False, indent=2) + "\n")
    write_text(
        out / "card.md", data_card(concepts, items, settings, sources, dropped, without, human)
    )
    write_data_figures(out / "figures", concepts)
    write_items(out / FILE, items)


def pairs(entries: Sequence[str], option: str) -> dict[str, str]:
    """``TARGET=VALUE`` entries as a dictionary."""
    found: dict[str, str] = {}
    for entry in entries:
        target, sign, value = entry.partition("=")
        if not (target.strip() and sign and value.strip()):
            raise UserError(f"{option} {entry}: write it as TARGET=VALUE, for example US=us.json")
        if target.strip() in found:
            raise UserError(f"{option}: {target.strip()} stands twice")
        found[target.strip()] = value.strip()
    return found


def parse_years(text: str) -> Years:
    """``1800-2019`` as a range."""
    match = re.fullmatch(r"(\d{3,4})-(\d{3,4})", text.strip())
    if not match or int(match[1]) > int(match[2]):
        raise UserError(f"--years {text}: write the first and the last year, for example 1800-2019")
    return Years(int(match[1]), int(match[2]))


def parse_sizes(text: str) -> tuple[int, ...]:
    """``2,3,5`` as numbers."""
    parts = split_list(text)
    sizes = tuple(size for size in map(plain_number, parts) if size is not None)
    if not parts or len(sizes) < len(parts):
        raise UserError(f"--n {text}: write whole numbers, for example 2,3,5")
    return sizes
