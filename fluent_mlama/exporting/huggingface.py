"""A folder that ``datasets.load_dataset`` reads: Parquet files, one config per language, and
the dataset card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from tabulate import tabulate

from fluent_mlama.data import BENCHMARK
from fluent_mlama.exporting.facts import LEFT_OUT, RECORD, Fact, Facts, export_folder
from fluent_mlama.files import open_source
from fluent_mlama.languages import language
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
    """Write the folder: every row of every file in every verbalisation, those that cannot be asked
    with the reason.

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


ALL = "all"
OWN_LICENCE = "cc-by-4.0"
UNKNOWN_LICENCE = "unknown"
SPLIT = "test"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))

_BODY = """
# Fluent-mLAMA: facts in fluent sentences

Factual knowledge of language models, asked in more than one wording of the same fact: a filled
template, as in mLAMA, and whole sentences in good grammar. The right object competes with the other
objects of its relation. The question behind it is that of Semenov and Sennrich, *Measuring the
Effect of Disfluency in Multilingual Knowledge Probing Benchmarks* (EMNLP 2025,
https://arxiv.org/abs/2510.15115).

```python
import datasets
everything = datasets.load_dataset("FOLDER", split="{split}")
one_language = datasets.load_dataset("FOLDER", "{example}", split="{split}")
```

## What is in it

{counts}

One row per fact and verbalisation. `sentence`, `prompt`, `object`, `tail`, `status` and the labels
are the cells of the benchmark file as they are. What a model is asked is in further columns (protocol
`corrected` of Fluent-mLAMA's docs/protocols.md):

| column | what |
|---|---|
| `asked_prompt` | the sentence up to the object, trimmed |
| `separator` | what stands between prompt and object: a blank, or nothing (Chinese) |
| `candidates` | `form`, `entity`, `role`, `own` (the form this verbalisation uses); gold first |
| `asked_tail` | the rest of the sentence with its stop |
| `left_out` | why the row is not asked, "" where it is; such rows have no candidates |

Score `separator + form + asked_tail` behind `asked_prompt`, both tokenised as one string; an entity
scores what its best form scores; ties share the mean of their ranks. R@1 is the share of rows whose
gold entity (`obj_uri`) has rank 1.

## Licence and sources

{licence}

Facts: Wikidata, in the selection of mLAMA (Kassner, Dufter and Schütze, EACL 2021,
https://arxiv.org/abs/2102.00894). The benchmark files that this export was made from, with their
sha256, are in `{record}`; rows that are not asked are listed in `{left_out}`.

## Limits

{few} of {rows} facts have fewer than 10 distractors; a hit among so few says little. {limits}
"""

_STARTER = (
    "The starter benchmark of Fluent-mLAMA. Facts and labels: CC0 1.0, as in Wikidata. "
    "Sentences, templates and forms: CC BY 4.0. "
    "Written for that project and read by one fresh reader per language; no group of native "
    "speakers has rated them."
)
_STARTER_LIMITS = (
    "Facts are famous, about Europe and North America more than about the rest of the world, "
    "and about men more than about women."
)
_UNKNOWN = (
    "Unknown: these are not the starter's files. The published Fluent-mLAMA data carries no "
    "licence; ask its authors before you pass it on."
)


def dataset_card(
    facts: Facts,
    counts: Mapping[str, int],
    features: list[dict[str, Any]],
    licence: str | None,
    starter: bool,
) -> str:
    """README.md of the folder. counts: language -> rows of its Parquet file. features: in the Hub's
    YAML notation.

    licence: as the user says it; None = ours if all files are the starter's, else unknown.
    """
    own, name = (_STARTER, OWN_LICENCE) if starter else (_UNKNOWN, UNKNOWN_LICENCE)
    record = facts.record()
    total = sum(counts.values())
    asked = {lang: sum(fact.lang == lang for fact in facts.facts) for lang in counts}
    table = [(lang, language(lang).name, count, asked[lang]) for lang, count in counts.items()]
    configs = [
        {
            "config_name": ALL,
            "data_files": [{"split": SPLIT, "path": f"*/{SPLIT}.parquet"}],
            "default": True,
        }
    ]
    configs += [
        {"config_name": lang, "data_files": [{"split": SPLIT, "path": f"{lang}/{SPLIT}.parquet"}]}
        for lang in counts
    ]
    header = {
        "pretty_name": "Fluent-mLAMA",
        "license": licence or name,
        "language": list(counts),
        "multilinguality": ["multilingual" if len(counts) > 1 else "monolingual"],
        "task_categories": ["multiple-choice", "question-answering"],
        "tags": ["knowledge-probing", "mlama", "wikidata"],
        "size_categories": [next((name for limit, name in _SIZES if total < limit), "n>1M")],
        "configs": configs,
        "dataset_info": [
            {"config_name": config["config_name"], "features": features} for config in configs
        ],
    }
    body = _BODY.format(
        split=SPLIT,
        example=next(iter(counts)),
        counts=tabulate(
            table, headers=["config", "language", "rows", "of these asked"], tablefmt="github"
        ),
        licence=own if licence is None else f"{licence}, as whoever exported it has said.",
        limits=_STARTER_LIMITS if starter else "",
        record=RECORD,
        left_out=LEFT_OUT,
        few=record["rows_with_few_distractors"],
        rows=record["rows_exported"],
    )
    return (
        f"---\n{yaml.dump(header, Dumper=_Plain, sort_keys=False, allow_unicode=True)}---\n{body}"
    )


class _Plain(yaml.SafeDumper):
    """Writes the features of each config in full, without YAML's back references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
