"""What was asked and answered: one Parquet file a (model, method, templates, language, relation),
with its run.json.

<out>/<model>/<method>/<templates>/<lang>/<relation>.parquet, .run.json, .packs/ (while unfinished)
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

from fluent_mlama.console import UserError, note
from fluent_mlama.files import as_file_name, is_file_name, write_bytes
from fluent_mlama.outcomes import Measure, Outcomes, outcome_rows
from fluent_mlama.records.results import (
    NOT_AS_WRITTEN,
    RunRecord,
    file_sha256,
    read_run,
    run_path,
    write_run,
)

METHODS = ("tyq", "untyq", "causal", "causal-sentence")
USUAL_TEMPLATES = "mlama"
SCHEMA = pa.schema(
    [
        ("lineid", pa.int32()),
        ("sub_uri", pa.string()),  # "" where the data has none
        ("obj_uri", pa.string()),
        ("sub_label", pa.string()),
        ("gold", pa.string()),
        ("prediction", pa.string()),
        ("score", pa.float64()),  # of the prediction: mean natural-log probability of its pieces
        ("rank", pa.int32()),  # of the gold label, 1 = best; null where it did not compete
        ("correct", pa.bool_()),
        ("gold_score", pa.float64()),
        ("gold_probability", pa.float64()),  # e to gold_score: the geometric mean over its pieces
        ("gold_pieces", pa.int32()),
        ("tied", pa.int32()),  # candidates that share the best score with the prediction
        # ok, added (it was not among the candidates), unknown, too-long, no-pieces
        ("gold_status", pa.string()),
        ("top", pa.list_(pa.string())),
        ("top_scores", pa.list_(pa.float64())),
    ]
)


@dataclass(frozen=True)
class Place:
    """Where the results of one model, method and template set lie."""

    out: Path
    model: str
    method: str
    templates: str = USUAL_TEMPLATES

    @property
    def folder(self) -> Path:
        """The folder that holds the languages."""
        return self.out / file_name(self.model) / self.method / file_name(self.templates)

    def file(self, lang: str, relation: str) -> Path:
        """The Parquet file of one relation; ``UserError`` where its name, taken from the data, is
        no file's name here.
        """
        if not is_file_name(lang) or not is_file_name(relation):
            raise UserError(
                f"language {lang!r}, relation {relation!r} cannot name a result file; rename them "
                "in the data"
            )
        return self.folder / lang / f"{relation}.parquet"


@dataclass(frozen=True)
class Results:
    """All read results of one place. frames: lang -> relation -> table with ``SCHEMA``'s columns,
    by lineid.
    """

    place: Place
    frames: Mapping[str, Mapping[str, pd.DataFrame]]
    signatures: tuple[str, ...] = ()
    candidates: Mapping[tuple[str, str], int] | None = None

    @property
    def languages(self) -> list[str]:
        """Languages with at least one relation."""
        return list(self.frames)


def file_name(word: str) -> str:
    """A model's or template set's name as a folder name."""
    local = Path(word).expanduser()
    return as_file_name(local.resolve().name if local.is_dir() else word)


def write_result(path: Path, frame: pd.DataFrame, record: Mapping[str, Any]) -> RunRecord:
    """Write table and record (the table first: a record without its table is never believed)."""
    columns = [
        pa.array(frame[name].astype(object).where(frame[name].notna(), None).tolist(), kind.type)
        for name, kind in _kinds()
    ]
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, schema=SCHEMA), buffer)
    write_bytes(path, buffer.getvalue())
    made = RunRecord(**record, dump_sha256=hashlib.sha256(buffer.getvalue()).hexdigest())
    write_run(run_path(path), made)
    return made


def _kinds() -> list[tuple[str, Any]]:
    return list(zip(SCHEMA.names, SCHEMA, strict=True))


def read_result(path: Path) -> tuple[pd.DataFrame, RunRecord]:
    """Table (index: lineid) and record. ``UserError``: missing, damaged, or the two do not belong
    together.
    """
    record = read_run(run_path(path))
    if not path.is_file():
        raise UserError(
            f"no results {path} for the record beside it; delete the record and query again"
        )
    if file_sha256(path) != record.dump_sha256:
        raise UserError(
            f"{path} is not the table that its run.json tells of; delete both and query again"
        )
    try:
        frame = pq.read_table(path, schema=SCHEMA).to_pandas()
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise UserError(
            f"{path} cannot be read as results ({error}); delete it and query again"
        ) from None
    return frame.set_index("lineid", drop=False).rename_axis(None), record


def state_of(path: Path, settings: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether this very question is answered already (same model, data, candidates, options); if
    not, why an answer there is none.
    """
    if not path.is_file() or not run_path(path).is_file():
        return False, ""
    record = read_run(run_path(path))
    was = record.extras.get("settings", {})
    other = next((name for name in settings if was.get(name) != settings[name]), "")
    if other:
        return False, f"was made with another {other} ({was.get(other)!r}, now {settings[other]!r})"
    return (True, "") if file_sha256(path) == record.dump_sha256 else (False, NOT_AS_WRITTEN)


