"""``generate``: paradigm templates in, one JSONL of minimal pairs a paradigm out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fluent_mlama.console import UserError, note, progress
from fluent_mlama.options import Count, File, Seed
from fluent_mlama.records.names import is_file_name
from fluent_mlama.zhoblimp.data import write_pairs
from fluent_mlama.zhoblimp.generator import Generated, Generator
from fluent_mlama.zhoblimp.paradigm import Paradigm, check_paradigm, read_paradigms
from fluent_mlama.zhoblimp.phrases import Phrases, read_phrases
from fluent_mlama.zhoblimp.vocabulary import Vocabulary, read_vocabulary

CONTENT = Path(__file__).parent / "content"


@Parameter(name="*", group="templates")
@dataclass(frozen=True, kw_only=True)
class TemplateOptions:
    """Where templates, words and phrases are; shared by ``generate``, ``check`` and ``lint``."""

    templates: File = CONTENT / "zh" / "paradigms"
    """paradigm .json files: a folder, a zip or one file"""
    vocabulary: File | None = None
    """words as TSV (default: vocabulary.tsv beside the templates' folder)"""
    phrases: File | None = None
    """phrases as JSON (default: phrases.json beside the templates' folder)"""

    def load(self) -> tuple[list[Paradigm], Vocabulary, Phrases]:
        """Everything that templates need, read and checked before any work starts."""
        beside = self.templates.parent
        vocabulary = read_vocabulary(self.vocabulary or beside / "vocabulary.tsv")
        phrases = read_phrases(self.phrases or beside / "phrases.json")
        paradigms = read_paradigms(self.templates)
        for paradigm in paradigms:
            check_paradigm(paradigm, vocabulary, phrases)
        return paradigms, vocabulary, phrases


def generate(
    *,
    source: TemplateOptions = TemplateOptions(),
    out: File,
    pairs: Annotated[Count, Parameter(name=["--pairs", "-n"])] = 300,
    attempts: Count = 100,
    seed: Seed = 0,
    overwrite: bool = False,
) -> int:
    """Make minimal pairs from paradigm templates; status 1 if a paradigm fell short.

        fluent-mlama zhoblimp generate --out pairs

    Args:
        out: folder for UID.jsonl files
        pairs: pairs per paradigm
        attempts: draws allowed per wanted pair
        seed: the same seed gives the same files on any machine
        overwrite: replace files that exist in --out
    """
    paradigms, vocabulary, phrases = source.load()
    names = output_names(paradigms)
    taken = [name for name in names if (out / name).exists()]
    if taken and not overwrite:
        raise UserError(
            f"{out} already holds {taken[0]} and {len(taken) - 1} more; choose another --out or say --overwrite"
        )
    short = []
    for paradigm, name in progress(
        list(zip(paradigms, names, strict=True)), unit="paradigms", label="generate"
    ):
        generated = Generator(paradigm, vocabulary, phrases, seed).generate(pairs, attempts)
        if len(generated.pairs) < pairs:
            short.append(generated)
            continue
        write_pairs(
            out / name,
            name.removesuffix(".jsonl"),
            paradigm.phenomenon,
            [(pair.good, pair.bad) for pair in generated.pairs],
        )
    for generated in short:
        note(starving(generated, pairs))
    print(
        f"{len(paradigms) - len(short)} paradigms of {pairs} pairs in {out}; {len(short)} fell short, not written"
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
