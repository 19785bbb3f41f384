"""``python script.py export FORMAT``: benchmark files in, a folder for another tool out. No model, no network."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fluent_mlama.console import ArgumentParser, UserError, note
from fluent_mlama.ranking.arguments import ALL, Arguments
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.ranking.values import (
    benchmarks_named,
    name_list,
    named,
    path_named,
    positive,
)

if TYPE_CHECKING:
    from fluent_mlama.exporting.facts import Facts

FORMATS = {
    "hf": "Hugging Face datasets: Parquet, a config a language, and a dataset card",
    "lm-eval": "lm-evaluation-harness: a multiple-choice task a language and verbalisation",
    "bear": "LM-Pub-Quiz (BEAR): a dataset a language and verbalisation",
}


def main(words: Sequence[str]) -> int:
    """Export, and say what came along and what did not."""
    parsed = _parser().parse_args(list(words))
    from fluent_mlama.exporting.facts import gather_facts  # pandas stays out of --help

    settings = Settings(verbalisations=parsed.verbalisations)
    langs, relations = (() if ALL in names else names for names in (parsed.lang, parsed.relations))
    asked = Arguments(settings, parsed.data, langs, relations, parsed.spec, modes=None)
    facts = gather_facts(
        asked.benchmarks(),
        settings.verbalisations,
        limit=parsed.limit,
        with_aliases=not parsed.no_aliases,
    )
    if parsed.format == "hf":
        from fluent_mlama.exporting.huggingface import export_huggingface

        export_huggingface(facts, parsed.out, licence=parsed.licence)
    elif parsed.licence is not None:
        raise UserError(
            f"--licence goes into the dataset card of `export hf`; `export {parsed.format}` has none"
        )
    elif parsed.format == "lm-eval":
        from fluent_mlama.exporting.harness import export_harness

        export_harness(facts, parsed.out)
    else:
        from fluent_mlama.exporting.bear import export_bear

        export_bear(facts, parsed.out)
    print(_summary(facts, parsed.out))
    return 0


def _summary(facts: Facts, path: Path) -> str:
    from fluent_mlama.exporting.folder import LEFT_OUT

    record = facts.record()
    tasks = facts.by_task()
    for kind in ("rows", "questions"):
        if reasons := record[f"{kind}_left_out"]:
            told = ", ".join(f"{count} × {reason}" for reason, count in reasons.items())
            note(f"{kind} left out: {told} (one by one in {path / LEFT_OUT})")
    if record["rows_with_few_distractors"]:
        note(
            f"{record['rows_with_few_distractors']} facts have fewer than 10 distractors: a hit among them says little"
        )
    return (
        f"{path}: {record['rows_exported']} of {record['rows_in']} rows, {record['questions']} questions "
        f"in {len(tasks)} sets ({len({lang for lang, _ in tasks})} languages)"
    )


def _licence(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]*", value):
        raise argparse.ArgumentTypeError(
            f"{value!r} is no licence's id; give one as the Hub writes it, for example cc-by-4.0 or other"
        )
    return value


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="script.py export",
        description="Carry benchmark files into another tool, with the text and the candidates of protocol `corrected`.",
        epilog="How to install each tool, load the folder and read its numbers: docs/exports.md",
    )
    commands = parser.add_subparsers(dest="format", required=True, metavar="FORMAT")
    for name, what in FORMATS.items():
        command = commands.add_parser(name, help=what, description=what)
        _add_options(command)
    return parser


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data",
        type=benchmarks_named,
        default=Path("fixed_data"),
        metavar="FOLDER|ZIP",
        help="benchmark files (ours: fixed_data/starter)",
    )
    command.add_argument(
        "--out",
        type=path_named,
        required=True,
        metavar="FOLDER",
        help="new folder, or an earlier export to be replaced",
    )
    command.add_argument(
        "-l",
        "--lang",
        type=name_list,
        default=(),
        metavar="CODES",
        help="languages, comma-separated (default: all)",
    )
    command.add_argument(
        "-r",
        "--relations",
        type=name_list,
        default=(),
        metavar="IDS",
        help="relations, comma-separated (default: all)",
    )
    command.add_argument(
        "--spec",
        type=named,
        metavar="NAME",
        help="which file, where a relation has several: 20prompt, nogpt, phrasebook …",
    )
    command.add_argument(
        "--verbalisations",
        type=name_list,
        metavar="NAMES",
        help="carry these only; (default: all the file has)",
    )
    command.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="the first N rows a file; candidates still come from the whole file",
    )
    command.add_argument(
        "--no-aliases", action="store_true", help="aliases are no forms of their entity"
    )
    command.add_argument(
        "--licence",
        type=_licence,
        metavar="ID",
        help="hf: licence for the card (default: ours for the starter, else unknown)",
    )
