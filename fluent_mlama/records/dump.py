"""Rank dumps, ``{lang}_{relation}_{verbalisations}.tsv``: the benchmark's columns and, per verbalisation, its ranks.

Two kinds, told apart by their columns (both defined in docs/files.md):

``paper``      v_true_ranks {form: rank}, v_top1_correct 0/1, v_prompt_prob (a natural log), v_top3_correct 0/1
``corrected``  v_rank (mid-rank), v_rank_min, v_rank_max, v_all_forms_rank, v_logprob, v_top1_correct, v_top3_correct,
               v_prompt_prob, and n_distractors
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from fluent_mlama.console import UserError, plain_number
from fluent_mlama.records.atomic import write_text
from fluent_mlama.records.benchmark import FILE_NAME, Benchmark, find_verbalisations, split_aliases
from fluent_mlama.records.names import is_file_name
from fluent_mlama.records.source import Source
from fluent_mlama.records.table import format_table, read_table, refuse_nul

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
    """One rank dump. ``table``: index = row number in the benchmark; benchmark columns str, ``aliases`` list[str].

    numbered: False where the file has no row-number column (published narrow ru_P19); the index then only counts
    the dump's own rows, and ``with_row_numbers`` finds the benchmark's.
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
    """The published naming: ``ru_P19_template_gt_chatgpt.tsv``. Characters that some file system refuses are a ``UserError``."""
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
    """Read one dump. A cell that is not what its column holds is a ``UserError`` with file, row and column."""
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
    """Write the dump under its name into ``folder``, columns in the table's order; returns where it lies."""
    path = Path(folder) / dump.name
    write_text(path, format_dump(dump))
    return path


def format_dump(dump: Dump) -> str:
    """The dump's file as text: lists and dicts as literals, numbers in their shortest form, NaN as an empty cell."""
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
    """A dump without row numbers, numbered by its benchmark: its rows must stand there in the same order."""
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
                f"{dump.name}: row {position} has no counterpart in {benchmark.name}, so its row number stays unknown"
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
            f"{where}: row number {doubled.iloc[0]} stands twice in the first column; make the dump anew"
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
            f"{where}: no column {', '.join(map(repr, lacking))}, which a dump of protocol {protocol} has"
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
                f"{where}: row {row}, column {column}: cannot read {shown!r} as {_EXPECTED[parse]}; make the dump anew"
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
    _parse_int: "int64", _parse_count: "int64", _parse_flag: "int64", _parse_rank: "float64", _parse_float: "float64",
}  # fmt: skip

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
