"""What a run leaves of one file: the rank dump, the scores of every candidate, and the record of
what made them.

``{lang}_{relation}_{verbalisations}.tsv``: the benchmark's columns and, per verbalisation, its
ranks. Two kinds, told apart by their columns (docs/files.md):

``paper``      v_true_ranks {form: rank}, v_top1_correct 0/1, v_prompt_prob (a natural log),
               v_top3_correct 0/1
``corrected``  v_rank (mean of tied ranks), v_rank_min, v_rank_max, v_all_forms_rank, v_logprob,
               v_top1_correct, v_top3_correct, v_prompt_prob, and n_distractors

``….scores.parquet``: one row per (fact, verbalisation, candidate), everything a rank is made from,
so that other ranks, linking functions, k and tie rules need no model. Log-probabilities are natural
logs in float64. The same table always gives the same bytes: no pandas metadata, fixed encodings.

``….run.json``: what made the dump, complete enough to make it again, and its one-line signature,
which is on every table, graph and report, so that numbers of different making are never compared
unawares (after sacreBLEU, Post 2018).
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fluent_mlama import __version__
from fluent_mlama.console import UserError, plain_number
from fluent_mlama.files import (
    Source,
    format_table,
    is_file_name,
    parse_json,
    read_table,
    refuse_nul,
    replacing,
    write_text,
)
from fluent_mlama.records.benchmark import FILE_NAME, Benchmark, find_verbalisations, split_aliases

ProtocolName = Literal["paper", "corrected"]

PAPER_PARTS = ("true_ranks", "top1_correct", "prompt_prob", "top3_correct")
CORRECTED_PARTS = (
    "rank",
    "rank_min",
    "rank_max",
    "all_forms_rank",
    "logprob",
    "top1_correct",
    "top3_correct",
    "prompt_prob",
)
DISTRACTOR_COUNT = "n_distractors"
INDEX_NAMES = ("", "Column1")
"""Headers of the row-number column: none, or what a spreadsheet made of none (published cs_P19)."""


@dataclass(frozen=True, eq=False)
class Dump:
    """One rank dump. ``table``: index = row number in the benchmark; benchmark columns str,
    ``aliases`` list[str].

    numbered: False where the file has no row-number column (published narrow ru_P19); the index
    then only counts the dump's own rows, and ``with_row_numbers`` finds the benchmark's.
    """

    lang: str
    relation: str
    verbalisations: tuple[str, ...]
    protocol: ProtocolName
    table: pd.DataFrame
    name: str = ""
    numbered: bool = True

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(
                self, "name", dump_name(self.lang, self.relation, self.verbalisations)
            )


def dump_name(lang: str, relation: str, verbalisations: Sequence[str]) -> str:
    """The published naming: ``ru_P19_template_gt_chatgpt.tsv``. Characters that some file system
    refuses are a ``UserError``.
    """
    bad = [
        name for name in verbalisations if not is_file_name(f"x{name}x") or re.search(r"\s", name)
    ]
    if bad:
        raise UserError(f"verbalisation {bad[0]!r} cannot stand in a file name; rename its columns")
    name = f"{lang}_{relation}_{'_'.join(verbalisations)}.tsv"
    if not is_file_name(name):
        raise UserError(
            f"{name!r} cannot be a file's name; language and relation are words such as ru and P19"
        )
    return name


def find_dumps(source: Source) -> list[tuple[str, str, str]]:
    """Files named like dumps: (language, relation, file name), sorted by file name."""
    matches = [
        match for name in source.names() if (match := FILE_NAME.fullmatch(name)) and match["spec"]
    ]
    return [(match["lang"], match["relation"], match[0]) for match in matches]


def read_dump(source: Source, name: str, *, allow_no_rows: bool = False) -> Dump:
    """Read one dump. A cell that is not what its column holds is a ``UserError`` with file, row and
    column.
    """
    where = source.where(name)
    match = FILE_NAME.fullmatch(name)
    if match is None:
        raise UserError(f"{where}: a dump is named {{lang}}_{{relation}}_{{verbalisations}}.tsv")
    data = source.read(name)
    table = read_table(data, where, allow_no_rows=allow_no_rows)
    refuse_nul(data, where)
    numbered = table.columns[0] in INDEX_NAMES
    if numbered:
        table = _number(table, where)
    protocol, verbalisations = _recognise(table.columns, where)
    for column, parse in _parsers(protocol, verbalisations).items():
        if column in table.columns:
            table[column] = _parse_column(table[column], parse, column, where)
    return Dump(match["lang"], match["relation"], verbalisations, protocol, table, name, numbered)


def write_dump(dump: Dump, folder: Path | str) -> Path:
    """Write the dump under its name into ``folder``, columns in the table's order; returns where it
    lies.
    """
    path = Path(folder) / dump.name
    write_text(path, format_dump(dump))
    return path


def format_dump(dump: Dump) -> str:
    """The dump's file as text: lists and dicts as literals, numbers in their shortest form, NaN as
    an empty cell.
    """
    cells = {
        name: [_format(value) for value in dump.table[name].tolist()] for name in dump.table.columns
    }
    table = pd.DataFrame(cells, index=dump.table.index, dtype="object")
    return format_table(table, index=dump.numbered)


def dump_columns(protocol: ProtocolName, verbalisations: Iterable[str]) -> list[str]:
    """The columns that a new dump has behind the benchmark's, in order."""
    parts = PAPER_PARTS if protocol == "paper" else CORRECTED_PARTS
    columns = [f"{verbalisation}_{part}" for verbalisation in verbalisations for part in parts]
    return columns if protocol == "paper" else [*columns, DISTRACTOR_COUNT]


