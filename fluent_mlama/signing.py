"""The one-line signature of a probe's numbers, in the form that rank dumps have."""

from __future__ import annotations

from fluent_mlama.records.run import RunRecord
from fluent_mlama.scoring.contract import ScorerDescription


def signature_of(
    made: ScorerDescription, protocol: str, *, rows: int, data: str, pool: int, ties: str
) -> str:
    """data: sha256 of what was asked. pool: alternatives of a question, at most. ties: how equal scores count."""
    return RunRecord(
        lang="", relation="", verbalisations=(), model=made.model, revision=made.revision, dtype=made.dtype, device=made.device,
        arithmetic="float32", path=made.path, path_reason=made.path_reason, tokenisation="joint", bos=made.bos, protocol=protocol,
        pool_size=pool, ties=ties, limit=None, data_name="", data_sha256=data, rows_in=rows, rows_scored=rows,
    ).signature  # fmt: skip
