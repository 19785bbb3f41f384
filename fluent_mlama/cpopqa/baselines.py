"""Orders that need no model: random, shared, question order, name length, wiki length and search volume.

A baseline is a value for each name, the larger the more popular; equal values are put in a seeded random order.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fluent_mlama.console import UserError, note
from fluent_mlama.cpopqa.concepts import Concept
from fluent_mlama.cpopqa.items import Item
from fluent_mlama.cpopqa.parsing import Answer
from fluent_mlama.cpopqa.tables_in import number, read_rows, read_text, records

NAMES = ("random", "shared", "question order", "name length", "wiki length", "trends")

_TERM = re.compile(r":\s*\([^)]*\)\s*$")


def baselines(
    items: Sequence[Item],
    concepts: Sequence[Concept],
    wiki: Path | None,
    trends: Path | None,
    seed: int = 0,
) -> dict[str, dict[str, Answer]]:
    """baseline -> item id -> order. wiki length comes from its file, else from the descriptions, if there are any."""
    groups = {(one.group, one.name): float(one.groups) for one in concepts}
    values: dict[str, Callable[[Item, str], float]] = {
        "random": lambda item, name: 0.0,
        "shared": lambda item, name: groups.get((item.group, name), 0.0),
        "question order": lambda item, name: -float(item.options.index(name)),
        "name length": lambda item, name: -float(len(name)),
    }
    described = {
        one.name: float(len(one.description.split())) for one in concepts if one.description
    }
    for label, table in (
        ("wiki length", read_wiki(wiki) if wiki else described),
        ("trends", read_trends(trends) if trends else {}),
    ):
        if table:
            known = {one.name for one in concepts} & set(table)
            note(
                f"{label}: values for {len(known)} of {len({one.name for one in concepts})} names; the others count as 0"
            )
            values[label] = _lookup(table)
    return {
        label: {item.id: _order(item, value, f"{seed}/{label}") for item in items}
        for label, value in values.items()
    }


def _lookup(table: Mapping[str, float]) -> Callable[[Item, str], float]:
    return lambda item, name: table.get(name, 0.0)


def _order(item: Item, value: Callable[[Item, str], float], seed: str) -> Answer:
    names = list(item.options)
    random.Random(f"{seed}/{item.id}").shuffle(names)
    return Answer(tuple(sorted(names, key=lambda name: -value(item, name))), "full")


def read_wiki(path: Path) -> dict[str, float]:
    """``holiday,words``: the length of each description."""
    return {
        cells["holiday"]: number(path, row, "words", cells["words"])
        for row, cells in read_rows(path, ("holiday", "words"))
    }


def read_trends(path: Path) -> dict[str, float]:
    """``holiday,volume``, or the page's own multiTimeline export, whose months are added up ("<1" is 0)."""
    lines = read_text(path).splitlines()
    if lines and {"holiday", "volume"} <= {cell.strip() for cell in lines[0].split(",")}:
        return {
            cells["holiday"]: number(path, row, "volume", cells["volume"])
            for row, cells in read_rows(path, ("holiday", "volume"))
        }
    rows = list(records(path, lines))
    start = next(
        (
            place
            for place, (_, row) in enumerate(rows)
            if row and row[0] in {"Month", "Week", "Day", "Time"}
        ),
        None,
    )
    if start is None:
        raise UserError(
            f"{path.name}: neither holiday,volume nor a Trends export (a line that begins with Month, Week or Day)"
        )
    terms = [_TERM.sub("", cell).strip() for cell in rows[start][1][1:]]
    volumes = dict.fromkeys(terms, 0.0)
    for line, row in rows[start + 1 :]:
        if not row:
            continue
        if len(row) != len(terms) + 1:
            raise UserError(
                f"{path.name}: line {line} has {len(row)} fields, the header {len(terms) + 1}"
            )
        for term, cell in zip(terms, row[1:], strict=True):
            volumes[term] += (
                0.0 if cell.strip().startswith("<") else number(path, line, term, cell.strip())
            )
    return volumes
