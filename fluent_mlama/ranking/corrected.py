"""Protocol `corrected`: what a careful experiment does (docs/protocols.md). Pure functions, no model, no files.

Candidates are entities with one string each; prompt and continuation are tokenised as one string; the rest of the
sentence is scored as well; ties share their ranks.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fluent_mlama.languages import language
from fluent_mlama.ranking.entities import (
    FEW_DISTRACTORS,
    MAX_DISTRACTORS,
    SEED,
    Entity,
    draw_distractors,
    gather_entities,
    subject_order,
)
from fluent_mlama.ranking.ranks import TiedRank, Ties, tied_rank
from fluent_mlama.ranking.task import Choice, Question, Task, cells_by_row, cut
from fluent_mlama.ranking.text import Frame, comparable, names_object, read_frame
from fluent_mlama.records.benchmark import Benchmark
from fluent_mlama.records.dump import DISTRACTOR_COUNT, dump_columns
from fluent_mlama.records.scores import Role
from fluent_mlama.scoring.contract import Candidate, Request

EDITION = 2
"""Goes up with every change of the rules that changes a number."""
Frames = dict[str, dict[int, Frame]]
"""verbalisation -> row -> frame, for every usable object."""
Valid = Mapping[str, frozenset[str]]
"""sub_uri -> the obj_uris that the data source gives for it by one relation, in any language."""


@dataclass(frozen=True)
class CandidateSet:
    """One row's candidates, the same entities for every verbalisation.

    gold: verbalisation -> its form in this row. names: of gold (``--forms all``).
    """

    uri: str
    gold: Mapping[str, str]
    names: tuple[str, ...]
    distractors: tuple[Entity, ...]


def select_frames(
    benchmark: Benchmark, verbalisations: Sequence[str], *, accept_unsure: bool = False
) -> tuple[Frames, list[int], dict[int, str]]:
    """The frames of a file, the rows that are usable in every verbalisation, and why the others are not (row -> reason)."""
    its_language = language(benchmark.lang)
    frames: Frames = {v: {} for v in verbalisations}
    columns = {v: benchmark.columns(v) for v in verbalisations}
    kept, left_out = [], {}
    for row, cells in cells_by_row(benchmark).items():
        reason = ""
        for v in verbalisations:
            frame = read_frame(cells, columns[v], its_language, accept_unsure=accept_unsure)
            if isinstance(frame, Frame):
                frames[v][row] = frame
            else:
                reason = reason or f"{v}: {frame}"
        if reason:
            left_out[row] = reason
        else:
            kept.append(row)
    return frames, kept, left_out


def valid_objects(tables: Iterable[pd.DataFrame]) -> Valid:
    """sub_uri -> obj_uris of every row of these benchmark tables, rows that are left out among them."""
    valid: dict[str, set[str]] = defaultdict(set)
    for table in tables:
        facts = table[["sub_uri", "obj_uri"]]
        for subject, answer in facts.itertuples(index=False, name=None):
            valid[subject].add(answer)
    return {subject: frozenset(answers) for subject, answers in valid.items()}


def sampling_of(valid: Valid) -> str:
    """How distractors are drawn, with the hash of what counts as right: a part of the signature."""
    lines = [f"{subject} {' '.join(sorted(answers))}" for subject, answers in sorted(valid.items())]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]
    return f"sha256-by-subject,seed:{SEED},valid:{digest}"


def gather_candidates(
    benchmark: Benchmark, frames: Frames, kept: Sequence[int], valid: Valid, seed: int = SEED
) -> dict[int, CandidateSet]:
    """Gold and distractors of each kept row. Distractors come from all kept rows, limited or not."""
    its_language = language(benchmark.lang)
    entities = gather_entities(benchmark, frames, its_language)
    cells = cells_by_row(benchmark)
    uris = list(dict.fromkeys(cells[row]["obj_uri"] for row in kept))
    orders: dict[str, list[str]] = {}
    found = {}
    for row in kept:
        subject, uri = cells[row]["sub_uri"], cells[row]["obj_uri"]
        if subject not in orders:
            orders[subject] = subject_order(uris, benchmark.relation, subject, seed)
        gold = {v: comparable(of_row[row].form) for v, of_row in frames.items()}
        right = valid[subject] | {uri}
        drawn = draw_distractors(gold, orders[subject], entities, right, its_language)
        found[row] = CandidateSet(uri, gold, entities[uri].names, drawn)
    return found


def choices_of(
    candidates: CandidateSet, verbalisation: str, *, all_forms: bool = False
) -> tuple[Choice, ...]:
    """One string per entity, gold first; with ``all_forms`` every other name of each behind its string (``own`` False)."""
    rows: list[tuple[str, Role, str, tuple[str, ...]]] = [
        (candidates.uri, "correct", candidates.gold[verbalisation], candidates.names)
    ]
    for entity in candidates.distractors:
        rows.append((entity.uri, "distractor", entity.strings[verbalisation], entity.names))
    choices = []
    for uri, role, string, names in rows:
        choices.append(Choice(string, role, uri, own=True))
        if all_forms:
            choices += [Choice(name, role, uri) for name in names if name != string]
    return tuple(choices)


def corrected_task(
    benchmark: Benchmark,
    verbalisations: Sequence[str],
    *,
    limit: int | None = None,
    all_forms: bool = False,
    accept_unsure: bool = False,
    neutral_prompt: str | None = None,
    valid: Valid | None = None,
) -> Task:
    """All questions of protocol `corrected` about one file; ``limit`` cuts the rows to be scored, never the entities.

    valid: right objects of each subject in the whole data source; None = those of this file.
    """
    frames, usable, left_out = select_frames(benchmark, verbalisations, accept_unsure=accept_unsure)
    valid = valid_objects([benchmark.table]) if valid is None else valid
    candidates = gather_candidates(benchmark, frames, usable, valid)
    rows, beyond = cut(usable, limit)
    cells = cells_by_row(benchmark)
    questions = []
    named = 0
    for row in rows:
        named += names_object(cells[row], tuple(candidates[row].gold.values()), benchmark.lang)
        for v in verbalisations:
            frame = frames[v][row]
            choices = choices_of(candidates[row], v, all_forms=all_forms)
            request = Request(
                frame.prompt,
                tuple(Candidate(frame.separator + choice.form, frame.tail) for choice in choices),
            )
            questions.append(
                Question(row, v, cells[row]["sub_uri"], cells[row]["obj_uri"], request, choices)
            )
    counts = [len(candidates[row].distractors) for row in rows]
    return Task(
        benchmark,
        tuple(verbalisations),
        protocol="corrected",
        tokenisation="joint",
        questions=tuple(questions),
        left_out=left_out,
        pool_limit=MAX_DISTRACTORS,
        sampling=sampling_of(valid),
        beyond_limit=beyond,
        neutral_prompt=neutral_prompt,
        notes={
            "distractors": [min(counts), max(counts)] if counts else [],
            "rows_with_few_distractors": sum(count < FEW_DISTRACTORS for count in counts),
            "rows_that_name_the_object": named,
        },
    )


def corrected_ranks(
    scores: pd.DataFrame,
    verbalisations: Sequence[str],
    *,
    logprob: str = "logprob",
    ties: Ties = "mid",
    top: Sequence[int] = (),
) -> pd.DataFrame:
    """The dump's columns behind the benchmark's, from a table of scores: index = row number.

    ``v_all_forms_rank`` gives each entity the score of its best form; NaN where only one form was scored.
    logprob: the column to rank by. top: further k for ``v_top{k}_correct`` columns.
    """
    columns = dump_columns("corrected", verbalisations)
    further = [f"{v}_top{k}_correct" for v in verbalisations for k in top if k not in {1, 3}]
    cells: dict[str, dict[Any, Any]] = {
        column: {} for column in (*columns[:-1], *further, columns[-1])
    }
    for (row, v), group in scores.groupby(["row", "verbalisation"], sort=False):
        gold, own = group["obj_uri"].iloc[0], group["own"].to_numpy()
        entities, values = group["entity"].to_numpy(), group[logprob].to_numpy()
        score, others = _best_by_entity(gold, entities[own], values[own])
        rank = tied_rank(score, others)
        place = _pick(rank, ties)
        cells[f"{v}_rank"][row] = place
        cells[f"{v}_rank_min"][row] = rank.lowest
        cells[f"{v}_rank_max"][row] = rank.highest
        cells[f"{v}_all_forms_rank"][row] = (
            float("nan")
            if own.all()
            else _pick(tied_rank(*_best_by_entity(gold, entities, values)), ties)
        )
        cells[f"{v}_logprob"][row] = score
        for k in (1, 3, *(k for k in top if k not in {1, 3})):
            cells[f"{v}_top{k}_correct"][row] = int(place <= k)
        cells[f"{v}_prompt_prob"][row] = float(group["prompt_logprob"].iloc[0])
        cells[DISTRACTOR_COUNT][row] = len(others)
    return pd.DataFrame({column: pd.Series(values) for column, values in cells.items()})


def _best_by_entity(
    gold: str, entities: Iterable[str], values: Iterable[float]
) -> tuple[Any, list[float]]:
    """Gold's best score (None where it has none) and that of each other entity."""
    best: dict[str, float] = {}
    for entity, value in zip(entities, values, strict=True):
        number = float(value)
        if np.isnan(number):
            raise ValueError("a score is NaN")
        best[entity] = max(number, best.get(entity, float("-inf")))
    return best.pop(gold, None), list(best.values())


def _pick(rank: TiedRank, ties: Ties) -> float:
    return float({"gold": rank.lowest, "mid": rank.mid, "worst": rank.highest}[ties])
