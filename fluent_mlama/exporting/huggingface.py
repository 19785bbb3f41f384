"""A folder that ``datasets.load_dataset`` reads: Parquet files, a config a language, and the dataset card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fluent_mlama.data import BENCHMARK
from fluent_mlama.exporting.card import SPLIT, dataset_card
from fluent_mlama.exporting.facts import Fact, Facts
from fluent_mlama.exporting.folder import export_folder
from fluent_mlama.files import open_source
from fluent_mlama.ranking.task import cells_by_row
from fluent_mlama.records.benchmark import Benchmark, split_aliases
from fluent_mlama.records.results import file_sha256

CANDIDATE = {"form": "string", "entity": "string", "role": "string", "own": "bool"}
FEATURES: dict[str, Any] = {
    "language": "string",
    "relation": "string",
    "row": "int64",
    "sub_uri": "string",
    "sub_label": "string",
    "en_sub_label": "string",
    "obj_uri": "string",
    "obj_label": "string",
    "en_obj_label": "string",
    "aliases": ["string"],
    "verbalisation": "string",
    "sentence": "string",
    "prompt": "string",
    "object": "string",
    "tail": "string",
    "status": "string",
    "left_out": "string",
    "asked_prompt": "string",
    "separator": "string",
    "asked_tail": "string",
    "candidates": [CANDIDATE],
}
"""Column -> type. A list holds what is in the brackets; a mapping is a struct."""


def export_huggingface(facts: Facts, path: Path, *, licence: str | None = None) -> None:
    """Write the folder: every row of every file in every verbalisation, those that cannot be asked with the reason.

    licence: for the card; None = the starter's own for its files, unknown for any other.
    """
    asked = {(fact.lang, fact.relation, fact.verbalisation, fact.row): fact for fact in facts.facts}
    rows: dict[str, list[dict[str, Any]]] = {}
    reasons = {(entry.file, entry.row): entry.reason for entry in facts.left_out}
    for benchmark, verbalisations in facts.files.items():
        for row, cells in cells_by_row(benchmark).items():
            for v in verbalisations:
                fact = asked.get((benchmark.lang, benchmark.relation, v, row))
                reason = reasons.get((benchmark.name, row), "" if fact else "beyond --limit")
                rows.setdefault(benchmark.lang, []).append(
                    _row(benchmark, v, row, cells, fact, reason)
                )
    with export_folder(path, facts, "hf") as folder:
        for lang, its_rows in rows.items():
            (folder / lang).mkdir()
            pq.write_table(
                pa.Table.from_pylist(its_rows, schema=schema()), folder / lang / f"{SPLIT}.parquet"
            )
        counts = {lang: len(its_rows) for lang, its_rows in rows.items()}
        card = dataset_card(facts, counts, features(), licence, starter=is_starter(facts.files))
        (folder / "README.md").write_text(card, encoding="utf-8", newline="")


def schema() -> pa.Schema:
    """The Parquet files' columns."""
    return pa.schema([(name, _arrow(kind)) for name, kind in FEATURES.items()])


def is_starter(benchmarks: Iterable[Benchmark]) -> bool:
    """Whether every file is one of the starter's, byte for byte."""
    source = open_source(BENCHMARK) if BENCHMARK.is_dir() else None
    ours = {file_sha256(BENCHMARK / name) for name in source.names()} if source else set()
    return all(benchmark.sha256 in ours for benchmark in benchmarks)


def features() -> list[dict[str, Any]]:
    """The columns in the notation of a card's ``dataset_info``."""
    return [{"name": name} | _noted(kind) for name, kind in FEATURES.items()]


def _noted(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str):
        return {"dtype": kind}
    (item,) = kind
    return {
        "list": item
        if isinstance(item, str)
        else [{"name": name, "dtype": dtype} for name, dtype in item.items()]
    }


def _arrow(kind: Any) -> pa.DataType:
    if isinstance(kind, Mapping):
        return pa.struct([(name, _arrow(inner)) for name, inner in kind.items()])
    if isinstance(kind, list):
        return pa.list_(_arrow(kind[0]))
    return {"string": pa.string(), "int64": pa.int64(), "bool": pa.bool_()}[kind]


def _row(
    benchmark: Benchmark, v: str, row: int, cells: Mapping[str, str], fact: Fact | None, reason: str
) -> dict[str, Any]:
    names = benchmark.columns(v)
    own_cells = ("sub_uri", "sub_label", "en_sub_label", "obj_uri", "obj_label", "en_obj_label")
    return {name: cells.get(name, "") for name in own_cells} | {
        "language": benchmark.lang,
        "relation": benchmark.relation,
        "row": row,
        "aliases": split_aliases(cells["aliases"]),
        "verbalisation": v,
        "sentence": cells[names.sentence],
        "prompt": cells[names.prompt],
        "object": cells[names.object],
        "tail": cells[names.tail] if names.tail else "",
        "status": cells[names.status] if names.status else "",
        "left_out": reason,
        "asked_prompt": fact.prompt if fact else "",
        "separator": fact.separator if fact else "",
        "asked_tail": fact.tail if fact else "",
        "candidates": [
            {"form": c.form, "entity": c.entity, "role": c.role, "own": c.own} for c in fact.choices
        ]
        if fact
        else [],
    }
