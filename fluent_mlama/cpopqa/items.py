"""Questions: n concepts of one group to be sorted by popularity for a target, with worked examples before them.

    seed, target, n, round ──▶ a held-out pool of example sets ──▶ the round's sets, none twice, no two values tied

Everything is drawn from ``random.Random`` with a text seed: the same settings give the same questions on any machine.
"""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from fluent_mlama.console import UserError
from fluent_mlama.cpopqa.concepts import Concept, read_concepts
from fluent_mlama.cpopqa.tables_in import read_text
from fluent_mlama.files import parse_json, write_text

QUESTION = "Can you provide a descending order for the following {concepts} by their popularity in {target}: {options}?"
"""The paper's wording (section 4.1)."""

POOL_PER_SHOT = 6
TRIES = 1000
FILE = "items.jsonl"


@dataclass(frozen=True, slots=True)
class Settings:
    """How questions are drawn; targets: name -> how questions call it."""

    targets: Mapping[str, str]
    sizes: tuple[int, ...] = (2, 3, 5)
    rounds: int = 5
    questions: int = 200
    shots: int = 3
    seed: int = 0
    wording: str = QUESTION


@dataclass(frozen=True, slots=True)
class Item:
    """One question. options: as asked. gold: the same, most popular first. prompt: examples, question and "A:"."""

    id: str
    target: str
    n: int
    round: int
    group: str
    options: tuple[str, ...]
    gold: tuple[str, ...]
    question: str
    prompt: str


class _Group:
    """The concepts of one group that have a value for a target, and how many untied sets of n they hold."""

    def __init__(self, concepts: Sequence[Concept], target: str, n: int) -> None:
        self.phrase = concepts[0].phrase
        self.value = {
            one.name: one.popularity[target] for one in concepts if target in one.popularity
        }
        self.names = list(self.value)
        self.classes: dict[float, list[str]] = defaultdict(list)
        for name, value in self.value.items():
            self.classes[value].append(name)
        self.ways = untied_ways([len(tied) for tied in self.classes.values()], n)
        self.capacity = self.ways[-1][n]
        self.used: set[frozenset[str]] = set()

    def draw(self, n: int, generator: random.Random) -> list[str]:
        """A set of n names that is new and untied, in random order; each such set is equally likely."""
        for tries in count():
            names = generator.sample(self.names, n) if tries < TRIES else self._untied(n, generator)
            if frozenset(names) not in self.used and len({self.value[name] for name in names}) == n:
                break
        self.used.add(frozenset(names))
        return names

    def _untied(self, n: int, generator: random.Random) -> list[str]:
        """The same where ties leave few untied sets among all sets of n: drawn among the untied ones alone."""
        names: list[str] = []
        for place in range(len(self.classes), 0, -1):
            wanted = n - len(names)
            if generator.randrange(self.ways[place][wanted]) >= self.ways[place - 1][wanted]:
                names.append(generator.choice(list(self.classes.values())[place - 1]))
        generator.shuffle(names)
        return names

    def sort(self, names: Sequence[str]) -> list[str]:
        """Most popular first."""
        return sorted(names, key=lambda name: -self.value[name])


def untied_ways(tied: Sequence[int], n: int) -> list[list[int]]:
    """[i][k]: how many sets of k values hold no two equal ones, if the first i values occur so often each.

    These are the elementary symmetric polynomials of the counts.
    """
    ways = [[1] + [0] * n]
    for times in tied:
        ways.append([1] + [ways[-1][size] + ways[-1][size - 1] * times for size in range(1, n + 1)])
    return ways


def draw_items(concepts: Sequence[Concept], settings: Settings) -> list[Item]:
    """All questions: targets × sizes × rounds × ``questions``. Too few different sets for that is a UserError."""
    items = []
    for target in settings.targets:
        for n in settings.sizes:
            for round_number in range(1, settings.rounds + 1):
                items += _round(concepts, settings, target, n, round_number)
    return items


