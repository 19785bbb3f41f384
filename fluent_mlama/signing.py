"""The run record of a sibling paper's numbers, with the one-line signature that rank dumps have."""

from __future__ import annotations

from typing import Any

from fluent_mlama.records.results import RunRecord
from fluent_mlama.scoring.contract import ScorerDescription


def record_of(
    made: ScorerDescription,
    protocol: str,
    *,
    rows: int,
    data: str,
    pool: int,
    ties: str,
    data_name: str = "",
    scores_sha256: str = "",
    settings: dict[str, Any] | None = None,
) -> RunRecord:
    """What made these scores.

    data: sha256 of what was asked. pool: alternatives of a question, at most. ties: how equal
    scores count. settings: as asked for; a run with the same ones is not made again.
    """
    return RunRecord(
        lang="",
        relation="",
        verbalisations=(),
        model=made.model,
        revision=made.revision,
        dtype=made.dtype,
        device=made.device,
        arithmetic="float32",
        path=made.path,
        path_reason=made.path_reason,
        tokenisation="joint",
        bos=made.bos,
        protocol=protocol,
        pool_size=pool,
        ties=ties,
        limit=None,
        data_name=data_name,
        data_sha256=data,
        rows_in=rows,
        rows_scored=rows,
        scores_sha256=scores_sha256,
        self_check=dict(made.self_check),
        packages=dict(made.versions),
        tokenizer=made.tokenizer,
        extras={} if settings is None else {"settings": settings},
    )
