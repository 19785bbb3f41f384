"""Token log-probabilities of both sentences of every pair: one pass through the scoring engine, kept on disk.

A pair is one request with an empty prompt and two candidates, so that the engine computes their common beginning once.
Whatever is asked of the numbers later (linking functions, lengths, unigrams) needs no model.

    <out>/<model>/<revision>.scores.parquet   what is kept a pair      .run.json   what made it     .packs/   unfinished
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fluent_mlama.console import UserError
from fluent_mlama.json_text import parse_json
from fluent_mlama.records.atomic import write_bytes
from fluent_mlama.records.run import write_run
from fluent_mlama.runner.run import OnItems, Packs
from fluent_mlama.scoring.contract import (
    Candidate,
    Request,
    RequestScore,
    Scorer,
    ScorerDescription,
)
from fluent_mlama.signing import record_of
from fluent_mlama.zhoblimp.data import PairRow

_SCHEMA = pa.schema(
    [
        ("uid", pa.string()),
        ("phenomenon", pa.string()),
        ("number", pa.int32()),
        ("good", pa.string()),
        ("bad", pa.string()),
        ("good_ids", pa.list_(pa.int32())),
        ("bad_ids", pa.list_(pa.int32())),
        ("good_logprobs", pa.list_(pa.float64())),
        ("bad_logprobs", pa.list_(pa.float64())),
    ]
)


@dataclass(frozen=True)
class Place:
    """Where one model's (checkpoint's) files lie: ``stem`` without the endings."""

    folder: Path
    stem: str

    @property
    def scores(self) -> Path:
        """Token log-probabilities."""
        return self.folder / f"{self.stem}.scores.parquet"

    @property
    def run(self) -> Path:
        """What made them."""
        return self.folder / f"{self.stem}.run.json"

    @property
    def pairs(self) -> Path:
        """One JSON line a pair, as published, with the scores added."""
        return self.folder / f"{self.stem}.jsonl"

    @property
    def packs(self) -> Path:
        """Finished packs of an unfinished run."""
        return self.folder / f"{self.stem}.packs"


def requests_of(rows: Sequence[PairRow]) -> list[Request]:
    """One request a pair."""
    return [Request("", (Candidate(row.good), Candidate(row.bad))) for row in rows]


def digest(rows: Sequence[PairRow]) -> str:
    """SHA-256 of the pairs that are scored, in order."""
    found = hashlib.sha256()
    for row in rows:
        found.update(f"{row.uid}\t{row.phenomenon}\t{row.number}\t{row.good}\t{row.bad}\n".encode())
    return found.hexdigest()


@dataclass(frozen=True)
class Pairs:
    """All pairs for one model, as a job of the runner. settings: whatever decides the numbers."""

    rows: Sequence[PairRow]
    place: Place
    label: str
    settings: Mapping[str, Any]

    @property
    def unit(self) -> str:
        """What is counted."""
        return "pairs"

    @property
    def target(self) -> Path:
        """The table of scores."""
        return self.place.scores

    @property
    def packs(self) -> Path:
        """Finished packs of an unfinished table."""
        return self.place.packs

    def is_finished(self, scorer: Scorer | None = None) -> bool:
        """Whether an earlier run with exactly these settings has scored them."""
        return kept(self.settings, self.place) is not None

    def make(self, scorer: Scorer, on_items: OnItems) -> None:
        """Score the pairs, and write the table and its record."""
        frame = score_pairs(scorer, self.rows, self.place, self.label, on_items)
        keep(frame, self.settings, scorer.describe("joint"), self.place)


def score_pairs(
    scorer: Scorer,
    rows: Sequence[PairRow],
    place: Place,
    label: str,
    on_items: OnItems = lambda done, total: None,
) -> pd.DataFrame:
    """Score all pairs, going on from finished packs; a row a pair in the order of ``rows``, natural logs.

    A pair that the model has too few positions for is a ``UserError``: nothing is cut off.
    """
    plan = scorer.plan(requests_of(rows), "joint")
    for number, reason in plan.unscorable.items():
        raise UserError(
            f"{rows[number].uid}: pair {rows[number].number} cannot be scored by {label}: {reason}"
        )
    packs = Packs(place.packs, label, scorer, plan)
    scores: dict[int, RequestScore] = {}
    for stored in packs.stored():
        scores |= stored
    on_items(len(scores), len(rows))
    for fresh in packs.fresh():
        scores |= fresh
        on_items(len(scores), len(rows))
    return frame_of(rows, scores)


def frame_of(rows: Sequence[PairRow], scores: Mapping[int, RequestScore]) -> pd.DataFrame:
    """The scores of all pairs as they are kept; ``scores`` by the pairs' numbers in ``rows``."""
    records = []
    for number, row in enumerate(rows):
        good, bad = scores[number].candidates
        texts = (row.uid, row.phenomenon, row.number, row.good, row.bad)
        records.append(
            (*texts, good.token_ids, bad.token_ids, good.token_logprobs, bad.token_logprobs)
        )
    return pd.DataFrame(records, columns=_SCHEMA.names)


def keep(
    frame: pd.DataFrame, settings: Mapping[str, Any], made: ScorerDescription, place: Place
) -> None:
    """Write the scores, then what made them."""
    buffer = io.BytesIO()
    table = pa.table(
        [
            pa.array(frame[name].tolist(), kind.type)
            for name, kind in zip(_SCHEMA.names, _SCHEMA, strict=True)
        ],
        schema=_SCHEMA,
    )
    pq.write_table(table, buffer)
    write_bytes(place.scores, buffer.getvalue())
    record = record_of(
        made,
        "zhoblimp",
        rows=len(frame),
        data=settings["pairs_sha256"],
        pool=2,
        ties="wrong",
        scores_sha256=hashlib.sha256(buffer.getvalue()).hexdigest(),
        settings=dict(settings),
    )
    write_run(place.run, record)


def made_with(place: Place) -> str:
    """Identity of the tokenizer of kept scores; "" where an older record does not say."""
    return str(_read_record(place).get("tokenizer", ""))


def signature(place: Place) -> str:
    """What made the kept scores, in one line."""
    return str(_read_record(place).get("signature", ""))


def _read_record(place: Place) -> dict[str, Any]:
    """The run record's fields; older records had a layout of their own."""
    record = dict(parse_json(place.run.read_bytes(), place.run.name))
    if "made_by" in record:
        return {**record["made_by"], **record}
    return {**record, "settings": record["extras"]["settings"]}


def kept(settings: Mapping[str, Any], place: Place) -> pd.DataFrame | None:
    """The scores of an earlier run with exactly these settings, or None."""
    try:
        record = _read_record(place)
        data = place.scores.read_bytes()
    except (OSError, KeyError, ValueError, TypeError):
        return None
    if (
        record.get("settings") != dict(settings)
        or record.get("scores_sha256") != hashlib.sha256(data).hexdigest()
    ):
        return None
    return pd.DataFrame(
        pq.read_table(io.BytesIO(data), schema=_SCHEMA).to_pylist(), columns=_SCHEMA.names
    )
