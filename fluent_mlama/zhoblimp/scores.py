"""Token log-probabilities of both sentences of every pair: one pass through the scoring engine, kept on disk.

A pair is one request with an empty prompt and two candidates, so that the engine computes their common beginning once.
Whatever is asked of the numbers later (linking functions, lengths, unigrams) needs no model.

    <out>/<model>/<revision>.scores.parquet   what is kept a pair      .run.json   what made it     .packs/   unfinished
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fluent_mlama.console import UserError, progress_bar
from fluent_mlama.json_text import parse_json
from fluent_mlama.records.atomic import write_bytes, write_text
from fluent_mlama.runner.packs import PackStore, fingerprint, forget_packs
from fluent_mlama.scoring.contract import Candidate, Request, RequestScore, Scorer, score_packs
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


def score_pairs(scorer: Scorer, rows: Sequence[PairRow], place: Place, label: str) -> pd.DataFrame:
    """Score all pairs, going on from finished packs; a row a pair in the order of ``rows``, natural logs.

    A pair that the model has too few positions for is a ``UserError``: nothing is cut off.
    """
    plan = scorer.plan(requests_of(rows), "joint")
    for number, reason in plan.unscorable.items():
        raise UserError(
            f"{rows[number].uid}: pair {rows[number].number} cannot be scored by {label}: {reason}"
        )
    store = PackStore(place.packs, fingerprint(plan, scorer.describe("joint"), "float32"))
    packs = store.finished()
    done = sum(len(plan.packs[number]) for number in packs)
    with progress_bar(total=len(rows), unit="pairs", label=label, initial=done) as bar:
        for number, fresh in score_packs(
            scorer, plan, [number for number in range(len(plan.packs)) if number not in packs]
        ):
            packs[number] = fresh
            store.save(number, fresh)
            bar.update(len(fresh))
    return frame_of(
        rows, {number: score for pack in packs.values() for number, score in pack.items()}
    )


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
    frame: pd.DataFrame, settings: Mapping[str, Any], made_by: Mapping[str, Any], place: Place
) -> None:
    """Write the scores and what made them, then forget the packs."""
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
    record = {
        "settings": dict(settings),
        "made_by": dict(made_by),
        "scores_sha256": hashlib.sha256(buffer.getvalue()).hexdigest(),
    }
    write_text(place.run, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    forget_packs(place.packs)


def made_with(place: Place) -> str:
    """Identity of the tokenizer of kept scores; "" where an older record does not say."""
    return str(parse_json(place.run.read_bytes(), place.run.name)["made_by"].get("tokenizer", ""))


def kept(settings: Mapping[str, Any], place: Place) -> pd.DataFrame | None:
    """The scores of an earlier run with exactly these settings, or None."""
    try:
        record = dict(parse_json(place.run.read_bytes(), place.run.name))
        data = place.scores.read_bytes()
    except (OSError, ValueError, TypeError):
        return None
    if (
        record.get("settings") != dict(settings)
        or record.get("scores_sha256") != hashlib.sha256(data).hexdigest()
    ):
        return None
    forget_packs(place.packs)  # of a run that was killed between its last two steps
    return pd.DataFrame(
        pq.read_table(io.BytesIO(data), schema=_SCHEMA).to_pylist(), columns=_SCHEMA.names
    )
