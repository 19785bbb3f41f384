"""Scores files, ``….scores.parquet``: one row per (fact, verbalisation, candidate), everything a rank is made from.

With it other ranks, linking functions, k and tie rules need no model. Log-probabilities are natural logs in
float64. The same table always gives the same bytes: no pandas metadata, fixed encodings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fluent_mlama.console import UserError
from fluent_mlama.records.atomic import replacing

Role = Literal["correct", "alias", "distractor"]

SUFFIX = ".scores.parquet"
_IDS = pa.list_(pa.int64())
_LOGPROBS = pa.list_(pa.float64())

SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("sub_uri", pa.string(), nullable=False),
        pa.field("obj_uri", pa.string(), nullable=False),
        pa.field("verbalisation", pa.string(), nullable=False),
        pa.field("candidate", pa.string(), nullable=False),
        pa.field("role", pa.string(), nullable=False),
        pa.field("entity", pa.string(), nullable=False),
        pa.field("own", pa.bool_(), nullable=False),
        pa.field("prompt_tokens", pa.int64(), nullable=False),
        pa.field("prompt_logprob", pa.float64(), nullable=False),
        pa.field("token_ids", _IDS, nullable=False),
        pa.field("token_logprobs", _LOGPROBS, nullable=False),
        pa.field("tail_tokens", pa.int64(), nullable=False),
        pa.field("logprob", pa.float64(), nullable=False),
    ]
)
"""The columns in order. row: row number in the benchmark file. entity: the candidate's obj_uri where the protocol ranks
entities, else "". own: whether the candidate is the form that this verbalisation itself uses for its entity.
prompt_tokens, prompt_logprob: how many tokens the prompt has and what they score (natural log). tail_tokens: how many of the last token_ids
belong to the tail."""

NEUTRAL = pa.field("neutral_logprob", pa.float64())
"""Optional last column: the same continuation after a neutral prompt, for pointwise mutual information."""

COLUMNS: tuple[str, ...] = tuple(SCHEMA.names)


def scores_path(dump: Path | str) -> Path:
    """Where the scores of this dump lie: beside it."""
    return Path(dump).with_suffix(SUFFIX)


def write_scores(path: Path | str, frame: pd.DataFrame) -> None:
    """Write a frame with the columns of ``SCHEMA`` (and ``neutral_logprob`` if it is there), rows in their order."""
    schema = SCHEMA.append(NEUTRAL) if NEUTRAL.name in frame.columns else SCHEMA
    lacking = [name for name in schema.names if name not in frame.columns]
    strangers = [str(name) for name in frame.columns if name not in schema.names]
    if lacking or strangers:
        raise ValueError(f"scores frame: lacks {lacking}, has strange {strangers}")
    arrays = [pa.array(_plain(frame[field.name]), type=field.type) for field in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    table.validate(full=True)
    with replacing(path) as temporary:
        pq.write_table(
            table,
            temporary,
            version="2.6",
            compression="zstd",
            compression_level=3,
            use_dictionary=["sub_uri", "obj_uri", "verbalisation", "candidate", "role", "entity"],
            write_statistics=False,
            store_schema=False,
        )


def read_scores(path: Path | str, columns: list[str] | None = None) -> pd.DataFrame:
    """Read a scores file (or some columns of it); ``token_ids`` and ``token_logprobs`` are lists, text is str.

    ``UserError``: no such file, not parquet or cut off, a column that is missing.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"no scores file {path}; rank again to get one")
    try:
        with pq.ParquetFile(path) as file:
            present = file.schema_arrow.names
            lacking = [name for name in columns or COLUMNS if name not in present]
            if lacking:
                raise UserError(
                    f"{path}: no column {', '.join(map(repr, lacking))}; it has {', '.join(present)}"
                )
            table = file.read(columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path} is not a readable scores file ({error}); rank again to make it anew"
        ) from None
    return pd.DataFrame({name: _column(table.column(name)) for name in table.column_names})


def _plain(series: pd.Series[Any]) -> list[Any]:
    return [list(value) if isinstance(value, tuple) else value for value in series.tolist()]


def _column(values: pa.ChunkedArray) -> pd.Series[Any]:
    if pa.types.is_list(values.type):
        return pd.Series(values.to_pylist(), dtype="object")
    if pa.types.is_string(values.type):
        return pd.Series(values.to_pylist(), dtype="str")
    return pd.Series(values.to_numpy(), copy=True)