def read_results(
    place: Place, languages: Sequence[str] | None = None, relations: Sequence[str] | None = None
) -> Results:
    """Results of a place; ``UserError`` where there are none, or none of a language that was asked
    for.
    """
    if not place.folder.is_dir():
        raise UserError(
            f"no results in {place.folder}; run: fluent-mlama mlama query --model {place.model} "
            f"--method {place.method}"
        )
    present = sorted(folder.name for folder in place.folder.iterdir() if folder.is_dir())
    frames: dict[str, dict[str, pd.DataFrame]] = {}
    signatures = set()
    candidates = {}
    for lang in languages or present:
        files = (
            sorted(
                (place.folder / lang).glob("*.parquet"),
                key=lambda path: (len(path.stem), path.stem),
            )
            if lang in present
            else []
        )
        for path in files:
            if relations and path.stem not in relations:
                continue
            frame, record = read_result(path)
            frames.setdefault(lang, {})[path.stem] = frame
            signatures.add(without_data(record.signature))
            if not place.method.startswith(
                "untyq"
            ):  # untyped answers are chosen from the whole vocabulary
                candidates[lang, path.stem] = record.pool_size
        if languages and lang not in frames:
            raise UserError(
                f"{place.folder} has no results for language {lang}; query it first (there are: "
                f"{', '.join(present)})"
            )
    if not frames:
        raise UserError(f"no results in {place.folder}; run query first")
    if len(signatures) > 1:
        note(
            f"{place.folder} holds answers of {len(signatures)} different settings, counted "
            f"together: {' '.join(sorted(signatures))}"
        )
    return Results(place, frames, tuple(sorted(signatures)), candidates)


def without_data(signature: str) -> str:
    """The parts of a signature that do not differ from file to file."""
    return "|".join(
        part for part in signature.split("|") if not part.startswith(("data:", "pool:", "sample:"))
    )


P1 = Measure("P@1", cutoff=1)


def outcomes_of(results: Results) -> Outcomes:
    """Every answered fact; a gold label that did not compete has no rank and counts as wrong."""
    place = results.place
    condition = f"{place.method}, {place.templates}"
    rows = []
    for lang, relations in results.frames.items():
        for relation, frame in relations.items():
            candidates = (results.candidates or {}).get((lang, relation))
            for row in frame.itertuples(index=False):
                item = f"{relation}/{row.lineid}"
                obj, sub = row.obj_uri or row.gold, row.sub_uri or row.sub_label
                rank = 1 if row.correct else row.rank
                rows.append((lang, relation, item, obj, sub, condition, rank, candidates))
    return Outcomes(
        f"mLAMA, {place.method}",
        outcome_rows(rows),
        (P1,),
        ("object", "subject"),
        "relation",
        " / ".join(results.signatures),
    )
