"""Fluency against retrieval: do languages and relations whose sentences became more fluent also
gain more facts?

    python grammeval.py qe --stats stats/starter/paper
    python grammeval.py gender --stats stats/starter/paper
    python grammeval.py similarity --stats stats/starter/paper

What the scores can and cannot say: docs/fluency.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fluent_mlama.command_line import Commands
from fluent_mlama.reporting.options import SHARED, StatsOptions, python_options

if TYPE_CHECKING:
    import pandas as pd

    from fluent_mlama.reporting.loading import DumpFolder

Own = TypeVar("Own")
COMMANDS: dict[str, tuple[str, str]] = {
    "qe": (
        "fluent_mlama.fluency.qe:quality",
        "fluency of every sentence, and its correlation with retrieval (Table 5, Figure 2)",
    ),
    "gender": (
        "fluent_mlama.fluency.gender:gender",
        "verb forms that agree with the subject's gender, and retrieval (Table 6)",
    ),
    "similarity": (
        "fluent_mlama.fluency.similarity:similarity",
        "chrF and TER of each verbalisation against the template",
    ),
}
_COMMANDS = Commands("grammeval.py", __doc__, COMMANDS)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return _COMMANDS.run(words)


class QECheck:
    """Fluency and gender against retrieval, from one folder of dumps that is read once (or the
    ``dumps`` of a ``Statistics``).

    Further options are those that all commands share (``langs``, ``style``, …); every method takes
    them as well, for that call alone, beside those of its command (``back_end``, ``scores``,
    ``gender``, …). Bad input is a ``UserError``.
    """

    def __init__(self, stats_folder: Path | str | DumpFolder = "stats", **options: Any) -> None:
        from fluent_mlama.reporting.loading import open_dumps

        self.dumps = open_dumps(
            Path(stats_folder) if isinstance(stats_folder, str) else stats_folder
        )
        self._options = options

    def quality(self, **options: Any) -> list[Path]:
        """Score every sentence, join to the ranks; Table 5, Figure 2, gains and correlations."""
        from fluent_mlama.fluency.qe import JudgeOptions, write_quality

        return write_quality(self.dumps, *self._split(options, JudgeOptions))

    def gender(self, **options: Any) -> list[Path]:
        """Table 6 and the counts behind it."""
        from fluent_mlama.fluency.gender import GenderOptions, write_gender

        return write_gender(self.dumps, *self._split(options, GenderOptions))

    def gender_counts(self, **options: Any) -> pd.DataFrame:
        """The counts of Table 6, one row per (language, group, verbalisation)."""
        from fluent_mlama.fluency.gender import GenderOptions, count

        return count(self.dumps, *self._split(options, GenderOptions))

    def similarity(self, **options: Any) -> list[Path]:
        """chrF and TER against the template."""
        from fluent_mlama.fluency.similarity import write_similarity

        return write_similarity(
            self.dumps,
            python_options({n: v for n, v in self._options.items() if n in SHARED} | options),
        )

    def _split(self, options: dict[str, Any], own: type[Own]) -> tuple[StatsOptions, Own]:
        """This object's options and the call's: the shared ones, and those of the command."""
        names = {field.name for field in fields(own)}  # type: ignore[arg-type]
        usual = {name: value for name, value in self._options.items() if name in names | SHARED}
        every = usual | options
        shared = {name: value for name, value in every.items() if name in SHARED}
        rest = {name: value for name, value in every.items() if name not in SHARED}
        return python_options(shared), own(**rest)
