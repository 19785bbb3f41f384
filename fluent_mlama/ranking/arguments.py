"""What ``script.py`` may be asked: which benchmark files, by which protocol. Light imports only."""

# No `from __future__ import annotations`: groups of options are inherited by commands in other modules,
# where cyclopts could not look up the names of these annotations.

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fluent_mlama.console import UserError, note
from fluent_mlama.files import by_number
from fluent_mlama.languages import is_known, language
from fluent_mlama.options import Benchmarks, Langs, LoadOptions, Name, Relations, Verbalisations
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.scoring.executors import Cluster

if TYPE_CHECKING:
    from fluent_mlama.files import Source
    from fluent_mlama.records.benchmark import Benchmark

ALL = "all"
STARTER = "fixed_data/starter"
Found = tuple[str, str, str, str]
"""(language, relation, spec, file name)"""


Modes = Annotated[Literal[2, 3] | None, Parameter(name=["--modes", "-m"], show=False)]


@Parameter(name="*", group="which facts")
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which benchmark files: languages × relations of a data source."""

    langs: Annotated[Langs, Parameter(help="languages, comma-separated, or all")]
    relations: Annotated[Relations, Parameter(help="relations, comma-separated, or all")] = (ALL,)
    data: Benchmarks = Path("fixed_data")
    variant: Name | None = None
    """which file, where a relation has several: 20prompt, nogpt, phrasebook …"""
    modes: Modes = None
    """how many verbalisations the published files have; the columns say so themselves"""
    verbalisations: Verbalisations | None = None

    def __post_init__(self) -> None:
        """A language that nobody knows is a ``UserError`` that names the known ones."""
        for lang in self.langs:
            if lang != ALL and not is_known(lang):
                language(lang)
        for name in ("langs", "relations"):
            if ALL in getattr(self, name):
                object.__setattr__(self, name, ())

    def source(self) -> "Source":
        """The data folder or zip; a folder that holds nothing but one zip (``fixed_data/fixed_data.zip``) is read from it."""
        from fluent_mlama.files import open_source
        from fluent_mlama.records.benchmark import find_benchmarks

        source = open_source(self.data)
        zips = [name for name in source.names() if name.endswith(".zip")]
        if self.data.is_dir() and len(zips) == 1 and not find_benchmarks(source):
            return open_source(self.data / zips[0])
        return source

    def benchmarks(self) -> "list[Benchmark]":
        """The files that were asked for, read. Anything that is not there, or is there twice, is a ``UserError``."""
        from fluent_mlama.records.benchmark import find_benchmarks, read_benchmark

        if not self.data.exists() and str(self.data) == "fixed_data":
            raise UserError(_how_to_get_data(self.data))
        source = self.source()
        found = find_benchmarks(source)
        if not found:
            inner = next(
                (name for name in source.folders() if find_benchmarks(source.folder(name))), None
            )
            raise UserError(
                _how_to_get_data(self.data) if inner is None else _deeper(source.folder(inner))
            )
        chosen = []
        for lang, relation in self._pairs(found):
            files = [
                entry
                for entry in found
                if entry[:2] == (lang, relation) and self.variant in {None, entry[2]}
            ]
            if len(files) > 1 and self.modes is not None:
                files = [
                    entry
                    for entry in files
                    if len(read_benchmark(source, *entry[:3]).verbalisations) == self.modes
                ] or files
            if len(files) > 1:
                raise UserError(
                    f"{len(files)} files for {lang} {relation} in {self.data} ({', '.join(entry[3] for entry in files)}): "
                    f"choose one with --variant {' or --variant '.join(entry[2] for entry in files)}"
                )
            chosen.append(read_benchmark(source, *files[0][:3]))
        self._check_modes(chosen)
        return chosen

    def _pairs(self, found: Sequence[Found]) -> list[tuple[str, str]]:
        """The (language, relation) pairs to rank. A pair that is missing among several languages is said and passed over."""
        there = {entry[:2] for entry in found if self.variant in {None, entry[2]}}
        if not there:
            raise UserError(
                f"no file of variant '{self.variant}' in {self.data}: there are {_listed(entry[2] for entry in found)} (--variant)"
            )
        langs = self.langs or tuple(sorted({lang for lang, _ in there}))
        for lang in langs:
            if not any(lang == other for other, _ in there):
                raise UserError(
                    f"no benchmark file for language '{lang}' in {self.data}: there are {_listed(other for other, _ in there)}"
                )
        relations = self.relations or tuple(
            sorted({relation for lang, relation in there if lang in langs}, key=by_number)
        )
        for relation in relations:
            if not any((lang, relation) in there for lang in langs):
                held = _listed((other for lang, other in there if lang in langs), key=by_number)
                raise UserError(
                    f"no benchmark file for relation '{relation}' of {', '.join(langs)} in {self.data}: there are {held}"
                )
        wanted = [(lang, relation) for lang in langs for relation in relations]
        absent = [
            f"{lang} {relation}" for lang, relation in wanted if (lang, relation) not in there
        ]
        if absent and self.langs and self.relations:
            note(f"not in {self.data}, passed over: {', '.join(absent)}")
        return [pair for pair in wanted if pair in there]

    def _check_modes(self, benchmarks: "Sequence[Benchmark]") -> None:
        for benchmark in benchmarks:
            held = self.verbalisations or benchmark.verbalisations
            if self.modes is not None and self.modes != len(held):
                raise UserError(
                    f"-m {self.modes} contradicts {benchmark.name}, whose columns hold {len(benchmark.verbalisations)} verbalisations "
                    f"({', '.join(benchmark.verbalisations)}): leave -m out, or choose some with --verbalisations"
                )


@Parameter(name="*", group="which facts")
@dataclass(frozen=True, kw_only=True)
class AnyDataOptions(DataOptions):
    """The same, all languages unless some are named."""

    langs: Annotated[Langs, Parameter(help="languages, comma-separated, or all")] = (ALL,)


@Parameter(name="*", group="how")
@dataclass(frozen=True, kw_only=True)
class ProtocolOptions:
    """How candidates are chosen and scored (docs/protocols.md)."""

    protocol: Literal["paper", "corrected"] = "paper"
    """paper: as the published dumps; corrected: a careful experiment"""
    logprob_precision: Literal["float32", "published-fp16"] = "float32"
    """published-fp16: half-precision sums as in the published dumps"""
    accept_unsure: bool = False
    """also rank objects found without evidence from their name (status frame, unsure)"""
    drop_empty_objects: bool = False
    """paper: leave out rows with an empty object cell"""
    forms: Literal["one", "all"] = "one"
    """corrected: all also scores every label and alias, and ranks entities by their best"""
    neutral_prompt: str | None = None
    """score each candidate behind this text as well (for PMI in stats.py rerank)"""


@dataclass(frozen=True)
class Run:
    """Files and settings of one run. cluster: None = score in this process."""

    settings: Settings
    data: DataOptions
    cluster: Cluster | None = None

    def by(self, settings: Settings) -> "Run":
        """The same by another model."""
        return replace(self, settings=settings)


def settings_of(
    model: str,
    protocol: ProtocolOptions,
    data: DataOptions,
    loading: LoadOptions,
    *,
    limit: int | None = None,
    out: Path = Path("stats"),
    overwrite: bool = False,
) -> Settings:
    """The settings of a run from the options of its command."""
    return Settings(
        model=model,
        **vars(loading),
        protocol=protocol.protocol,
        arithmetic=protocol.logprob_precision,
        verbalisations=data.verbalisations,
        limit=limit,
        drop_empty_objects=protocol.drop_empty_objects,
        accept_unsure=protocol.accept_unsure,
        all_forms=protocol.forms == "all",
        neutral_prompt=protocol.neutral_prompt,
        out=out,
        overwrite=overwrite,
    )


def _listed(names: Iterable[str], key: Callable[[str], tuple[int, str]] | None = None) -> str:
    return ", ".join(sorted(set(names), key=key))


def _deeper(inner: "Source") -> str:
    place = inner.where("")
    if ":" in place:  # inside a zip
        return f"the benchmark files lie a folder deeper, in {place}: unpack the zip and name that folder with --data"
    return f"the benchmark files lie a folder deeper: give --data {place}"


def _how_to_get_data(folder: Path) -> str:
    return (
        f"no benchmark files in {folder}: put the published ones there (fixed_data.zip of the Fluent-mLAMA repository, unpacked or not; "
        f"a zip is as good as a folder: --data fixed_data.zip), make your own with datamodifier.py, or take ours with --data {STARTER}"
    )
