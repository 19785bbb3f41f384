"""Protocol `corrected`: what a careful experiment does (docs/protocols.md). Pure functions, no model, no files.

Candidates are entities rather than strings; prompt and continuation are tokenised as one string; the rest of the sentence
is scored as well; ties share their ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fluent_mlama.languages import language
from fluent_mlama.ranking.entities import (
    DISTRACTOR_LIMIT,
    FEW_DISTRACTORS,
    SEED,
    Entity,
    draw_distractors,
    gather_entities,
    sampling_order,
)
from fluent_mlama.ranking.ranks import TiedRank, Ties, tied_rank
from fluent_mlama.ranking.task import Choice, Question, Task, cells_by_row, cut
from fluent_mlama.ranking.text import Frame, comparable, read_frame
from fluent_mlama.records.benchmark import Benchmark
from fluent_mlama.records.dump import DISTRACTOR_COUNT, dump_columns
from fluent_mlama.scoring.contract import Candidate, Request

EDITION = 1
"""Goes up with every change of the rules that changes a number."""
Frames = dict[str, dict[int, Frame]]
"""verbalisation -> row -> frame, for every usable object."""


@dataclass(frozen=True)
class Contest:
    """One row's candidates: gold and its distractors, the same for every verbalisation."""

    gold: Entity
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


def gather_contests(
    benchmark: Benchmark, entities: Mapping[str, Entity], kept: Sequence[int], seed: int = SEED
) -> tuple[dict[int, Contest], dict[int, str]]:
    """Gold and distractors of each kept row; and, row -> reason, the rows whose gold has no string that is its alone.

    Distractors come from all entities of the kept rows, limited or not.
    """
    cells = cells_by_row(benchmark)
    valid: dict[str, set[str]] = defaultdict(set)
    for fact in cells.values():
        valid[fact["sub_uri"]].add(fact["obj_uri"])
    uris = dict.fromkeys(cells[row]["obj_uri"] for row in kept)
    order = sampling_order((entities[uri] for uri in uris), benchmark.relation, seed)
    contests: dict[int, Contest] = {}
    left_out: dict[int, str] = {}
    for row in kept:
        gold = entities[cells[row]["obj_uri"]]
        if gold.forms:
            contests[row] = Contest(
                gold, tuple(draw_distractors(gold, frozenset(valid[cells[row]["sub_uri"]]), order))
            )
        else:
            left_out[row] = "every form of the object names another entity as well"
    return contests, left_out


def choices_of(contest: Contest, verbalisation: str, frame: Frame) -> tuple[Choice, ...]:
    """Every form of every entity, gold first; ``own`` marks the one form of each that this verbalisation itself uses."""
    own = comparable(frame.form)
    choices = [
        Choice(form, "correct", contest.gold.uri, form == own) for form in contest.gold.labels
    ]
    choices += [
        Choice(form, "alias", contest.gold.uri, form == own) for form in contest.gold.aliases
    ]
    for entity in contest.distractors:
        used = entity.own_form(verbalisation)
        choices += [Choice(form, "distractor", entity.uri, form == used) for form in entity.forms]
    return tuple(choices)


def corrected_task(
    benchmark: Benchmark,
    verbalisations: Sequence[str],
    *,
    limit: int | None = None,
    with_aliases: bool = True,
    accept_unsure: bool = False,
    neutral_prompt: str | None = None,
) -> Task:
    """All questions of protocol `corrected` about one file; ``limit`` cuts the rows to be scored, never the entities."""
    frames, usable, left_out = select_frames(benchmark, verbalisations, accept_unsure=accept_unsure)
    entities = gather_entities(
        benchmark, frames, language(benchmark.lang), with_aliases=with_aliases
    )
    contests, formless = gather_contests(benchmark, entities, usable)
    rows, beyond = cut([row for row in usable if row in contests], limit)
    cells = cells_by_row(benchmark)
    questions = []
    for row in rows:
        for v in verbalisations:
            frame = frames[v][row]
            choices = choices_of(contests[row], v, frame)
            request = Request(
                frame.prompt,
                tuple(Candidate(frame.separator + choice.form, frame.tail) for choice in choices),
            )
            questions.append(
                Question(row, v, cells[row]["sub_uri"], cells[row]["obj_uri"], request, choices)
            )
    counts = [len(contests[row].distractors) for row in rows]
    return Task(
        benchmark,
        tuple(verbalisations),
        protocol="corrected",
        tokenisation="joint",
        questions=tuple(questions),
        left_out=left_out | formless,
        pool_limit=DISTRACTOR_LIMIT,
        sampling=f"sha256-of-entity,seed:{SEED}",
        beyond_limit=beyond,
        neutral_prompt=neutral_prompt,
        notes={
            "distractors": [min(counts), max(counts)] if counts else [],
            "rows_with_few_distractors": sum(count < FEW_DISTRACTORS for count in counts),
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

    An entity scores what its best form scores. ``v_own_rank`` compares the forms that v itself uses; NaN where gold's is
    not its alone. logprob: the column to rank by. top: further k for ``v_top{k}_correct`` columns.
    """
    columns = dump_columns("corrected", verbalisations)
    further = [f"{v}_top{k}_correct" for v in verbalisations for k in top if k not in {1, 3}]
    cells: dict[str, dict[Any, Any]] = {
        column: {} for column in (*columns[:-1], *further, columns[-1])
    }
    for (row, v), group in scores.groupby(["row", "verbalisation"], sort=False):
        gold, entities, values = (
            group["obj_uri"].iloc[0],
            group["entity"].to_numpy(),
            group[logprob].to_numpy(),
        )
        score, others = _best_by_entity(gold, entities, values)
        rank = tied_rank(score, others)
        own = group["own"].to_numpy()
        own_score, own_others = _best_by_entity(gold, entities[own], values[own])
        place = _pick(rank, ties)
        cells[f"{v}_rank"][row] = place
        cells[f"{v}_rank_min"][row] = rank.lowest
        cells[f"{v}_rank_max"][row] = rank.highest
        cells[f"{v}_own_rank"][row] = (
            float("nan") if own_score is None else _pick(tied_rank(own_score, own_others), ties)
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
