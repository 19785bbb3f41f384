"""Few-shot text that a translating model is shown, ``{lang}_{relation}.txt``, in the published
layout.

An instruction, then one block a shot, each line indented by eight spaces, blocks parted by a blank
line::

        <instruction, any number of lines>

        Source sentence: …
        Subject translation: …
        Object translation: …
        Translation: …

The leakage audit finds the benchmark rows that are such examples: their translations are copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.files import Source, write_text
from fluent_mlama.records.benchmark import Benchmark, find_benchmarks, name_columns, read_benchmark
from fluent_mlama.records.results import dump_name, read_dump, with_row_numbers

INDENT = " " * 8
KEYS = ("Source sentence", "Subject translation", "Object translation", "Translation")
_LAST_LINE = f"\n{INDENT}"


@dataclass(frozen=True)
class Shot:
    """One example: an English sentence, its subject and object in the target language, and the
    whole translated.
    """

    source: str
    subject: str
    object: str
    translation: str


@dataclass(frozen=True)
class FewShot:
    """The whole text. instruction: its lines without the indent. ending: what stands behind the
    last shot.
    """

    instruction: str
    shots: tuple[Shot, ...]
    ending: str = _LAST_LINE


def few_shot_name(lang: str, relation: str) -> str:
    """The published naming: ``ru_P19.txt``."""
    return f"{lang}_{relation}.txt"


def read_few_shot(source: Source, lang: str, relation: str) -> FewShot:
    """Read one few-shot file; an empty one (two are published so) has no shots."""
    name = few_shot_name(lang, relation)
    try:
        text = source.read(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{source.where(name)}: not UTF-8 (at byte {error.start}); save it as UTF-8"
        ) from None
    return parse_few_shot(text, source.where(name))


def write_few_shot(folder: Path | str, lang: str, relation: str, few_shot: FewShot) -> Path:
    """Write one few-shot file; returns where it lies."""
    path = Path(folder) / few_shot_name(lang, relation)
    write_text(path, format_few_shot(few_shot))
    return path


def parse_few_shot(text: str, where: str = "few-shot text") -> FewShot:
    """Instruction and shots of a few-shot text. A block that lacks a key, or has a line of no key,
    is a ``UserError`` with its line.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    starts = [number for number, line in enumerate(lines) if _value(line, KEYS[0]) is not None]
    if not starts:
        return FewShot(_instruction(lines), ())
    shots = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        values = [_value(line, key) for key, line in zip(KEYS, lines[start:end], strict=False)]
        rest = lines[start + len(KEYS) : end]
        if None in values or len(values) < len(KEYS) or any(line.strip() for line in rest):
            raise UserError(
                f"{where}: the shot at line {start + 1} is not the four lines {', '.join(KEYS)}"
            )
        shots.append(Shot(*(value or "" for value in values)))
    ending = "".join(f"\n{line}" for line in rest)
    return FewShot(_instruction(lines[: starts[0]]), tuple(shots), ending)


def format_few_shot(few_shot: FewShot) -> str:
    """The text of these shots in the published layout; no value may hold a line end."""
    blocks = (
        ["\n".join(INDENT + line for line in few_shot.instruction.split("\n"))]
        if few_shot.instruction
        else []
    )
    blocks += [_format_shot(shot) for shot in few_shot.shots]
    return f"\n{INDENT}\n".join(blocks) + (few_shot.ending if few_shot.shots else "")


def _format_shot(shot: Shot) -> str:
    values: Sequence[str] = (shot.source, shot.subject, shot.object, shot.translation)
    if any("\n" in value or "\r" in value for value in values):
        raise ValueError(f"a shot's values are one line each: {shot}")
    return "\n".join(f"{INDENT}{key}: {value}" for key, value in zip(KEYS, values, strict=True))


def _value(line: str, key: str) -> str | None:
    text = line.lstrip(" \t")
    return text.removeprefix(f"{key}:").removeprefix(" ") if text.startswith(f"{key}:") else None


def _instruction(lines: Sequence[str]) -> str:
    return "\n".join(line.lstrip(" \t") for line in lines).strip("\n")


@dataclass(frozen=True)
class Leakage:
    """The audit of one benchmark file. All rows are row numbers in it.

    rows: those that are shots. kept: those of them that are ranked. verbatim: those whose stored
    translation is the shot's. strangers: how many shots match no row.
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
    """Match shots and rows by English sentence, subject label and object label, white space at the
    ends aside.

    kept: row numbers that are ranked (a dump's index); None = all rows.
    """
    table = benchmark.table
    english = table["en_template"] if "en_template" in table else pd.Series("", index=table.index)
    rows_of: dict[tuple[str, ...], list[int]] = {}
    for row, *key in zip(table.index, english, table["sub_label"], table["obj_label"], strict=True):
        rows_of.setdefault(_shot_key(*key), []).append(row)
    column = name_columns(verbalisation).sentence
    translations = table[column].to_dict() if column in table else {}
    rows: set[int] = set()
    verbatim: set[int] = set()
    strangers = 0
    for shot in few_shot.shots:
        found = rows_of.get(_shot_key(shot.source, shot.subject, shot.object), [])
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
    """The audit of every benchmark file that has a few-shot file; ``dumps`` says which rows are
    ranked.
    """
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


def _shot_key(*parts: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in parts)
