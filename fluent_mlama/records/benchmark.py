"""Benchmark files, ``{lang}_{relation}_{spec}.tsv``: one row a fact, one column group a
verbalisation.

Which verbalisations a file compares is read off its columns, never set beside them. The published
names (Fluent-mLAMA, EMNLP 2025) are kept: ``template`` spreads over ``template``,
``template_prompt`` and ``obj_label``; any other verbalisation ``v`` over ``v_translation``,
``v_prompt`` and ``v_infl_object``. New files add ``v_tail`` and ``v_status``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.files import Source, format_table, read_table, refuse_nul, write_text

TEMPLATE = "template"
ALIAS_SEPARATOR = "|||"
ERROR = "ERROR"
"""What the published files write in prompt and object where the object was not found in the
sentence.
"""

WITHOUT_NAME = ("frame", "unsure")
"""Flags of a status cell: the object was found by its place in the sentence, its name gives no or
too little evidence.
"""

REQUIRED = (
    "sub_uri",
    "sub_label",
    "obj_uri",
    "obj_label",
    "template",
    "template_prompt",
    "aliases",
)
RELATION = r"P\d+|place_of_birth|place_of_death|date_of_birth"
FILE_NAME = re.compile(
    rf"(?P<lang>[a-z]{{2,3}}(?:-[A-Za-z]+)?)_(?P<relation>{RELATION})(?:_(?P<spec>.+))?\.tsv"
)


class Columns(NamedTuple):
    """Names of one verbalisation's columns. ``tail`` and ``status`` are None where the file has no
    such column.
    """

    sentence: str
    prompt: str
    object: str
    tail: str | None
    status: str | None


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One (language, relation) file. ``table``: all cells str, RangeIndex = row number in the file.

    spec: what the file name says behind the relation (``20prompt``, ``nogpt``, …; "" where it says
    nothing). sha256: of the file's bytes.
    """

    lang: str
    relation: str
    spec: str
    table: pd.DataFrame
    name: str
    sha256: str

    @property
    def verbalisations(self) -> tuple[str, ...]:
        """``template`` first, then in the order of the columns."""
        return find_verbalisations(self.table.columns, self.name)

    def columns(self, verbalisation: str) -> Columns:
        """Where this verbalisation's sentence, prompt, object, tail and status stand."""
        names = name_columns(verbalisation)
        present = set(self.table.columns)
        return names._replace(
            tail=names.tail if names.tail in present else None,
            status=names.status if names.status in present else None,
        )


def name_columns(verbalisation: str) -> Columns:
    """The column names that a new file gives to this verbalisation, the optional ones included."""
    if verbalisation == TEMPLATE:
        return Columns(
            "template", "template_prompt", "obj_label", "template_tail", "template_status"
        )
    parts = ("translation", "prompt", "infl_object", "tail", "status")
    return Columns(*(f"{verbalisation}_{part}" for part in parts))


def find_verbalisations(columns: Iterable[str], where: str) -> tuple[str, ...]:
    """The verbalisations that these columns hold; a group that lacks one of its three columns is a
    ``UserError``.
    """
    present = list(columns)
    _require(present, REQUIRED, where)
    found = [TEMPLATE]
    for column in present:
        match = re.fullmatch(r"(.+)_(?:translation|prompt|infl_object)", column)
        if match and match[1] not in found:
            _require(present, name_columns(match[1])[:3], where)
            found.append(match[1])
    return tuple(found)


def benchmark_name(lang: str, relation: str, spec: str = "") -> str:
    """The published naming: ``ru_P19_nogpt.tsv``."""
    return f"{lang}_{relation}_{spec}.tsv" if spec else f"{lang}_{relation}.tsv"


def make_benchmark(lang: str, relation: str, spec: str, table: pd.DataFrame) -> Benchmark:
    """A benchmark from a table made here: checked, renumbered, named, with the sha256 that its file
    will have.
    """
    name = benchmark_name(lang, relation, spec)
    if not FILE_NAME.fullmatch(name):
        raise UserError(
            f"'{name}' is not a name for a benchmark file ({{lang}}_{{relation}}_{{spec}}.tsv)"
        )
    table = table.reset_index(drop=True).astype("str")
    find_verbalisations(table.columns, name)
    return Benchmark(
        lang, relation, spec, table, name, _sha256(format_table(table).encode("utf-8"))
    )