def _round(
    concepts: Sequence[Concept], settings: Settings, target: str, n: int, round_number: int
) -> list[Item]:
    groups = usable_groups(concepts, target, n)
    pool_size = POOL_PER_SHOT * settings.shots
    capacity = sum(group.capacity for group in groups.values())
    if capacity < settings.questions + pool_size:
        raise UserError(
            f"{target}: only {capacity} different untied sets of {n} in {len(groups)} groups, {settings.questions} questions and "
            f"{pool_size} examples a round need more: lower --questions or --shots, or leave {n} out of --n"
        )
    generator = random.Random(f"{settings.seed}/{target}/{n}/{round_number}")
    pool = [_set(groups, n, generator) for _ in range(pool_size)]
    drawn = [_set(groups, n, generator) for _ in range(settings.questions)]
    items = []
    for number, (group, names) in enumerate(drawn, start=1):
        elsewhere = [one for one in pool if one[0] != group]
        examples = generator.sample(
            elsewhere if len(elsewhere) >= settings.shots else pool, settings.shots
        )
        blocks = [
            f"Q: {_question(settings, target, groups[one], shown)}\nA: {numbered(groups[one].sort(shown))}"
            for one, shown in examples
        ]
        question = _question(settings, target, groups[group], names)
        prompt = "\n\n".join([*blocks, f"Q: {question}\nA:"])
        name = f"{target}/n{n}/r{round_number}/{number:03d}"
        gold = tuple(groups[group].sort(names))
        items.append(
            Item(name, target, n, round_number, group, tuple(names), gold, question, prompt)
        )
    return items


def usable_groups(concepts: Sequence[Concept], target: str, n: int) -> dict[str, _Group]:
    """Groups with at least one untied set of n for a target."""
    by_group: dict[str, list[Concept]] = defaultdict(list)
    for concept in concepts:
        by_group[concept.group].append(concept)
    groups = {name: _Group(members, target, n) for name, members in by_group.items()}
    return {name: group for name, group in groups.items() if group.capacity}


def _set(groups: Mapping[str, _Group], n: int, generator: random.Random) -> tuple[str, list[str]]:
    """One new set: a group uniformly among those that have one left, names uniformly within it."""
    name = generator.choice(
        [name for name, group in groups.items() if len(group.used) < group.capacity]
    )
    return name, groups[name].draw(n, generator)


def _question(settings: Settings, target: str, group: _Group, names: Sequence[str]) -> str:
    filled = {
        "{concepts}": group.phrase,
        "{target}": settings.targets[target],
        "{options}": ", ".join(names),
    }
    text = settings.wording
    for mark, words in filled.items():
        text = text.replace(mark, words)
    return text


def numbered(names: Sequence[str]) -> str:
    """``1. A 2. B 3. C``, the paper's form of an answer."""
    return " ".join(f"{place}. {name}" for place, name in enumerate(names, start=1))


def check(settings: Settings) -> None:
    """Refuse settings that no question can be drawn with."""
    if not settings.targets:
        raise UserError(
            "no popularity given: use --ngrams, --popularity or --proxy (docs/cpopqa.md)"
        )
    if min(settings.sizes) < 2 or max(settings.sizes) > 9:
        raise UserError("--n: a question sorts 2 to 9 concepts, e.g. --n 2,3,5")
    missing = [mark for mark in ("{concepts}", "{options}") if mark not in settings.wording]
    if missing:
        raise UserError(
            f"--wording lacks {missing[0]}; it may hold {{concepts}}, {{target}} and {{options}}"
        )


def write_items(path: Path, items: Sequence[Item]) -> None:
    """One JSON line a question."""
    write_text(path, "".join(json.dumps(asdict(item), ensure_ascii=False) + "\n" for item in items))


def read_items(folder: Path) -> list[Item]:
    """The questions of a folder that ``build`` wrote."""
    path = folder / FILE
    if not path.is_file():
        raise UserError(
            f"{folder} holds no questions ({FILE} is missing): run build first, or check --data"
        )
    items = []
    for row, line in enumerate(
        read_text(path).removesuffix("\n").split("\n"), start=1
    ):  # JSON leaves U+2028 in a line
        try:
            record: dict[str, Any] = parse_json(line, path.name)
            record |= {"options": tuple(record["options"]), "gold": tuple(record["gold"])}
            items.append(Item(**record))
        except (ValueError, KeyError, TypeError):
            raise UserError(
                f"{path.name}: line {row} is no question; the file is cut off or was edited: run build again"
            ) from None
    return items


def read_benchmark(folder: Path) -> tuple[list[Item], list[Concept]]:
    """The questions and the concepts that they are made of."""
    items, concepts = read_items(folder), read_concepts(folder / "concepts.tsv")
    known = {(one.group, one.name) for one in concepts}
    for item in items:
        if not known.issuperset((item.group, name) for name in item.options):
            raise UserError(
                f"{folder}: {FILE} and concepts.tsv are of two builds ({item.id} has a name more): run build again"
            )
    return items, concepts


def read_targets(folder: Path) -> dict[str, str]:
    """How questions call each target, from ``settings.json``."""
    path = folder / "settings.json"
    try:
        return {
            str(name): str(text)
            for name, text in parse_json(read_text(path), path.name)["targets"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged: run build again") from None


def chance(n: int) -> tuple[float, float, float]:
    """P@1, Acc and Diff of a random order."""
    return 1 / n, 1 / math.factorial(n), 0.5
