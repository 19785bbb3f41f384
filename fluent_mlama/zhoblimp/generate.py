"""``generate``: paradigm templates in, one JSONL file of minimal pairs per paradigm out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fluent_mlama.console import UserError, note, progress
from fluent_mlama.files import is_file_name, write_text
from fluent_mlama.options import Count, File, Seed
from fluent_mlama.zhoblimp.data import jsonl_of
from fluent_mlama.zhoblimp.generator import Generated, Generator
from fluent_mlama.zhoblimp.paradigm import (
    Paradigm,
    Phrases,
    check_paradigm,
    read_paradigms,
    read_phrases,
)
from fluent_mlama.zhoblimp.vocabulary import Vocabulary, read_vocabulary

CONTENT = Path(__file__).parent / "content"


@Parameter(name="*", group="the templates")
@dataclass(frozen=True, kw_only=True)
class TemplateOptions:
    """Where templates, words and phrases are; shared by ``generate``, ``check`` and ``lint``."""

    templates: Annotated[File, Parameter(show_default=False)] = CONTENT / "zh" / "paradigms"
    """paradigm .json files: a folder, a zip or one file (default: the Chinese ones that ship)"""
    vocabulary: File | None = None
    """words as TSV (default: vocabulary.tsv beside the templates' folder)"""
    phrases: File | None = None
    """phrases as JSON (default: phrases.json beside the templates' folder)"""

    def load(self) -> tuple[list[Paradigm], Vocabulary, Phrases]:
        """Read and check everything that the templates need, before any work starts."""
        beside = self.templates.parent
        vocabulary = read_vocabulary(self.vocabulary or beside / "vocabulary.tsv")
        phrases = read_phrases(self.phrases or beside / "phrases.json")
        paradigms = read_paradigms(self.templates)
        for paradigm in paradigms:
            check_paradigm(paradigm, vocabulary, phrases)
        return paradigms, vocabulary, phrases


TEMPLATES = TemplateOptions()


def generate(
    *,
    out: Annotated[File, Parameter(help="folder for UID.jsonl files")],
    pairs: Annotated[Count, Parameter(name=["--pairs", "-n"], help="per paradigm")] = 300,
    attempts: Count = 100,
    seed: Seed = 0,
    overwrite: bool = False,
    templates: TemplateOptions = TEMPLATES,
) -> int:
    """Generate minimal pairs from paradigm templates.

        fluent-mlama zhoblimp generate --templates FOLDER/paradigms --out pairs -n 300

    The same seed gives the same files on any machine. A paradigm that falls short is not written.

    Args:
        attempts: draws allowed per wanted pair
        overwrite: replace files that exist in --out
    """
    paradigms, vocabulary, phrases = templates.load()
    names = output_names(paradigms)
    taken = [name for name in names if (out / name).exists()]
    if taken and not overwrite:
        raise UserError(
            f"{out} already holds {taken[0]} and {len(taken) - 1} more; "
            "choose another --out or say --overwrite"
        )
    short = []
    named = list(zip(paradigms, names, strict=True))
    for paradigm, name in progress(named, unit="paradigms", label="generate"):
        generated = Generator(paradigm, vocabulary, phrases, seed).generate(pairs, attempts)
        if len(generated.pairs) < pairs:
            short.append(generated)
            continue
        sentences = [(pair.good, pair.bad) for pair in generated.pairs]
        uid = name.removesuffix(".jsonl")
        write_text(out / name, jsonl_of(uid, paradigm.phenomenon, sentences))
    for generated in short:
        note(starving(generated, pairs))
    print(
        f"{len(paradigms) - len(short)} paradigms of {pairs} pairs in {out}; "
        f"{len(short)} fell short, not written"
    )
    return 1 if short else 0


def output_names(paradigms: Sequence[Paradigm]) -> list[str]:
    """One file per paradigm, named by uid; where several templates share a uid, by uid and user."""
    uids = [paradigm.uid for paradigm in paradigms]
    names = [
        f"{one.uid}.jsonl" if uids.count(one.uid) == 1 else f"{one.uid}_{one.user}.jsonl"
        for one in paradigms
    ]
    for one, name in zip(paradigms, names, strict=True):
        if not is_file_name(name):
            raise UserError(
                f"{one.where}: {name!r} cannot be a file's name; "
                "use letters, digits, hyphens and underscores in it"
            )
    first: dict[str, Paradigm] = {}
    for one, name in zip(paradigms, names, strict=True):
        if name in first:
            raise UserError(
                f"{one.where}: UID '{one.uid}' (user '{one.user}') is also in "
                f"{first[name].where}; rename one of them"
            )
        first[name] = one
    return names


def starving(generated: Generated, wanted: int) -> str:
    """One line on a paradigm that fell short: how far it came, and why, most frequent first."""
    reasons = "; ".join(
        f"{reason} ({count})" for reason, count in generated.rejected.most_common(3)
    )
    return (
        f"{generated.paradigm.where}: {len(generated.pairs)} of {wanted} pairs "
        f"in {generated.attempts} draws. Rejected: {reasons}"
    )
