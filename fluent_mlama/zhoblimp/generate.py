"""``generate``: paradigm templates in, one JSONL of minimal pairs a paradigm out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fluent_mlama.console import UserError, note, progress, seed_number, whole_number
from fluent_mlama.records.names import is_file_name
from fluent_mlama.zhoblimp.data import write_pairs
from fluent_mlama.zhoblimp.generator import Generated, Generator
from fluent_mlama.zhoblimp.paradigm import Paradigm, check_paradigm, read_paradigms
from fluent_mlama.zhoblimp.phrases import Phrases, read_phrases
from fluent_mlama.zhoblimp.vocabulary import Vocabulary, read_vocabulary

CONTENT = Path(__file__).parent / "content"


def add_template_arguments(parser: argparse.ArgumentParser) -> None:
    """Where templates, words and phrases lie; shared by ``generate``, ``check`` and ``lint``."""
    parser.add_argument(
        "--templates",
        type=Path,
        default=CONTENT / "zh" / "paradigms",
        help="paradigm .json files: a folder, a zip or one file",
    )
    parser.add_argument(
        "--vocabulary",
        type=Path,
        help="words as TSV (default: vocabulary.tsv beside the templates' folder)",
    )
    parser.add_argument(
        "--phrases",
        type=Path,
        help="phrases as JSON (default: phrases.json beside the templates' folder)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``generate``."""
    add_template_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder for UID.jsonl files")
    parser.add_argument(
        "-n", "--pairs", type=whole_number(1), default=300, help="pairs a paradigm (default 300)"
    )
    parser.add_argument(
        "--attempts",
        type=whole_number(1),
        default=100,
        help="draws allowed per wanted pair (default 100)",
    )
    parser.add_argument(
        "--seed",
        type=seed_number,
        default=0,
        help="the same seed gives the same files on any machine (default 0)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace files that exist in --out"
    )


def load_templates(arguments: argparse.Namespace) -> tuple[list[Paradigm], Vocabulary, Phrases]:
    """Read and check everything that templates need, before any work starts."""
    beside = arguments.templates.parent
    vocabulary = read_vocabulary(arguments.vocabulary or beside / "vocabulary.tsv")
    phrases = read_phrases(arguments.phrases or beside / "phrases.json")
    paradigms = read_paradigms(arguments.templates)
    for paradigm in paradigms:
        check_paradigm(paradigm, vocabulary, phrases)
    return paradigms, vocabulary, phrases


def run(arguments: argparse.Namespace) -> int:
    """Generate, write complete paradigms, and say which fell short and what starves them."""
    paradigms, vocabulary, phrases = load_templates(arguments)
    names = output_names(paradigms)
    taken = [name for name in names if (arguments.out / name).exists()]
    if taken and not arguments.overwrite:
        raise UserError(
            f"{arguments.out} already holds {taken[0]} and {len(taken) - 1} more; choose another --out or say --overwrite"
        )
    short = []
    for paradigm, name in progress(
        list(zip(paradigms, names, strict=True)), unit="paradigms", label="generate"
    ):
        generated = Generator(paradigm, vocabulary, phrases, arguments.seed).generate(
            arguments.pairs, arguments.attempts
        )
        if len(generated.pairs) < arguments.pairs:
            short.append(generated)
            continue
        write_pairs(
            arguments.out / name,
            name.removesuffix(".jsonl"),
            paradigm.phenomenon,
            [(pair.good, pair.bad) for pair in generated.pairs],
        )
    for generated in short:
        note(starving(generated, arguments.pairs))
    print(
        f"{len(paradigms) - len(short)} paradigms of {arguments.pairs} pairs in {arguments.out}; {len(short)} fell short, not written"
    )
    return 1 if short else 0


def output_names(paradigms: Sequence[Paradigm]) -> list[str]:
    """One file a paradigm, named by uid; where several templates share a uid, by uid and user."""
    uids = [paradigm.uid for paradigm in paradigms]
    names = [
        f"{one.uid}.jsonl" if uids.count(one.uid) == 1 else f"{one.uid}_{one.user}.jsonl"
        for one in paradigms
    ]
    for one, name in zip(paradigms, names, strict=True):
        if not is_file_name(name):
            raise UserError(
                f"{one.where}: {name!r} cannot be a file's name; use letters, digits, hyphens and underscores in it"
            )
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled:
        first, second = [
            one for one, name in zip(paradigms, names, strict=True) if name == doubled
        ][:2]
        raise UserError(
            f"{second.where}: UID '{second.uid}' (user '{second.user}') also stands in {first.where}; rename one of them"
        )
    return names


def starving(generated: Generated, wanted: int) -> str:
    """One line on a paradigm that fell short: how far it came and the reasons, most frequent first."""
    reasons = "; ".join(
        f"{reason} ({count})" for reason, count in generated.rejected.most_common(3)
    )
    return f"{generated.paradigm.where}: {len(generated.pairs)} of {wanted} pairs in {generated.attempts} draws. Rejected: {reasons}"
