"""``build``: concepts, their popularity and the questions, from calendars or from a person's CSV.

<out>/concepts.tsv  items.jsonl  settings.json  card.md     dropped.tsv  unmatched.tsv  human.tsv  figures/
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from fluent_mlama.console import (
    UserError,
    note,
    plain_number,
    seed_number,
    split_list,
    whole_number,
)
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
from fluent_mlama.records.atomic import check_writable, write_text
from fluent_mlama.records.table import format_table

FEWEST_HOLIDAYS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``build``."""
    value = parser.add_argument_group("popularity (at least one, unless --concepts holds it)")
    value.add_argument(
        "--ngrams",
        action="append",
        default=[],
        metavar="TARGET=FILE",
        help="Google Books export, e.g. US=us.json; may be repeated",
    )
    value.add_argument(
        "--totals",
        action="append",
        default=[],
        metavar="TARGET=FILE",
        help="totalcounts of raw ngram files",
    )
    value.add_argument(
        "--years",
        default=f"{FIRST_YEAR}-{LAST_YEAR}",
        help=f"years of the mean (default {FIRST_YEAR}-{LAST_YEAR})",
    )
    value.add_argument(
        "--popularity",
        type=Path,
        action="append",
        default=[],
        help="CSV: holiday,target,frequency[,country,source]",
    )
    value.add_argument(
        "--proxy",
        action="store_true",
        help=f"word frequencies as one target {PROXY}; for demonstrations",
    )
    what = parser.add_argument_group("concepts")
    what.add_argument(
        "--countries",
        choices=("paper", "all"),
        default="paper",
        help="5 most and 5 least populous a continent, or all",
    )
    what.add_argument(
        "--categories",
        choices=("public", "all"),
        default="public",
        help="days off, or observances too",
    )
    what.add_argument(
        "--holidays",
        type=Path,
        action="append",
        default=[],
        help="CSV of more holidays: holiday,country[,date,…]",
    )
    what.add_argument(
        "--concepts",
        type=Path,
        help="CSV of other concepts: item,group and a column of numbers for each target",
    )
    what.add_argument("--noun", default="", help="what the concepts are (default: holidays)")
    what.add_argument(
        "--target-text",
        action="append",
        default=[],
        metavar="TARGET=WORDS",
        help="how questions call a target",
    )
    draw = parser.add_argument_group("questions")
    draw.add_argument("--n", default="2,3,5", help="concepts a question (default 2,3,5)")
    draw.add_argument("--rounds", type=whole_number(1), default=5)
    draw.add_argument(
        "--questions", type=whole_number(1), default=200, help="a round, target and n (default 200)"
    )
    draw.add_argument(
        "--shots",
        type=whole_number(0, 10),
        default=3,
        help="worked examples in the prompt (default 3)",
    )
    draw.add_argument("--seed", type=seed_number, default=0)
    draw.add_argument(
        "--wording", default=QUESTION, help="the question, with {concepts}, {target} and {options}"
    )
    parser.add_argument(
        "--human", type=Path, help="CSV of people's rankings: rater,country,holiday,rank"
    )
    parser.add_argument("--out", type=Path, required=True)


def run(arguments: argparse.Namespace) -> int:
    """Build and write everything, then say in a few lines what there is."""
    check_writable(arguments.out, "--out")
    years = parse_years(arguments.years)
    sizes = parse_sizes(arguments.n)
    names = pairs(arguments.target_text, "--target-text")
    dropped: list[calendars.Dropped] = []
    without: dict[str, list[tuple[str, str]]] = {}
    if arguments.concepts is None:
        found, dropped = calendars.collect(all_categories=arguments.categories == "all")
        found = calendars.merge(
            found, [one for path in arguments.holidays for one in calendars.read_extra(path)]
        )
        chosen = choose(found, arguments.countries)
        few = len(
            {one.iso2 for one in countries.countries().values() if one.un_member} - usable(found)
        )
        if few:
            note(f"{few} countries have fewer than {FEWEST_HOLIDAYS} holidays and are left out")
        tables = popularity(arguments, found, years)
        concepts = from_holidays(found, chosen, tables, arguments.noun or "holidays")
        targets, sources = list(tables), {target: table.source for target, table in tables.items()}
        without = {
            target: unmatched(table, [(one.name, one.group) for one in concepts])
            for target, table in tables.items()
        }
        sources["holidays"] = (
            f"holidays {version('holidays')}, {calendars.YEARS[0]}-{calendars.YEARS[-1]}, {arguments.categories}"
        )
    else:
        refuse_calendar_options(arguments)
        concepts, targets = read_free(arguments.concepts, arguments.noun or "items")
        sources = dict.fromkeys(targets, arguments.concepts.name)
        without = {
            target: [(one.name, one.group) for one in concepts if target not in one.popularity]
            for target in targets
        }
    settings = Settings(
        {target: names.get(target, TARGETS.get(target, target)) for target in targets}, sizes, arguments.rounds, arguments.questions,
        arguments.shots, arguments.seed, arguments.wording,
    )  # fmt: skip
    check(settings)
    unknown = sorted(set(names) - set(targets))
    if unknown:
        raise UserError(f"--target-text names {unknown[0]}, the targets are {', '.join(targets)}")
    items = draw_items(concepts, settings)
    human = agreement(read_people(arguments.human), concepts, targets) if arguments.human else None
    write(arguments.out, concepts, items, settings, sources, dropped, without, human)
    for target, pairs_without in without.items():
        if pairs_without:
            note(
                f"{target}: {len(pairs_without)} of {len(concepts)} names have no frequency and are in no question; see unmatched.tsv"
            )
    groups = len({one.group for one in concepts})
    made = f"{len(items)} questions for {', '.join(targets)} from {len(concepts)} concepts in {groups} groups"
    print(f"{made}. card.md in {arguments.out} says more")
    return 0


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
    arguments: argparse.Namespace, found: Sequence[calendars.Holiday], years: Years
) -> dict[str, Popularity]:
    """All targets asked for. Aliases of a name are those of all countries, so that it has one frequency everywhere."""
    names: dict[str, dict[str, None]] = {}
    for one in found:
        names.setdefault(one.name, {}).update(dict.fromkeys(one.aliases))
    aliases = {name: list(others) for name, others in names.items()}
    totals = pairs(arguments.totals, "--totals")
    for target in totals:
        if not any(entry.partition("=")[0].strip() == target for entry in arguments.ngrams):
            raise UserError(
                f"--totals {target}: there is no --ngrams {target}=FILE that it belongs to"
            )
    tables = []
    for entry in arguments.ngrams:
        ((target, path),) = pairs([entry], "--ngrams").items()
        if target == PROXY:
            raise UserError(f"--ngrams: the target {PROXY} is kept for --proxy; give another name")
        tables.append(
            from_ngrams(
                target,
                Path(path),
                aliases,
                years,
                Path(totals[target]) if target in totals else None,
            )
        )
    for path in arguments.popularity:
        tables += read_native(path, aliases).values()
    if arguments.proxy:
        tables.append(proxy(aliases))
    return join(tables)


def refuse_calendar_options(arguments: argparse.Namespace) -> None:
    """Options that would be silently without effect beside --concepts."""
    given = [
        name for name in ("ngrams", "totals", "popularity", "proxy", "holidays") if getattr(arguments, name)
    ] + [name for name, usual in (("countries", "paper"), ("categories", "public")) if getattr(arguments, name) != usual]  # fmt: skip
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
    from fluent_mlama.reporting.three_formats import write_tables

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