def with_row_numbers(dump: Dump, benchmark: Benchmark) -> Dump:
    """A dump without row numbers, numbered by its benchmark: its rows must stand there in the same
    order.
    """
    if dump.numbered:
        return dump
    shared = [
        name for name in benchmark.table.columns if name in dump.table.columns and name != "aliases"
    ]
    rows = zip(
        benchmark.table.index,
        benchmark.table[shared].itertuples(index=False, name=None),
        strict=True,
    )
    numbers = []
    for position, wanted in enumerate(dump.table[shared].itertuples(index=False, name=None)):
        number = next((number for number, row in rows if row == wanted), None)
        if number is None:
            raise UserError(
                f"{dump.name}: row {position} has no counterpart in {benchmark.name}, so its row "
                "number stays unknown"
            )
        numbers.append(number)
    return Dump(
        dump.lang,
        dump.relation,
        dump.verbalisations,
        dump.protocol,
        dump.table.set_axis(numbers),
        dump.name,
    )


def aliases_of(cell: object) -> list[str]:
    """Aliases from a benchmark's string or from a dump's list alike."""
    return list(cell) if isinstance(cell, list) else split_aliases(str(cell))


def _number(table: pd.DataFrame, where: str) -> pd.DataFrame:
    column = table.columns[0]
    numbers = _parse_column(table[column], _parse_int, column or "row number (first column)", where)
    doubled = numbers[numbers.duplicated()]
    if len(doubled):
        raise UserError(
            f"{where}: row number {doubled.iloc[0]} stands twice in the first column; make the "
            "dump anew"
        )
    table = table.drop(columns=column).set_axis(
        pd.Index(numbers.tolist(), dtype="int64", name=column or None)
    )
    return table


def _recognise(columns: Iterable[str], where: str) -> tuple[ProtocolName, tuple[str, ...]]:
    """Protocol and ranked verbalisations of a dump, from its columns alone, wherever they stand."""
    present = list(columns)
    candidates = find_verbalisations((name for name in present if not _is_result(name)), where)
    ranked = {match[1] for name in present if (match := re.fullmatch(r"(.+)_top1_correct", name))}
    strangers = ranked - set(candidates)
    if strangers or not ranked:
        problem = (
            f"ranks of {', '.join(sorted(strangers))} but no sentences of it"
            if strangers
            else "no column '…_top1_correct'"
        )
        raise UserError(f"{where}: {problem}; this is no rank dump (script.py makes them)")
    protocol: ProtocolName = (
        "paper" if any(name.endswith("_true_ranks") for name in present) else "corrected"
    )
    verbalisations = tuple(name for name in candidates if name in ranked)
    lacking = [name for name in dump_columns(protocol, verbalisations) if name not in present]
    if lacking:
        raise UserError(
            f"{where}: no column {', '.join(map(repr, lacking))}, which a dump of protocol "
            f"{protocol} has"
        )
    return protocol, verbalisations


