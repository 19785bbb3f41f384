"""What every format carries: the questions of protocol `corrected` (docs/protocols.md), and which
rows have none, and why.

The other protocol tokenises prompt and form apart, which neither the harness nor LM-Pub-Quiz can
do; its numbers cannot be had there.
An export is a folder that is moved into place whole, with its record and the list of what it leaves
out.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fluent_mlama import __version__
from fluent_mlama.console import UserError
from fluent_mlama.files import format_table, parse_json, replacing_folder
from fluent_mlama.ranking.corrected import FEW_DISTRACTORS, corrected_task
from fluent_mlama.ranking.task import Choice, Question, cells_by_row, choose_verbalisations
from fluent_mlama.records.benchmark import Benchmark


@dataclass(frozen=True, slots=True)
class Fact:
    """One row in one verbalisation. cells: the row as the file has it.

    separator: what stands between prompt and object (one blank or nothing). choices: one form per
    entity, gold's first.
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

    files: each benchmark file with the verbalisations that are compared. beyond_limit: rows that
    ``limit`` cut off.
    left_out: rows, and questions that the format cannot hold.
    """

    files: Mapping[Benchmark, tuple[str, ...]]
    limit: int | None
    facts: list[Fact] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    beyond_limit: int = 0

    def by_task(self) -> dict[tuple[str, str], list[Fact]]:
        """(language, verbalisation) -> its facts, languages in the order of the files,
        verbalisations in that of columns."""
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

    limit: rows of each file at most; candidates still come from the whole file. ``UserError`` where
    a file lacks a wanted verbalisation, or where no row of any file can be asked.
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


RECORD = "export.json"
LEFT_OUT = "left_out.tsv"


@contextlib.contextmanager
def export_folder(path: Path, facts: Facts, kind: str) -> Iterator[Path]:
    """Yield a folder to fill; with ``export.json`` and ``left_out.tsv`` added it takes the place of
    ``path``.

    An earlier export is replaced; other files are never touched (``UserError``). Nothing in it
    depends on the day or
    the machine: the same benchmark files give the same bytes.
    """
    with replacing_folder(path, find_foreign=find_foreign) as folder:
        yield folder
        (folder / LEFT_OUT).write_text(
            _left_out_table(facts.left_out), encoding="utf-8", newline=""
        )
        write_json(
            folder / RECORD,
            {"format": kind, "version": __version__} | facts.record() | {"holds": _files(folder)},
        )


def find_foreign(folder: Path) -> str | None:
    """A file in the folder that the export's record does not name (``__pycache__`` aside)."""
    try:
        held = {RECORD, *parse_json((folder / RECORD).read_bytes(), RECORD)["holds"]}
    except (OSError, ValueError, KeyError, TypeError):
        # not an export: one name is enough, however much the folder holds
        return next((entry.name for entry in sorted(folder.iterdir())), None)
    return next((name for name in _files(folder) if name not in held), None)


def _files(folder: Path) -> list[str]:
    paths = (
        path.relative_to(folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() or path.is_symlink()
    )
    return [path.as_posix() for path in paths if "__pycache__" not in path.parts]


def write_json(path: Path, content: Any) -> None:
    """JSON for people: indented, letters as they are."""
    path.write_text(
        json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline=""
    )


def write_json_lines(path: Path, rows: Sequence[Any]) -> None:
    """One JSON object per line; line separators inside labels are escaped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    for character in "\x85\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    path.write_text(text, encoding="utf-8", newline="")


def _left_out_table(left_out: Sequence[LeftOut]) -> str:
    columns = ("file", "row", "sub_uri", "obj_uri", "verbalisation", "reason")
    rows = [[str(getattr(entry, column)) for column in columns] for entry in left_out]
    return format_table(pd.DataFrame(rows, columns=list(columns), dtype="str"))
