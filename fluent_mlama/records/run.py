"""``….run.json``: what made a dump, complete enough to make it again, and its one-line signature.

The signature stands on every dump, table, graph and report, so that numbers of different making are never
compared unawares (after sacreBLEU's signature, Post 2018).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fluent_mlama import __version__
from fluent_mlama.console import UserError
from fluent_mlama.json_text import parse_json
from fluent_mlama.records.atomic import write_text

SUFFIX = ".run.json"
NOT_AS_WRITTEN = (
    "was cut off, damaged or changed since it was written (not the hash in its run record)"
)
_AWAY = "move it away with the file that it tells of, and make both anew"


@dataclass(frozen=True)
class RunRecord:
    """Everything that made one dump's numbers.

    model, revision ("" where there is none: a folder, a GGUF file), dtype, device: what was loaded and where.
    arithmetic: ``float32`` or ``published-fp16``. path, path_reason: how the engine scored, and why that way.
    tokenisation: ``separate`` or ``joint``. bos: what every prompt begins with: "0" nothing, "1" the
    tokenizer's BOS, else the text of the tokens. tokenizer: identity of what token ids stand for ("" in old records).
    rules: the protocol's edition, with the options that change its rows or candidates (``2+no-aliases``).
    pool_size: the most distractors a row gets. sampling: how they are drawn, with the seed.
    ties: how equal scores are ranked (``correct-first``, ``mid-rank``).
    limit: rows to be scored at most, None = all.
    data_name, data_sha256: the benchmark file. rows_in = rows_scored + the sum of rows_left_out {reason: rows}
    + rows_beyond_limit.
    dump_sha256: of the dump this record describes; scores_sha256: of its scores file ("" where none was kept).
    self_check: the engine's load-time comparison with plain scoring. packages: {name: version}.
    times: {what: seconds or an ISO 8601 moment}. extras: whatever else a protocol or an engine wants kept.
    """

    lang: str
    relation: str
    verbalisations: tuple[str, ...]
    model: str
    revision: str
    dtype: str
    device: str
    arithmetic: str
    path: str
    path_reason: str
    tokenisation: str
    bos: str
    protocol: str
    pool_size: int
    ties: str
    limit: int | None
    data_name: str
    data_sha256: str
    rows_in: int
    rows_scored: int
    rows_left_out: Mapping[str, int] = field(default_factory=dict)
    rows_beyond_limit: int = 0
    dump_sha256: str = ""
    scores_sha256: str = ""
    self_check: Mapping[str, Any] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, Any] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: str = ""
    rules: str = ""
    sampling: str = ""
    version: str = __version__

    @property
    def signature(self) -> str:
        """One line: ``model@revision|dtype|arith|path|tok:…|bos:…|protocol|rules:…|pool:…|sample:…|ties:…|limit:…|data:sha8|version``.

        A part that a probe has nothing to say about is left out.
        """
        parts = (
            f"{self.model}@{self.revision or 'local'}",
            self.dtype,
            self.arithmetic,
            self.path,
            f"tok:{self.tokenisation}",
            f"bos:{self.bos}",
            self.protocol,
            *([f"rules:{self.rules}"] if self.rules else []),
            f"pool:{self.pool_size}",
            *([f"sample:{self.sampling}"] if self.sampling else []),
            f"ties:{self.ties}",
            f"limit:{'none' if self.limit is None else self.limit}",
            f"data:{self.data_sha256[:8]}",
            f"v{self.version}",
        )
        return "|".join("_".join(part.replace("|", "_").split()) for part in parts)


def run_path(dump: Path | str) -> Path:
    """Where the record of this dump lies: beside it."""
    return Path(dump).with_suffix(SUFFIX)


def write_run(path: Path | str, record: RunRecord) -> None:
    """Write the record with its signature first; infinities and NaN become strings, since JSON has none.

    ``ValueError`` where the rows do not add up: nothing may be dropped without a word.
    """
    told = record.rows_scored + sum(record.rows_left_out.values()) + record.rows_beyond_limit
    if told != record.rows_in:
        raise ValueError(f"{path}: {record.rows_in} rows came in, {told} are told of")
    fields = {"signature": record.signature} | _plain(dataclasses.asdict(record))
    write_text(path, json.dumps(fields, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def read_run(path: Path | str) -> RunRecord:
    """Read a record. ``UserError``: no such file, not JSON, a field missing, of the wrong kind, or unknown."""
    path = Path(path)
    try:
        fields = parse_json(path.read_bytes(), str(path), _AWAY)
    except FileNotFoundError:
        raise UserError(
            f"no run record {path}; the dump beside it cannot be told apart from others"
        ) from None
    if not isinstance(fields, dict):
        raise UserError(f"{path} is not a run record (no JSON object); {_AWAY}")
    fields.pop("signature", None)
    if isinstance(fields.get("bos"), bool):  # as records were written that knew BOS or nothing
        fields["bos"] = str(int(fields["bos"]))
    known = {entry.name: entry for entry in dataclasses.fields(RunRecord)}
    strangers = sorted(set(fields) - set(known))
    if strangers:
        raise UserError(
            f"{path}: unknown field {strangers[0]!r}, so another version of this project wrote it; use that one, or {_AWAY}"
        )
    for name, entry in known.items():
        if name in fields:
            _check_kind(fields[name], str(entry.type), f"{path}: field {name!r}")
        elif entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING:
            raise UserError(f"{path}: no field {name!r}; {_AWAY}")
    return RunRecord(**fields | {"verbalisations": tuple(fields["verbalisations"])})


def file_sha256(path: Path | str) -> str:
    """sha256 of a file's bytes, as hex."""
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def is_as_written(dump: Path | str, record: RunRecord) -> bool:
    """Whether the dump is byte for byte the one that the record describes (False: changed by hand or by another run)."""
    return file_sha256(dump) == record.dump_sha256


_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "int | None": (int, type(None)),
    "tuple[str, ...]": (list,),
}


def _check_kind(value: Any, annotation: str, where: str) -> None:
    kinds = _KINDS.get(annotation, (dict,))
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise UserError(f"{where} holds {value!r}, expected {annotation}; {_AWAY}")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
