"""``list``: what a data source holds, before anything is ranked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fluent_mlama.command_line import run_command
from fluent_mlama.console import UserError
from fluent_mlama.data import BENCHMARK, shipped
from fluent_mlama.options import Benchmarks

STARTER = shipped(Path("starter"), BENCHMARK)


def main(words: Sequence[str] | None = None) -> int:
    """The command line of ``list``."""
    return run_command(list_benchmarks, words, program="fluent-mlama list")


def list_benchmarks(
    data: Annotated[Benchmarks, Parameter(show_default=lambda _: "starter")] = STARTER, /
) -> None:
    """Show the languages, relations and verbalisations of benchmark files.

    fluent-mlama list starter
    fluent-mlama list fixed_data.zip
    """
    from tabulate import tabulate

    from fluent_mlama.files import by_number, open_source
    from fluent_mlama.languages import is_known, language
    from fluent_mlama.records.benchmark import find_benchmarks, read_benchmark

    source = open_source(data)
    found = find_benchmarks(source)
    if not found:
        raise UserError(f"{data} holds no benchmark files; name a folder or zip that has some")
    rows = []
    for lang in sorted({entry[0] for entry in found}):
        files = [read_benchmark(source, *entry[:3]) for entry in found if entry[0] == lang]
        relations = sorted({file.relation for file in files}, key=by_number)
        verbalisations = dict.fromkeys(v for file in files for v in file.verbalisations)
        name = language(lang).name if is_known(lang) else ""
        facts = sum(len(file.table) for file in files)
        rows.append((lang, name, facts, " ".join(relations), " ".join(verbalisations)))
    heads = ["code", "language", "facts", "relations", "verbalisations"]
    print(tabulate(rows, heads, disable_numparse=True, maxcolwidths=[None, None, None, 32, 24]))