def _is_result(column: str) -> bool:
    return column.endswith("_prompt_prob") or any(
        column.endswith(f"_{part}") for part in (*PAPER_PARTS, *CORRECTED_PARTS)
    )


def _parsers(
    protocol: ProtocolName, verbalisations: Iterable[str]
) -> dict[str, Callable[[str], Any]]:
    by_part: dict[str, Callable[[str], Any]] = {
        "true_ranks": _parse_ranks,
        "top1_correct": _parse_flag,
        "top3_correct": _parse_flag,
        "rank": _parse_rank,
        "rank_min": _parse_count,
        "rank_max": _parse_count,
    }
    parsers: dict[str, Callable[[str], Any]] = {"aliases": _parse_list}
    for verbalisation in verbalisations:
        for part in PAPER_PARTS if protocol == "paper" else CORRECTED_PARTS:
            parsers[f"{verbalisation}_{part}"] = by_part.get(part, _parse_float)
    return parsers if protocol == "paper" else parsers | {DISTRACTOR_COUNT: _parse_count}


def _parse_column(
    cells: pd.Series[Any], parse: Callable[[str], Any], column: str, where: str
) -> pd.Series[Any]:
    values = []
    for row, cell in cells.items():
        try:
            values.append(parse(cell))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            shown = cell if len(cell) <= 60 else cell[:57] + "…"
            raise UserError(
                f"{where}: row {row}, column {column}: cannot read {shown!r} as "
                f"{_EXPECTED[parse]}; make the dump anew"
            ) from None
    kind = _KINDS.get(parse, "object")
    return pd.Series(values, index=cells.index, dtype=kind)


def _parse_ranks(cell: str) -> dict[str, int]:
    ranks = ast.literal_eval(cell)
    if not isinstance(ranks, dict) or not all(
        type(form) is str and type(rank) is int and rank > 0 for form, rank in ranks.items()
    ):
        raise ValueError(cell)
    if len(set(ranks.values())) < len(ranks):
        raise ValueError(cell)
    return ranks


def _parse_list(cell: str) -> list[str]:
    items = ast.literal_eval(cell)
    if not isinstance(items, list) or not all(type(item) is str for item in items):
        raise ValueError(cell)
    return items


def _parse_flag(cell: str) -> int:
    if cell not in {"0", "1"}:
        raise ValueError(cell)
    return int(cell)


def _parse_int(cell: str) -> int:
    number = plain_number(cell.removeprefix("-"))
    if number is None:
        raise ValueError(cell)
    return -number if cell.startswith("-") else number


def _parse_count(cell: str) -> int:
    if (number := _parse_int(cell)) < 0:
        raise ValueError(cell)
    return number


def _parse_rank(cell: str) -> float:
    if not 1 <= (rank := float(cell)) < math.inf:
        raise ValueError(cell)
    return rank


def _parse_float(cell: str) -> float:
    return float(cell) if cell else float("nan")


_KINDS: dict[Callable[[str], Any], str] = {
    _parse_int: "int64",
    _parse_count: "int64",
    _parse_flag: "int64",
    _parse_rank: "float64",
    _parse_float: "float64",
}

_EXPECTED: dict[Callable[[str], Any], str] = {
    _parse_ranks: "ranks {form: rank}, ranks different and from 1",
    _parse_list: "a list of strings",
    _parse_flag: "a flag 0 or 1",
    _parse_int: "a whole number",
    _parse_count: "a whole number from 0",
    _parse_rank: "a rank from 1",
    _parse_float: "a number",
}


def _format(value: Any) -> str:
    if isinstance(value, dict):
        return repr({str(form): int(rank) for form, rank in value.items()})
    if isinstance(value, list):
        return repr([str(item) for item in value])
    if isinstance(value, float):  # numpy's float64 is a float whose own repr names its type
        return "" if value != value else repr(float(value))
    return str(value)


Role = Literal["correct", "alias", "distractor"]

