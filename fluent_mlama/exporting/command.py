"""``script.py export FORMAT``: benchmark files in, a folder for another tool out. No model, no
network.

A format is a row of ``FORMATS`` and a function of its own that takes ``Facts`` and a folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fluent_mlama.command_line import Commands
from fluent_mlama.console import note
from fluent_mlama.options import File, Limit
from fluent_mlama.ranking.arguments import AnyDataOptions

if TYPE_CHECKING:
    from fluent_mlama.exporting.facts import Facts

_HERE = "fluent_mlama.exporting.command"
FORMATS = {
    "hf": (
        f"{_HERE}:export_hf",
        "Hugging Face datasets: Parquet, a config per language, and a dataset card",
    ),
    "lm-eval": (
        f"{_HERE}:export_lm_eval",
        "lm-evaluation-harness: a multiple-choice task per language and verbalisation",
    ),
    "bear": (
        f"{_HERE}:export_bear",
        "LM-Pub-Quiz (BEAR): a dataset per language and verbalisation",
    ),
}
ABOUT = """Carry benchmark files into another tool, with the text and the candidates of protocol `corrected`.
How to install each tool, load the folder and read its numbers: docs/exports.md"""

Out = Annotated[File, Parameter(help="new folder, or an earlier export to be replaced")]


@Parameter(name="*", group="which facts")
@dataclass(frozen=True, kw_only=True)
class ExportOptions(AnyDataOptions):
    """Which facts."""

    limit: Annotated[
        Limit | None,
        Parameter(help="the first N rows per file; candidates still come from the whole file"),
    ] = None


def _is_licence(_: object, value: str | None) -> None:
    if value is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]*", value):
        raise ValueError(
            f"{value!r} is not a licence id; give one as the Hub writes it, for example cc-by-4.0"
        )


def main(words: Sequence[str]) -> int:
    """Run one format's command."""
    return Commands("script.py export", ABOUT, FORMATS).run(words)


def export_hf(
    *,
    what: ExportOptions = ExportOptions(),
    out: Out,
    licence: Annotated[str | None, Parameter(validator=_is_licence)] = None,
) -> None:
    """Write Parquet files with one config per language, and a dataset card.

    script.py export hf --data starter --out exports/hf

    Args:
        licence: of the card, as the Hub writes it (default: ours for the starter, else unknown)
    """
    from fluent_mlama.exporting.huggingface import export_huggingface

    _export(what, out, lambda facts: export_huggingface(facts, out, licence=licence))


def export_lm_eval(*, what: ExportOptions = ExportOptions(), out: Out) -> None:
    """Write a multiple-choice task for lm-evaluation-harness per language and verbalisation.

    script.py export lm-eval --data starter --out exports/lm-eval
    """
    from fluent_mlama.exporting.harness import export_harness

    _export(what, out, lambda facts: export_harness(facts, out))


def export_bear(*, what: ExportOptions = ExportOptions(), out: Out) -> None:
    """Write a dataset for LM-Pub-Quiz (BEAR) per language and verbalisation.

    script.py export bear --data starter --out exports/bear
    """
    from fluent_mlama.exporting.bear import export_bear as export

    _export(what, out, lambda facts: export(facts, out))


def _export(what: ExportOptions, out: Path, write: Callable[[Facts], None]) -> None:
    """Gather the facts, write them, and say what came along and what did not."""
    from fluent_mlama.exporting.facts import gather_facts  # pandas stays out of --help

    facts = gather_facts(what.benchmarks(), what.verbalisations, limit=what.limit)
    write(facts)
    print(_summary(facts, out))


def _summary(facts: Facts, path: Path) -> str:
    from fluent_mlama.exporting.facts import LEFT_OUT

    record = facts.record()
    tasks = facts.by_task()
    for kind in ("rows", "questions"):
        if reasons := record[f"{kind}_left_out"]:
            told = ", ".join(f"{count} × {reason}" for reason, count in reasons.items())
            note(f"{kind} left out: {told} (one by one in {path / LEFT_OUT})")
    if record["rows_with_few_distractors"]:
        note(
            f"{record['rows_with_few_distractors']} facts have fewer than 10 distractors: a "
            "hit among them says little"
        )
    return (
        f"{path}: {record['rows_exported']} of {record['rows_in']} rows, {record['questions']} "
        f"questions in {len(tasks)} sets ({len({lang for lang, _ in tasks})} languages)"
    )
