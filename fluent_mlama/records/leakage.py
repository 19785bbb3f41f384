"""Which benchmark rows a translating model was shown as examples: their translations are copies, not translations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from fluent_mlama.files import Source
from fluent_mlama.records.benchmark import Benchmark, find_benchmarks, name_columns, read_benchmark
from fluent_mlama.records.few_shot import FewShot, few_shot_name, read_few_shot
from fluent_mlama.records.results import dump_name, read_dump, with_row_numbers


@dataclass(frozen=True)
class Leakage:
    """The audit of one benchmark file. All rows are row numbers in it.

    rows: those that are shots. kept: those of them that are ranked. verbatim: those whose stored translation
    is the shot's. strangers: how many shots match no row.
    """

    lang: str
    relation: str
    shots: int
    rows: tuple[int, ...]
    kept: tuple[int, ...]
    verbatim: tuple[int, ...]
    strangers: int


def find_leakage(
    benchmark: Benchmark,
    few_shot: FewShot,
    kept: Iterable[int] | None = None,
    verbalisation: str = "chatgpt",
) -> Leakage:
    """Match shots and rows by English sentence, subject label and object label, white space at the ends aside.

    kept: row numbers that are ranked (a dump's index); None = all rows.
    """
    table = benchmark.table
    english = table["en_template"] if "en_template" in table else pd.Series("", index=table.index)
    rows_of: dict[tuple[str, ...], list[int]] = {}
    for row, *key in zip(table.index, english, table["sub_label"], table["obj_label"], strict=True):
        rows_of.setdefault(_key(*key), []).append(row)
    column = name_columns(verbalisation).sentence
    translations = table[column].to_dict() if column in table else {}
    rows: set[int] = set()
    verbatim: set[int] = set()
    strangers = 0
    for shot in few_shot.shots:
        found = rows_of.get(_key(shot.source, shot.subject, shot.object), [])
        strangers += not found
        rows.update(found)
        verbatim.update(
            row
            for row in found
            if str(translations.get(row, "")).strip() == shot.translation.strip()
        )
    ranked = rows if kept is None else rows & set(kept)
    return Leakage(
        lang=benchmark.lang,
        relation=benchmark.relation,
        shots=len(few_shot.shots),
        rows=tuple(sorted(rows)),
        kept=tuple(sorted(ranked)),
        verbatim=tuple(sorted(verbatim)),
        strangers=strangers,
    )


def audit_leakage(
    benchmarks: Source, few_shots: Source, dumps: Source | None = None
) -> list[Leakage]:
    """The audit of every benchmark file that has a few-shot file; ``dumps`` says which rows are ranked."""
    prompt_names = set(few_shots.names())
    dump_names = set(dumps.names()) if dumps else set()
    audits = []
    for lang, relation, spec, _ in find_benchmarks(benchmarks):
        if few_shot_name(lang, relation) not in prompt_names:
            continue
        benchmark = read_benchmark(benchmarks, lang, relation, spec)
        kept = None
        name = dump_name(lang, relation, benchmark.verbalisations)
        if dumps and name in dump_names:
            kept = with_row_numbers(read_dump(dumps, name), benchmark).table.index
        audits.append(find_leakage(benchmark, read_few_shot(few_shots, lang, relation), kept))
    return audits


def _key(*parts: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in parts)
