"""Outcomes: what each item came to under each condition. All that statistics needs to know of an experiment.

One table, ``outcomes.parquet`` in the folder of a run; one row per item and condition:

========================  =========================================================================
``part``                  what is never pooled: a language, a target and size ("" = one part)
``stratum``               fixed by the benchmark: a relation, a paradigm ("" = one stratum)
``item``                  what was asked: a fact, a pair, a question; the same under every condition
``cluster_1, cluster_2``  what items share: object and subject, holiday and country ("" = unused)
``condition``             how it was asked or scored: a verbalisation, a linking function, a model
``rank``                  of the right candidate, 1 is best; null where it has none
``n_candidates``          candidates in all; null where unknown
further columns           numbers that the measures name
========================  =========================================================================

Published rank dumps are read into the same table (``fluent_mlama/reporting/outcomes.py``).
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fluent_mlama.console import UserError
from fluent_mlama.files import parse_json, write_bytes

FILE = "outcomes.parquet"
TEXTS = ("part", "stratum", "item", "cluster_1", "cluster_2", "condition")
COLUMNS = (*TEXTS, "rank", "n_candidates")
_KEY = b"outcomes"
SCALES = ("share", "rank", "number")


@dataclass(frozen=True, slots=True)
class Measure:
    """A number per row: ``column``, or with ``cutoff`` whether the column is at most that (no rank: it is not).

    scale: share (from 0 to 1), rank (from 1) or number.
    """

    name: str
    column: str = "rank"
    scale: str = "share"
    larger_is_better: bool = True
    cutoff: int | None = None

    def values(self, rows: pd.DataFrame) -> NDArray[np.float64]:
        """(n,) values of these rows."""
        column = rows[self.column].to_numpy(dtype=float)
        return column if self.cutoff is None else (column <= self.cutoff).astype(float)


@dataclass(frozen=True)
class Outcomes:
    """One run's outcomes. clusters: what the cluster columns hold, one or two names. stratum: what a stratum is called."""

    experiment: str
    rows: pd.DataFrame
    measures: tuple[Measure, ...]
    clusters: tuple[str, ...]
    stratum: str
    signature: str

    @property
    def conditions(self) -> list[str]:
        """In order of appearance."""
        return list(dict.fromkeys(self.rows["condition"]))


def write_outcomes(folder: Path, outcomes: Outcomes) -> Path:
    """Write the table and what it means; the same outcomes give the same bytes."""
    _check(outcomes, str(folder / FILE))
    meaning = asdict(outcomes) | {"measures": [asdict(one) for one in outcomes.measures]}
    del meaning["rows"]
    table = pa.Table.from_pandas(outcomes.rows, preserve_index=False)
    table = table.replace_schema_metadata({_KEY: json.dumps(meaning, ensure_ascii=False)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, write_page_checksum=True)
    write_bytes(folder / FILE, buffer.getvalue())
    return folder / FILE


def read_outcomes(path: Path) -> Outcomes:
    """The outcomes of a folder or file; ``UserError`` where it cannot be read as such."""
    path = path / FILE if path.is_dir() else path
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        meaning = dict(parse_json((table.schema.metadata or {})[_KEY], path.name))
        measures = tuple(Measure(**one) for one in meaning.pop("measures"))
        clusters = tuple(meaning.pop("clusters"))
        found = Outcomes(rows=table.to_pandas(), measures=measures, clusters=clusters, **meaning)
    except FileNotFoundError:
        raise UserError(f"no outcomes {path}; run the experiment's own command first") from None
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
        raise UserError(
            f"{path} cannot be read as outcomes; run the command that made it again"
        ) from None
    _check(found, str(path))
    return found


def _check(outcomes: Outcomes, where: str) -> None:
    """``UserError`` for a table that statistics would misread."""
    rows = outcomes.rows
    needed = [*COLUMNS, *(measure.column for measure in outcomes.measures)]
    lacking = [name for name in needed if name not in rows]
    if lacking:
        raise UserError(f"{where} has no column {lacking[0]}; make the outcomes again")
    if rows.empty or not outcomes.measures or not 1 <= len(outcomes.clusters) <= 2:
        raise UserError(f"{where} holds no outcomes to measure; make the outcomes again")
    double = rows.duplicated(["part", "item", "condition"])
    if double.any():
        row = rows[double].iloc[0]
        raise UserError(
            f"{where}: item {row['item']} is there twice under {row['condition']}; make the outcomes again"
        )


def outcome_rows(rows: Sequence[Sequence[object]], extra: Sequence[str] = ()) -> pd.DataFrame:
    """A table of ``COLUMNS`` and the extra ones from tuples, with the right types."""
    table = pd.DataFrame([tuple(row) for row in rows], columns=[*COLUMNS, *extra])
    return table.astype(
        dict.fromkeys(TEXTS, "str") | dict.fromkeys(["rank", "n_candidates", *extra], float)
    )