def find_benchmarks(source: Source) -> list[tuple[str, str, str, str]]:
    """The benchmark files of a source by name alone: (language, relation, spec, file name), sorted
    by file name.
    """
    matches = [match for name in source.names() if (match := FILE_NAME.fullmatch(name))]
    return [(match["lang"], match["relation"], match["spec"] or "", match[0]) for match in matches]


def read_benchmark(source: Source, lang: str, relation: str, spec: str | None = None) -> Benchmark:
    """Read one (language, relation). Without ``spec`` there must be just one such file."""
    found = [
        entry
        for entry in find_benchmarks(source)
        if entry[:2] == (lang, relation) and spec in {None, entry[2]}
    ]
    if not found:
        raise UserError(
            f"no benchmark file for {lang} {relation}{f' with spec {spec}' if spec else ''} in "
            f"{source.path}"
        )
    if len(found) > 1:
        specs = ", ".join(entry[2] or '""' for entry in found)
        raise UserError(
            f"{len(found)} benchmark files for {lang} {relation} in {source.path}: choose one with "
            f"--spec ({specs})"
        )
    _, _, its_spec, name = found[0]
    data = source.read(name)
    where = source.where(name)
    table = read_table(data, where)
    if not data.endswith((b"\n", b"\r")):
        raise UserError(
            f"{where}: no line end after the last row, so the file seems cut off; get it again, or "
            "add one if it is whole"
        )
    refuse_nul(data, where)
    if any(column.endswith("_top1_correct") for column in table.columns):
        raise UserError(
            f"{where} is a rank dump, not a benchmark file; give the folder of the benchmark "
            "(fixed_data)"
        )
    find_verbalisations(table.columns, where)
    return Benchmark(lang, relation, its_spec, table, name, _sha256(data))


def write_benchmark(benchmark: Benchmark, folder: Path | str) -> Path:
    """Write the benchmark under its name into ``folder``; returns where it lies. A NUL in a cell is
    a ``UserError``.
    """
    path = Path(folder) / benchmark.name
    text = format_table(benchmark.table)
    if "\0" in text:  # what the reader takes for damage is not written either
        raise UserError(
            f"{path}: a cell of line {text.count(chr(10), 0, text.index(chr(0))) + 1} holds a NUL; "
            "take it out of the label"
        )
    write_text(path, text)
    return path


def split_aliases(cell: str) -> list[str]:
    """The aliases of a benchmark cell; an empty cell has none."""
    return cell.split(ALIAS_SEPARATOR) if cell else []


def join_aliases(aliases: Sequence[str]) -> str:
    """Aliases as one benchmark cell. An alias that cannot be told apart afterwards is a
    ``ValueError``.
    """
    cell = ALIAS_SEPARATOR.join(aliases)
    if split_aliases(cell) != list(aliases):
        raise ValueError(f"aliases cannot be joined without loss: {list(aliases)!r}")
    return cell


def is_usable(status: str) -> bool:
    """Whether a status cell says that the verbalisation can be used (``ok``, with or without flags
    behind ``;``).
    """
    return status.split(";", 1)[0] == "ok"


def objection(status: str, *, accept_unsure: bool = False) -> str:
    """Why the object of a status cell is not a correct answer, "" if it is one.

    The reason of the cell itself; else ``frame`` or ``unsure``, which say that the object was found
    without evidence from its name: what stands there may be another object. ``accept_unsure`` takes
    these.
    """
    reason, *flags = status.split(";")
    if reason != "ok":
        return reason or "no status"
    return "" if accept_unsure else next((flag for flag in WITHOUT_NAME if flag in flags), "")


def _require(present: Sequence[str], needed: Iterable[str | None], where: str) -> None:
    lacking = [name for name in needed if name not in present]
    if lacking:
        raise UserError(
            f"{where}: no column {', '.join(map(repr, lacking))}; it has "
            f"{', '.join(map(str, present))}"
        )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
