"""What every format carries: the questions of protocol `corrected` (docs/protocols.md), and which rows have none, and why.

The other protocol tokenises prompt and form apart, which neither the harness nor LM-Pub-Quiz can do; its numbers cannot
be had there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fluent_mlama.console import UserError
from fluent_mlama.ranking.corrected import FEW_DISTRACTORS, corrected_task
from fluent_mlama.ranking.task import Choice, Question, cells_by_row, choose_verbalisations
from fluent_mlama.records.benchmark import Benchmark


@dataclass(frozen=True, slots=True)
class Fact:
    """One row in one verbalisation. cells: the row as the file has it.

    separator: what stands between prompt and object (one blank or nothing). choices: one form per entity, gold's first.
    """

    lang: str
    relation: str
    verbalisation: str
    row: int
    cells: Mapping[str, str]
    prompt: str
    separator: str
    tail: str
    choices: tuple[Choice, ...]

    @property
    def gold(self) -> str:
        """The obj_uri of the right entity."""
        return self.cells["obj_uri"]

    @property
    def own_forms(self) -> dict[str, str]:
        """Entity -> its form in this verbalisation."""
        return {choice.entity: choice.form for choice in self.choices}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One row that an export does not carry (in this verbalisation; "" = in none)."""

    file: str
    row: int
    sub_uri: str
    obj_uri: str
    verbalisation: str
    reason: str


@dataclass
class Facts:
    """Everything there is to export, and what there is not.

    files: each benchmark file with the verbalisations that are compared. beyond_limit: rows that ``limit`` cut off.
    left_out: rows, and questions that the format cannot hold.
    """

    files: Mapping[Benchmark, tuple[str, ...]]
    limit: int | None
    facts: list[Fact] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    beyond_limit: int = 0

    def by_task(self) -> dict[tuple[str, str], list[Fact]]:
        """(language, verbalisation) -> its facts, languages in the order of the files, verbalisations in that of columns."""
        groups: dict[tuple[str, str], list[Fact]] = {}
        for fact in self.facts:
            groups.setdefault((fact.lang, fact.verbalisation), []).append(fact)
        return groups

    def told(self) -> str:
        """The reasons in one line: `3 × gt: not-found, 1 × …`."""
        reasons = _count(entry.reason for entry in self.left_out)
        return (
            ", ".join(f"{count} × {reason}" for reason, count in reasons.items())
            or "there are no rows"
        )

    def record(self) -> dict[str, Any]:
        """What went in and what stayed out, for the export's own record."""
        few = {
            (fact.lang, fact.relation, fact.row)
            for fact in self.facts
            if _distractors(fact) < FEW_DISTRACTORS
        }
        return {
            "protocol": "corrected",
            "limit": self.limit,
            "files": {benchmark.name: benchmark.sha256 for benchmark in self.files},
            "rows_in": sum(len(benchmark.table) for benchmark in self.files),
            "rows_exported": len({(fact.lang, fact.relation, fact.row) for fact in self.facts}),
            "rows_left_out": _count(
                entry.reason for entry in self.left_out if not entry.verbalisation
            ),
            "rows_beyond_limit": self.beyond_limit,
            "rows_with_few_distractors": len(few),
            "questions": len(self.facts),
            "questions_left_out": _count(
                entry.reason for entry in self.left_out if entry.verbalisation
            ),
        }


def gather_facts(
    benchmarks: Sequence[Benchmark],
    wanted: tuple[str, ...] | None,
    *,
    limit: int | None = None,
) -> Facts:
    """The questions of these files. wanted: verbalisations to compare, None = each file's own.

    limit: rows of each file at most; candidates still come from the whole file. ``UserError`` where a file lacks a wanted
    verbalisation, or where no row of any file can be asked.
    """
    found = Facts(
        {benchmark: choose_verbalisations(benchmark, wanted) for benchmark in benchmarks},
        limit,
    )
    for benchmark, verbalisations in found.files.items():
        task = corrected_task(benchmark, verbalisations, limit=limit)
        cells = cells_by_row(benchmark)
        found.facts += [
            _fact(benchmark, question, cells[question.row]) for question in task.questions
        ]
        for row, reason in sorted(task.left_out.items()):
            found.left_out.append(
                LeftOut(
                    benchmark.name, row, cells[row]["sub_uri"], cells[row]["obj_uri"], "", reason
                )
            )
        found.beyond_limit += task.beyond_limit
    if not found.facts:
        raise UserError(f"no row of {_few(benchmarks)} can be exported: {found.told()}")
    return found


def _fact(benchmark: Benchmark, question: Question, cells: Mapping[str, str]) -> Fact:
    first, form = question.request.candidates[0], question.choices[0].form
    return Fact(
        lang=benchmark.lang,
        relation=benchmark.relation,
        verbalisation=question.verbalisation,
        row=question.row,
        cells=cells,
        prompt=question.request.prompt,
        separator=first.text.removesuffix(form),
        tail=first.tail,
        choices=question.choices,
    )


def _distractors(fact: Fact) -> int:
    return len({choice.entity for choice in fact.choices}) - 1


def _few(benchmarks: Sequence[Benchmark]) -> str:
    names = [benchmark.name for benchmark in benchmarks]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _count(reasons: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(reasons).items()))
