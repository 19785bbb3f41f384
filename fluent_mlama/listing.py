"""``list``: what a data source holds, before anything is ranked."""

from __future__ import annotations

from collections.abc import Sequence

from fluent_mlama.console import ArgumentParser, UserError
from fluent_mlama.ranking.values import benchmarks_named


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of the benchmark files of a folder or zip."""
    parser = ArgumentParser(
        prog="fluent-mlama list",
        description="Show the languages, relations and verbalisations of benchmark files.",
        epilog="fluent-mlama list starter; fluent-mlama list fixed_data.zip",
    )
    parser.add_argument(
        "data",
        type=benchmarks_named,
        nargs="?",
        default="starter",
        help="folder or zip of benchmark files (default: %(default)s, which ships)",
    )
    place = parser.parse_args(arguments).data
    from tabulate import tabulate

    from fluent_mlama.languages import is_known, language
    from fluent_mlama.records.benchmark import find_benchmarks, read_benchmark
    from fluent_mlama.records.names import by_number
    from fluent_mlama.records.source import open_source

    source = open_source(place)
    found = find_benchmarks(source)
    if not found:
        raise UserError(f"{place} holds no benchmark files; name a folder or zip that has some")
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
    return 0
