"""Protocol `paper`: which rows, candidates and distractors the published rank dumps used (docs/protocols.md).

Pure functions from a benchmark file to requests; no model, no files. Fluent-mLAMA (2025), section 3; the rules were
read off the published dumps where its text is silent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fluent_mlama.ranking.task import (
    Choice,
    Question,
    Task,
    Ties,
    cells_by_row,
    correct_last_ranks,
    cut,
    stable_ranks,
    top_flag,
    true_ranks,
)
from fluent_mlama.records.benchmark import ERROR, TEMPLATE, Benchmark, objection, split_aliases
from fluent_mlama.records.results import dump_columns
from fluent_mlama.scoring.contract import Candidate, Request

EDITION = 1
"""Goes up with every change of the rules that changes a number."""
MAX_DISTRACTORS = 50
"""Distractors a fact, at most."""
SAMPLING = "sha256-of-form"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows of a file are ranked. kept: row numbers in file order; left_out: row number -> reason."""

    kept: tuple[int, ...]
    left_out: dict[int, str]


@dataclass(frozen=True, slots=True)
class Forms:
    """What competes to continue the prompts of one row, the same for all its verbalisations.

    correct: narrow correct forms in column order. aliases: the further forms that count as correct in the wide ranks,
    in list order. distractors: in ascending order of their sha256.
    """

    correct: tuple[str, ...]
    aliases: tuple[str, ...]
    distractors: tuple[str, ...]

    @property
    def candidates(self) -> tuple[str, ...]:
        """All forms in the order that decides ties: correct, aliases, distractors."""
        return self.correct + self.aliases + self.distractors


def select_rows(
    benchmark: Benchmark,
    verbalisations: Sequence[str],
    *,
    drop_empty_objects: bool = False,
    accept_unsure: bool = False,
) -> Selection:
    """Keep a row iff each verbalisation but the template has a non-empty prompt and an object cell that is not ERROR.

    An empty object cell keeps the row (it adds no form) unless ``drop_empty_objects``. A prompt of blanks is kept. Where a
    file has status columns (the published ones have none), the status decides first: see ``objection``.
    """
    kept: list[int] = []
    left_out: dict[int, str] = {}
    table = benchmark.table
    columns = {v: benchmark.columns(v) for v in verbalisations}
    cells = [
        (v, table[names.prompt].tolist(), table[names.object].tolist())
        for v, names in columns.items()
        if v != TEMPLATE
    ]
    statuses = [(v, table[names.status].tolist()) for v, names in columns.items() if names.status]
    formless = (
        (table[[names.object for names in columns.values()]] == "").all(axis="columns").tolist()
    )
    for position, row in enumerate(table.index):
        reason = "no object form in any verbalisation" if formless[position] else ""
        for v, column in statuses:
            why = objection(column[position], accept_unsure=accept_unsure)
            reason = reason or (f"{v}: {why}" if why else "")
        for v, prompts, forms in cells:
            reason = reason or _reason(v, prompts[position], forms[position], drop_empty_objects)
        if reason:
            left_out[int(row)] = reason
        else:
            kept.append(int(row))
    return Selection(tuple(kept), left_out)


def _reason(verbalisation: str, prompt: str, form: str, drop_empty_objects: bool) -> str:
    if form == ERROR:
        return f"{verbalisation}: object not found"
    if prompt == "":
        return f"{verbalisation}: empty prompt"
    if form == "" and drop_empty_objects:
        return f"{verbalisation}: empty object"
    return ""


def sampling_order(pool: Iterable[str]) -> list[str]:
    """The distinct non-empty strings in ascending sha256 of their UTF-8 bytes: the published, seedless `random` sample."""
    return sorted(
        {form for form in pool if form},
        key=lambda form: hashlib.sha256(form.encode("utf-8")).digest(),
    )


def gather_forms(
    benchmark: Benchmark, verbalisations: Sequence[str], rows: Sequence[int]
) -> dict[int, Forms]:
    """Candidates of each of ``rows``; the pool comes from all of them, so pass every kept row, limited or not."""
    table = benchmark.table.loc[list(rows)]
    object_columns = [benchmark.columns(v).object for v in verbalisations]
    objects = list(zip(*(table[column].tolist() for column in object_columns), strict=True))
    aliases = (
        [split_aliases(cell) for cell in table["aliases"].tolist()]
        if "aliases" in table.columns
        else [[] for _ in objects]
    )
    order = sampling_order(form for row in (*objects, *aliases) for form in row)
    return {
        row: _forms_of_row(row_objects, row_aliases, order)
        for row, row_objects, row_aliases in zip(rows, objects, aliases, strict=True)
    }


