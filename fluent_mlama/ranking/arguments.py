"""The command line of ``script.py``: what may be asked, and which files that means. Light imports only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fluent_mlama.console import ArgumentParser, UserError, note
from fluent_mlama.languages import is_known, language
from fluent_mlama.ranking.models import MODEL_OPTIONS, add_model_options, choose_models, read_models
from fluent_mlama.ranking.settings import DEFAULT_MODEL, Settings
from fluent_mlama.ranking.values import (
    benchmarks_named,
    name_list,
    named,
    path_named,
    positive,
)
from fluent_mlama.records.names import by_number
from fluent_mlama.scoring.executors import Cluster, add_executor_arguments, cluster_of

if TYPE_CHECKING:
    from fluent_mlama.records.benchmark import Benchmark
    from fluent_mlama.records.source import Source

ALL = "all"
STARTER = "fixed_data/starter"
Found = tuple[str, str, str, str]
"""(language, relation, spec, file name)"""


@dataclass(frozen=True)
class Arguments:
    """What was asked for. subject: "" unless one fact is to be explained. models: settings of each model where several take turns.
    cluster: None = score in this process.
    """

    settings: Settings
    data: Path
    langs: tuple[str, ...]
    relations: tuple[str, ...]
    spec: str | None
    modes: int | None
    subject: str = ""
    object: str = ""
    models: tuple[Settings, ...] = ()
    cluster: Cluster | None = None

    def each(self) -> list[Arguments]:
        """What is asked of each of several models."""
        return [replace(self, settings=settings, models=()) for settings in self.models]

    def source(self) -> Source:
        """The data folder or zip; a folder that holds nothing but one zip (``fixed_data/fixed_data.zip``) is read from it."""
        from fluent_mlama.records.benchmark import find_benchmarks
        from fluent_mlama.records.source import open_source

        source = open_source(self.data)
        zips = [name for name in source.names() if name.endswith(".zip")]
        if self.data.is_dir() and len(zips) == 1 and not find_benchmarks(source):
            return open_source(self.data / zips[0])
        return source

    def benchmarks(self) -> list[Benchmark]:
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
                if entry[:2] == (lang, relation) and self.spec in {None, entry[2]}
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
                    f"choose one with --spec {' or --spec '.join(entry[2] for entry in files)}"
                )
            chosen.append(read_benchmark(source, *files[0][:3]))
        self._check_modes(chosen)
        return chosen

    def _pairs(self, found: Sequence[Found]) -> list[tuple[str, str]]:
        """The (language, relation) pairs to rank. A pair that is missing among several languages is said and passed over."""
        there = {entry[:2] for entry in found if self.spec in {None, entry[2]}}
        if not there:
            raise UserError(
                f"no file of spec '{self.spec}' in {self.data}: there are {_listed(entry[2] for entry in found)} (--spec)"
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

    def _check_modes(self, benchmarks: Sequence[Benchmark]) -> None:
        for benchmark in benchmarks:
            held = self.settings.verbalisations or benchmark.verbalisations
            if self.modes is not None and self.modes != len(held):
                raise UserError(
                    f"-m {self.modes} contradicts {benchmark.name}, whose columns hold {len(benchmark.verbalisations)} verbalisations "
                    f"({', '.join(benchmark.verbalisations)}): leave -m out, or choose some with --verbalisations"
                )


def parse_arguments(words: Sequence[str]) -> Arguments:
    """Parse the command line; every mistake is one line and exit status 2."""
    explaining = list(words[:1]) == ["explain"]
    parser = _parser(explaining)
    parsed = parser.parse_args(list(words[1:] if explaining else words))
    settings = Settings(
        model=parsed.model,
        **{name: getattr(parsed, name) for name in MODEL_OPTIONS},
        protocol=parsed.protocol,
        arithmetic=parsed.arith,
        verbalisations=parsed.verbalisations,
        limit=None if explaining else parsed.limit,
        drop_empty_objects=parsed.drop_empty_objects,
        accept_unsure=parsed.accept_unsure,
        with_aliases=not parsed.no_aliases,
        neutral_prompt=parsed.neutral_prompt,
        out=Path("stats") if explaining else parsed.out,
        overwrite=False if explaining else parsed.overwrite,
    )
    for lang in parsed.lang:
        if lang != ALL and not is_known(lang):
            language(lang)  # raises, naming the known ones
    models = (
        read_models(parsed.models, settings)
        if not explaining and parsed.models
        else choose_models(settings)
    )
    if explaining and models:
        raise UserError(f"--model {parsed.model}: explain asks one model; name one")
    return Arguments(
        settings,
        parsed.data,
        () if ALL in parsed.lang else parsed.lang,
        () if ALL in parsed.relations else parsed.relations,
        parsed.spec,
        parsed.modes,
        parsed.subject if explaining else "",
        parsed.object if explaining else "",
        models,
        None if explaining else cluster_of(parsed),
    )


def _parser(explaining: bool) -> ArgumentParser:
    parser = ArgumentParser(
        prog="script.py explain" if explaining else "script.py",
        description="Print one fact's prompts, tokens, candidates and scores, best first."
        if explaining
        else "Rank facts with a language model: benchmark files in, rank dumps out.",
        epilog=None
        if explaining
        else "One fact, candidate by candidate: script.py explain --help. The benchmark in other tools' formats: script.py export --help",
    )
    what = parser.add_argument_group("what to rank")
    what.add_argument(
        "-l",
        "--lang",
        type=name_list,
        required=True,
        metavar="CODES",
        help="languages, comma-separated, or all",
    )
    what.add_argument(
        "-r",
        "--relations",
        type=name_list,
        default=(ALL,),
        metavar="IDS",
        help="relations, comma-separated, or all (default: all there are)",
    )
    if explaining:
        what.add_argument(
            "--subject", required=True, metavar="QID", help="sub_uri of the fact, for example Q7251"
        )
        what.add_argument(
            "--object",
            default="",
            metavar="QID",
            help="obj_uri, where the subject has several objects",
        )
    what.add_argument(
        "--data",
        type=benchmarks_named,
        default=Path("fixed_data"),
        metavar="FOLDER|ZIP",
        help="benchmark files (default: fixed_data; ours: fixed_data/starter)",
    )
    what.add_argument(
        "--spec",
        metavar="NAME",
        help="which file, where a relation has several: 20prompt, nogpt, phrasebook …",
    )
    what.add_argument(
        "-m",
        "--modes",
        type=int,
        choices=(2, 3),
        help="how many verbalisations the files must have (they say so themselves)",
    )
    what.add_argument(
        "--verbalisations",
        type=name_list,
        metavar="NAMES",
        help="compare these only, comma-separated (default: all the file has)",
    )
    if not explaining:
        what.add_argument(
            "--limit",
            type=positive,
            metavar="N",
            help="score the first N rows only; candidates still come from the whole file",
        )
    how = parser.add_argument_group("how")
    how.add_argument(
        "--protocol",
        choices=("paper", "corrected"),
        default="paper",
        help="see docs/protocols.md (default: paper)",
    )
    how.add_argument(
        "--arith",
        choices=("float32", "published-fp16"),
        default="float32",
        help="published-fp16: half-precision sums as in the published dumps",
    )
    how.add_argument(
        "--accept-unsure",
        action="store_true",
        help="also rank objects found without evidence from their name (status frame, unsure)",
    )
    how.add_argument(
        "--drop-empty-objects",
        action="store_true",
        help="paper: leave out rows with an empty object cell",
    )
    how.add_argument(
        "--no-aliases", action="store_true", help="corrected: aliases are no forms of their entity"
    )
    how.add_argument(
        "--neutral-prompt",
        metavar="TEXT",
        help="score each candidate behind this text as well (for PMI in stats.py rerank)",
    )
    model = parser.add_argument_group("the model")
    which = model.add_mutually_exclusive_group()
    which.add_argument(
        "--model",
        type=named,
        default=DEFAULT_MODEL,
        metavar="ID|FOLDER|GGUF",
        help=f"or smollm2, the embedded one (default: {DEFAULT_MODEL})"
        + (
            ""
            if explaining
            else "; several, comma-separated: one after the other, each into its own folder below --out"
        ),
    )
    if not explaining:
        which.add_argument(
            "--models",
            type=path_named,
            metavar="FILE",
            help="a model a line, with its own options behind it: NAME --revision X --folder Y",
        )
    add_model_options(model)
    if not explaining:
        add_executor_arguments(parser)
        out = parser.add_argument_group("where to")
        out.add_argument(
            "--out",
            type=path_named,
            default=Path("stats"),
            metavar="FOLDER",
            help="rank dumps (default: stats); wide ones go to stats_wide likewise",
        )
        out.add_argument("--overwrite", action="store_true", help="rank anew what is there")
    return parser


def _listed(names: Iterable[str], key: Callable[[str], tuple[int, str]] | None = None) -> str:
    return ", ".join(sorted(set(names), key=key))


def _deeper(inner: Source) -> str:
    place = inner.where("")
    if ":" in place:  # inside a zip
        return f"the benchmark files lie a folder deeper, in {place}: unpack the zip and name that folder with --data"
    return f"the benchmark files lie a folder deeper: give --data {place}"


def _how_to_get_data(folder: Path) -> str:
    return (
        f"no benchmark files in {folder}: put the published ones there (fixed_data.zip of the Fluent-mLAMA repository, unpacked or not; "
        f"a zip is as good as a folder: --data fixed_data.zip), make your own with datamodifier.py, or take ours with --data {STARTER}"
    )
