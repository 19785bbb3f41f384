"""Fluency against retrieval: do languages and relations whose sentences became more fluent also gain more facts?

    python grammeval.py qe --stats stats/starter/paper
    python grammeval.py gender --stats stats/starter/paper
    python grammeval.py similarity --stats stats/starter/paper

Each command is a module of ``fluent_mlama/fluency/`` with ``add_arguments(parser)`` and ``run(arguments)``. What the scores can and
cannot say stands in docs/fluency.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluent_mlama.commands import Commands
from fluent_mlama.reporting.options import add_shared_arguments

if TYPE_CHECKING:
    import pandas as pd

    from fluent_mlama.reporting.loading import DumpFolder

COMMANDS: dict[str, tuple[str, str]] = {
    "qe": (
        "fluent_mlama.fluency.qe",
        "fluency of every sentence, and its correlation with retrieval (Table 5, Figure 2)",
    ),
    "gender": (
        "fluent_mlama.fluency.gender",
        "verb forms that agree with the subject's gender, and retrieval (Table 6)",
    ),
    "similarity": (
        "fluent_mlama.fluency.similarity",
        "chrF and TER of each verbalisation against the template",
    ),
}
_COMMANDS = Commands("grammeval.py", __doc__, COMMANDS, partial(add_shared_arguments, wide=False))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return _COMMANDS.run(arguments)


class QECheck:
    """Fluency and gender against retrieval, from one folder of dumps that is read once (or the ``dumps`` of a ``Statistics``).

    Options are those of the command line with underscores (``back_end``, ``scores``, ``langs``, ``style``, ``gender``, …);
    every method takes them as well, for that call alone. Bad input is a ``UserError``.
    """

    def __init__(
        self,
        stats_folder: Path | str | DumpFolder = "stats",
        *,
        tables: Path | str = "tables",
        graphs: Path | str = "graphs",
        **options: Any,
    ) -> None:
        from fluent_mlama.reporting.loading import open_dumps

        self.dumps = open_dumps(
            Path(stats_folder) if isinstance(stats_folder, str) else stats_folder
        )
        self._options = {
            "stats": self.dumps,
            "tables": Path(tables),
            "graphs": Path(graphs),
        } | options

    def quality(self, **options: Any) -> list[Path]:
        """Score every sentence, join to the ranks, write Table 5, Figure 2, gains and correlations."""
        from fluent_mlama.fluency.qe import write_quality

        return write_quality(self.dumps, self._arguments("qe", options))

    def gender(self, **options: Any) -> list[Path]:
        """Table 6 and the counts behind it."""
        from fluent_mlama.fluency.gender import write_gender

        return write_gender(self.dumps, self._arguments("gender", options))

    def gender_counts(self, **options: Any) -> pd.DataFrame:
        """The counts of Table 6, one row a (language, group, verbalisation)."""
        from fluent_mlama.fluency.gender import count

        return count(self.dumps, self._arguments("gender", options))

    def similarity(self, **options: Any) -> list[Path]:
        """chrF and TER against the template."""
        from fluent_mlama.fluency.similarity import write_similarity

        return write_similarity(self.dumps, self._arguments("similarity", options))

    def _arguments(self, command: str, options: dict[str, Any]) -> argparse.Namespace:
        """The command's defaults, then this object's options, then the call's."""
        return _COMMANDS.arguments(command, self._options, options)
