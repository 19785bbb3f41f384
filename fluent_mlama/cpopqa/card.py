"""The data card: what a benchmark holds, where it is from, what was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd
from tabulate import tabulate

from fluent_mlama.cpopqa.calendars import MOVABLE, Dropped
from fluent_mlama.cpopqa.concepts import Concept
from fluent_mlama.cpopqa.items import POOL_PER_SHOT, Item, Settings, usable_groups
from fluent_mlama.cpopqa.popularity import PROXY

PROXY_WARNING = (
    f"{PROXY} is no popularity in any country: it combines the frequencies of a name's words in English texts, the rarest word "
    "deciding. It is for demonstrations and tests, never a replication of the paper's figures."
)


def diversity(items: Sequence[Item]) -> pd.DataFrame:
    """The paper's Table 1: groups and distinct concepts in the questions, by target and n."""
    rows = []
    for target, n in dict.fromkeys((item.target, item.n) for item in items):
        chosen = [item for item in items if (item.target, item.n) == (target, n)]
        concepts = {name for item in chosen for name in item.options}
        rows.append((target, n, len(chosen), len({item.group for item in chosen}), len(concepts)))
    return pd.DataFrame(rows, columns=["target", "n", "questions", "groups", "concepts"])


def data_card(
    concepts: Sequence[Concept],
    items: Sequence[Item],
    settings: Settings,
    sources: Mapping[str, str],
    dropped: Sequence[Dropped],
    without: Mapping[str, Sequence[tuple[str, str]]],
    human: pd.DataFrame | None,
) -> str:
    """The card as Markdown."""
    parts = [
        "# Data card",
        _about(concepts, settings),
        "## Sources",
        "\n".join(f"- {name}: {source}" for name, source in sources.items()),
        *([PROXY_WARNING] if PROXY in settings.targets else []),
        "## Questions",
        _questions(settings),
        _table(diversity(items)),
        "## Popularity",
        _table(_values(concepts, settings, without)),
    ]
    if any(one.region for one in concepts):
        parts += ["## Concepts by region", _table(_regions(concepts))]
    if dropped:
        reasons = Counter(one.reason for one in dropped)
        parts += [
            "## Calendar entries that are no concept",
            f"{len(dropped)} entries of all countries, each in dropped.tsv:",
            _table(pd.DataFrame(reasons.most_common(), columns=["reason", "entries"])),
        ]
    if human is not None:
        parts += ["## Agreement with people's rankings", _table(human)]
    return "\n\n".join(parts) + "\n"


def _about(concepts: Sequence[Concept], settings: Settings) -> str:
    groups, names = {one.group for one in concepts}, {one.name for one in concepts}
    movable, dated = (
        sum(one.date == MOVABLE for one in concepts),
        sum(bool(one.date) for one in concepts),
    )
    dates = f" {dated} have a date, {movable} of them a movable one." if dated else ""
    return (
        f"{len(concepts)} concepts in their groups: {len(names)} names in {len(groups)} groups.{dates} "
        f"Targets: {', '.join(f'{name} ({text})' for name, text in settings.targets.items())}."
    )


def _questions(settings: Settings) -> str:
    pool = POOL_PER_SHOT * settings.shots
    return (
        f"{settings.rounds} rounds of {settings.questions} questions for each target and n, seed {settings.seed}. Within a round no set "
        f"stands twice and no set has two equal frequencies; the order in the question is random. The {settings.shots} examples before a "
        f"question come from {pool} sets of the same target, n and round that are no question, and from another group where there is one."
    )


def _values(
    concepts: Sequence[Concept],
    settings: Settings,
    without: Mapping[str, Sequence[tuple[str, str]]],
) -> pd.DataFrame:
    rows = []
    for target in settings.targets:
        values = [one.popularity[target] for one in concepts if target in one.popularity]
        groups = {one.group for one in concepts}
        few = {n: len(groups) - len(usable_groups(concepts, target, n)) for n in settings.sizes}
        zeros = sum(value == 0 for value in values)
        too_few = ", ".join(f"n={n}: {count}" for n, count in few.items())
        tied = sum(len(found) - len(set(found)) for found in _by_group(concepts, target).values())
        rows.append((target, len(values), len(concepts) - len(values), zeros, tied, too_few))
    return pd.DataFrame(
        rows,
        columns=[
            "target",
            "with value",
            "without",
            "zero",
            "tied in their group",
            "groups too small",
        ],
    )


def _by_group(concepts: Sequence[Concept], target: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for one in concepts:
        if target in one.popularity:
            found.setdefault(one.group, []).append(one.popularity[target])
    return found


def _regions(concepts: Sequence[Concept]) -> pd.DataFrame:
    regions = Counter(one.region for one in concepts)
    rows = [
        (
            region,
            len({one.group for one in concepts if one.region == region}),
            count,
            count / len(concepts),
        )
        for region, count in regions.most_common()
    ]
    return pd.DataFrame(rows, columns=["region", "groups", "concepts", "share"])


def _table(frame: pd.DataFrame) -> str:
    return tabulate(
        frame.to_numpy().tolist(), list(frame.columns), tablefmt="github", floatfmt="z.3f"
    )