SCORES_SUFFIX = ".scores.parquet"
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
"""The columns in order. row: row number in the benchmark file. entity: the candidate's obj_uri
where the protocol ranks entities, else "". own: whether the candidate is the form that this
verbalisation itself uses for its entity. prompt_tokens, prompt_logprob: how many tokens the prompt
has and what they score (natural log). tail_tokens: how many of the last token_ids belong to the
tail.
"""

NEUTRAL = pa.field("neutral_logprob", pa.float64())
"""Optional last column: the same continuation after a neutral prompt, for pointwise mutual
information.
"""

COLUMNS: tuple[str, ...] = tuple(SCHEMA.names)


def scores_path(dump: Path | str) -> Path:
    """Where the scores of this dump lie: beside it."""
    return Path(dump).with_suffix(SCORES_SUFFIX)


def write_scores(path: Path | str, frame: pd.DataFrame) -> None:
    """Write a frame with the columns of ``SCHEMA`` (and ``neutral_logprob`` if it is there), rows
    in their order.
    """
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
    """Read a scores file (or some columns of it); ``token_ids`` and ``token_logprobs`` are lists,
    text is str.

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
                    f"{path}: no column {', '.join(map(repr, lacking))}; it has "
                    f"{', '.join(present)}"
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


RUN_SUFFIX = ".run.json"
NOT_AS_WRITTEN = (
    "was cut off, damaged or changed since it was written (not the hash in its run record)"
)
_AWAY = "move it away with the file that it tells of, and make both anew"


@dataclass(frozen=True)
class RunRecord:
    """Everything that made one dump's numbers.

    model, revision ("" where there is none: a folder, a GGUF file), dtype, device: what was loaded
    and where. arithmetic: ``float32`` or ``published-fp16``. path, path_reason: how the engine
    scored, and why that way. tokenisation: ``separate`` or ``joint``. bos: what every prompt begins
    with: "0" nothing, "1" the tokenizer's BOS, else the text of the tokens. tokenizer: identity of
    what token ids stand for ("" in old records). rules: the protocol's edition, with the options
    that change its rows or candidates (``2+no-aliases``). pool_size: the most distractors a row
    gets. sampling: how they are drawn, with the seed. ties: how equal scores are ranked
    (``correct-first``, ``mid-rank``). limit: rows to be scored at most, None = all. data_name,
    data_sha256: the benchmark file. rows_in = rows_scored + the sum of rows_left_out {reason: rows}
    + rows_beyond_limit. dump_sha256: of the dump this record describes; scores_sha256: of its
    scores file ("" where none was kept). self_check: the engine's load-time comparison with plain
    scoring. packages: {name: version}. times: {what: seconds or an ISO 8601 moment}. extras:
    whatever else a protocol or an engine wants kept.
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
        """One line:
        ``model@revision|dtype|arith|path|tok:…|bos:…|protocol|rules:…|pool:…|sample:…|ties:…|``
        ``limit:…|data:sha8|version``.

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
    return Path(dump).with_suffix(RUN_SUFFIX)


def write_run(path: Path | str, record: RunRecord) -> None:
    """Write the record with its signature first; infinities and NaN become strings, since JSON has
    none.

    ``ValueError`` where the rows do not add up: nothing may be dropped without a word.
    """
    told = record.rows_scored + sum(record.rows_left_out.values()) + record.rows_beyond_limit
    if told != record.rows_in:
        raise ValueError(f"{path}: {record.rows_in} rows came in, {told} are told of")
    fields = {"signature": record.signature} | _as_json(dataclasses.asdict(record))
    write_text(path, json.dumps(fields, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def read_run(path: Path | str) -> RunRecord:
    """Read a record. ``UserError``: no such file, not JSON, a field missing, of the wrong kind, or
    unknown.
    """
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
            f"{path}: unknown field {strangers[0]!r}, so another version of this project wrote it; "
            f"use that one, or {_AWAY}"
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
    """Whether the dump is byte for byte the one that the record describes (False: changed by hand
    or by another run).
    """
    return file_sha256(dump) == record.dump_sha256


_FIELD_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "int | None": (int, type(None)),
    "tuple[str, ...]": (list,),
}


def _check_kind(value: Any, annotation: str, where: str) -> None:
    kinds = _FIELD_KINDS.get(annotation, (dict,))
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise UserError(f"{where} holds {value!r}, expected {annotation}; {_AWAY}")


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