def _forms_of_row(objects: Sequence[str], aliases: Sequence[str], order: Sequence[str]) -> Forms:
    correct = tuple(dict.fromkeys(form for form in objects if form))
    further = tuple(dict.fromkeys(form for form in aliases if form and form not in correct))
    excluded = {*correct, *further}
    distractors: list[str] = []
    for form in order:
        if len(distractors) == MAX_DISTRACTORS:
            break
        if form not in excluded:
            distractors.append(form)
    return Forms(correct, further, tuple(distractors))


def pool_size(benchmark: Benchmark, verbalisations: Sequence[str], rows: Sequence[int]) -> int:
    """How many distinct strings the pool of ``rows`` holds."""
    forms = gather_forms(benchmark, verbalisations, rows)
    return len({form for row in forms.values() for form in (*row.correct, *row.aliases)})


def paper_task(
    benchmark: Benchmark,
    verbalisations: Sequence[str],
    *,
    limit: int | None = None,
    drop_empty_objects: bool = False,
    accept_unsure: bool = False,
    neutral_prompt: str | None = None,
) -> Task:
    """All questions of protocol `paper` about one file; ``limit`` cuts the rows to be scored, never the pool."""
    selection = select_rows(
        benchmark,
        verbalisations,
        drop_empty_objects=drop_empty_objects,
        accept_unsure=accept_unsure,
    )
    forms = gather_forms(benchmark, verbalisations, selection.kept)
    rows, beyond = cut(selection.kept, limit)
    columns = {v: benchmark.columns(v) for v in verbalisations}
    cells_of = cells_by_row(benchmark)
    questions = []
    for row in rows:
        cells = cells_of[row]
        for v in verbalisations:
            own = cells[columns[v].object]
            choices = (
                *(Choice(form, "correct", own=form == own) for form in forms[row].correct),
                *(Choice(form, "alias", own=form == own) for form in forms[row].aliases),
                *(Choice(form, "distractor") for form in forms[row].distractors),
            )
            request = Request(
                cells[columns[v].prompt], tuple(Candidate(choice.form) for choice in choices)
            )
            questions.append(Question(row, v, cells["sub_uri"], cells["obj_uri"], request, choices))
    return Task(
        benchmark,
        tuple(verbalisations),
        protocol="paper",
        tokenisation="separate",
        questions=tuple(questions),
        left_out=selection.left_out,
        pool_limit=MAX_DISTRACTORS,
        sampling=SAMPLING,
        beyond_limit=beyond,
        neutral_prompt=neutral_prompt,
        notes={
            "distractors": _range(len(forms[row].distractors) for row in rows),
            "drop_empty_objects": drop_empty_objects,
        },
    )


def _range(counts: Iterable[int]) -> list[int]:
    """Smallest and largest of some counts, empty where there are none."""
    counts = list(counts)
    return [min(counts), max(counts)] if counts else []


def paper_ranks(
    scores: pd.DataFrame,
    verbalisations: Sequence[str],
    *,
    wide: bool,
    logprob: str = "logprob",
    ties: Ties = "gold",
    top: Sequence[int] = (),
) -> pd.DataFrame:
    """The dump's columns behind the benchmark's, from a table of scores: index = row number.

    wide: aliases are correct. Narrow ranks come from the same scores: aliases are simply not there. logprob: the column to
    rank by. ties: "gold" is the protocol; "mid" is a ``ValueError``, since these dumps hold whole ranks.
    top: further k for ``v_top{k}_correct`` columns besides 1 and 3.
    """
    if ties == "mid":
        raise ValueError("a dump of protocol paper holds whole ranks; it cannot hold mid-ranks")
    columns = dump_columns("paper", verbalisations)
    further = tuple(k for k in top if k not in {1, 3})
    cells: dict[str, dict[Any, Any]] = {
        column: {}
        for column in (*columns, *(f"{v}_top{k}_correct" for v in verbalisations for k in further))
    }
    used = scores if wide else scores[scores["role"] != "alias"]
    for (row, v), group in used.groupby(["row", "verbalisation"], sort=False):
        correct = group["candidate"][(group["role"] != "distractor").to_numpy()].tolist()
        values = group[logprob].tolist()
        found = true_ranks(
            correct,
            stable_ranks(values) if ties == "gold" else correct_last_ranks(values, len(correct)),
        )
        cells[f"{v}_true_ranks"][row] = found
        cells[f"{v}_prompt_prob"][row] = float(group["prompt_logprob"].iloc[0])
        for k in (1, 3, *further):
            cells[f"{v}_top{k}_correct"][row] = top_flag(found, k)
    kinds = {f"{v}_true_ranks": "object" for v in verbalisations}
    return pd.DataFrame(
        {column: pd.Series(values, dtype=kinds.get(column)) for column, values in cells.items()}
    )
