"""The way from protocol `paper` to protocol `corrected` in eight steps, each changing one thing.

All steps rank the same rows: those that both protocols keep. Steps share scoring passes where only the candidates or the
reading of ties differ; ``PASSES`` says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluent_mlama.ranking.corrected import (
    CandidateSet,
    Frame,
    choices_of,
    comparable,
    gather_candidates,
    select_frames,
    valid_objects,
)
from fluent_mlama.ranking.paper import Forms, gather_forms, select_rows
from fluent_mlama.ranking.task import cells_by_row, stable_ranks, tied_rank
from fluent_mlama.records.benchmark import TEMPLATE, Benchmark
from fluent_mlama.scoring.contract import Arithmetic, Candidate, Request, RequestScore, Tokenisation

STEPS: Mapping[str, str] = {
    "paper": "protocol `paper`, half-precision arithmetic as published",
    "fp32": "log-softmax in 32-bit, sums in 64-bit",
    "joint": "prompt and form tokenised as one string",
    "trimmed": "prompt trimmed; the blank goes to the form",
    "tail": "the rest of the sentence and its stop are scored too",
    "entities": "candidates are entities, ranked by the best of all their names; 50 others drawn for each subject, none "
    "valid for it",
    "one name": "each entity has one string: gold its form in the sentence, the others their most frequent one",
    "mid-ranks": "ties share the mean rank: protocol `corrected`",
}
FORM_STEPS = ("paper", "fp32", "joint", "trimmed", "tail")


@dataclass(frozen=True)
class Pass:
    """One scoring pass over all rows. steps: which of ``STEPS`` read it."""

    tokenisation: Tokenisation
    arithmetic: Arithmetic
    steps: tuple[str, ...]


PASSES: Mapping[str, Pass] = {
    "separate-fp16": Pass("separate", "published-fp16", ("paper",)),
    "separate": Pass("separate", "float32", ("fp32",)),
    "joint": Pass("joint", "float32", ("joint",)),
    "trimmed": Pass("joint", "float32", ("trimmed", "tail", "entities", "one name", "mid-ranks")),
}


@dataclass(frozen=True)
class Ladder:
    """One benchmark file made ready for all steps. verbalisations: template and the fluent one that stands for the others."""

    benchmark: Benchmark
    verbalisations: tuple[str, str]
    rows: tuple[int, ...]
    forms: Mapping[int, Forms]
    frames: Mapping[str, Mapping[int, Frame]]
    candidate_sets: Mapping[int, CandidateSet]

    def keys(self) -> list[tuple[int, str]]:
        """(row, verbalisation) in the order of the requests."""
        return [(row, v) for row in self.rows for v in self.verbalisations]

    def requests(self, name: str) -> list[Request]:
        """The requests of one scoring pass, each distinct candidate of its steps once."""
        cells, requests = cells_by_row(self.benchmark), []
        for row, v in self.keys():
            prompt = (
                self.frames[v][row].prompt
                if name == "trimmed"
                else cells[row][self.benchmark.columns(v).prompt]
            )
            candidates = dict.fromkeys(
                c for step in PASSES[name].steps for c in self.candidates(step, row, v)
            )
            requests.append(Request(prompt, tuple(candidates)))
        return requests

    def candidates(self, step: str, row: int, v: str) -> dict[Candidate, tuple[str, bool]]:
        """Candidate -> (what it counts for, whether that is correct): a form for itself, or a form for its entity."""
        frame = self.frames[v][row]
        if step in FORM_STEPS:
            forms = self.forms[row]
            named = [(form, form, True) for form in forms.correct] + [
                (form, form, False) for form in forms.distractors
            ]
        else:
            chosen = choices_of(self.candidate_sets[row], v, all_forms=step == "entities")
            named = [(choice.form, choice.entity, choice.role == "correct") for choice in chosen]
        if step in {"paper", "fp32", "joint"}:
            return {Candidate(form): (name, correct) for form, name, correct in named}
        tail = "" if step == "trimmed" else frame.tail
        return {
            Candidate(frame.separator + comparable(form), tail): (name, correct)
            for form, name, correct in reversed(named)
        }

    def rank(self, step: str, row: int, v: str, scores: Mapping[Candidate, float]) -> float:
        """Rank of the best correct candidate in this step."""
        best: dict[str, float] = {}
        right: set[str] = set()
        for candidate, (name, correct) in self.candidates(step, row, v).items():
            best[name] = max(scores[candidate], best.get(name, float("-inf")))
            if correct:
                right.add(name)
        wrong = [score for name, score in best.items() if name not in right]
        if step == "mid-ranks":
            (gold,) = right
            return tied_rank(best[gold], wrong).mid
        return float(min(stable_ranks([*(best[name] for name in right), *wrong])[: len(right)]))


def make_ladder(benchmark: Benchmark, limit: int | None) -> Ladder | None:
    """The first ``limit`` rows that every step can rank; None where there are none."""
    everything = benchmark.verbalisations
    kept = select_rows(benchmark, everything).kept
    frames, usable, _ = select_frames(benchmark, everything)
    sets = gather_candidates(benchmark, frames, usable, valid_objects([benchmark.table]))
    rows = tuple(row for row in kept if row in sets)[:limit]
    fluent = next(v for v in everything if v != TEMPLATE)
    if not rows:
        return None
    return Ladder(
        benchmark,
        (TEMPLATE, fluent),
        rows,
        gather_forms(benchmark, everything, kept),
        frames,
        sets,
    )


def read_ranks(
    ladder: Ladder, name: str, requests: Sequence[Request], answers: Mapping[int, RequestScore]
) -> list[dict[str, object]]:
    """One record per (row, verbalisation, step) of a scoring pass."""
    cells = cells_by_row(ladder.benchmark)
    records = []
    for number, (row, v) in enumerate(ladder.keys()):
        scores = {
            c: part.logprob
            for c, part in zip(requests[number].candidates, answers[number].candidates, strict=True)
        }
        for step in PASSES[name].steps:
            records.append({
                "language": ladder.benchmark.lang, "relation": ladder.benchmark.relation, "row": row,
                "sub_uri": cells[row]["sub_uri"], "obj_uri": cells[row]["obj_uri"],
                "verbalisation": v, "step": step, "rank": ladder.rank(step, row, v, scores),
            })  # fmt: skip
    return records
