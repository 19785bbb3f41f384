"""From rank dumps to the paper's tables and graphs, and to what their numbers are worth.

    python stats.py all --stats stats/starter/paper --tables tables/mine --graphs graphs/mine
    python stats.py general --style paper --stats published/stats.zip

Each command is a module of ``fluent_mlama/reporting/`` with ``add_arguments(parser)`` and ``run(arguments)``;
it is imported when it is asked for, so that ``--help`` does not wait for plotting libraries.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluent_mlama.commands import Commands
from fluent_mlama.console import UserError
from fluent_mlama.reporting.options import add_shared_arguments

if TYPE_CHECKING:
    import pandas as pd

    from fluent_mlama.reporting.findings import Finding
    from fluent_mlama.reporting.selection import Selection

COMMANDS: dict[str, tuple[str, str]] = {
    "all": (
        "fluent_mlama.reporting.everything",
        "all tables and graphs that the dumps allow, and the audit",
    ),
    "general": (
        "fluent_mlama.reporting.general_table",
        "R@1 and mean rank by language and verbalisation (Table 1)",
    ),
    "general-wide": (
        "fluent_mlama.reporting.general_table",
        "the same from the wide dumps (Table 7)",
    ),
    "additional-langs": (
        "fluent_mlama.reporting.general_table",
        "the same for the languages with fewer verbalisations (Table 3)",
    ),
    "infl-delta": (
        "fluent_mlama.reporting.infl_table",
        "rank of the label minus rank of the inflected form (Table 2)",
    ),
    "relations": (
        "fluent_mlama.reporting.relation_table",
        "facts and distractors of each relation (Table 4)",
    ),
    "qe": (
        "fluent_mlama.reporting.qe_table",
        "gain in R@1 and its correlation with translation quality (Table 5)",
    ),
    "graphs": (
        "fluent_mlama.reporting.graphs",
        "R@k, rank boxes, QE scatter, percentiles, dumbbells, heat maps (Figures 2 to 4 and more)",
    ),
    "audit": (
        "fluent_mlama.reporting.audit",
        "what is wrong with the dumps, found from the dumps alone",
    ),
    "compare": (
        "fluent_mlama.reporting.compare",
        "intervals and paired tests between verbalisations, models or protocols",
    ),
    "rerank": (
        "fluent_mlama.reporting.rerank",
        "ranks anew from the scores files: other linking functions, k or ties",
    ),
    "report": ("fluent_mlama.reporting.report", "one self-contained HTML file of everything"),
}
_COMMANDS = Commands("stats.py", __doc__, COMMANDS, add_shared_arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return _COMMANDS.run(arguments)


class Statistics:
    """The paper's tables and graphs from one folder of dumps, read once.

    stats_folder, wide_folder: folders or zips of narrow and wide dumps (wide: else the twin of stats_folder, if there is
    one). tables, graphs: where files go. Further options are those of the command line with underscores (``langs``,
    ``relations``, ``verbalisations``, ``style``, ``exclude_short``, ``qe``); every method takes them as well, for that call alone.
    The methods that write return the paths; bad input is a ``UserError``.
    """

    def __init__(
        self,
        stats_folder: Path | str = "stats",
        wide_folder: Path | str | None = None,
        *,
        tables: Path | str = "tables",
        graphs: Path | str = "graphs",
        **options: Any,
    ) -> None:
        from fluent_mlama.reporting.loading import open_dumps, open_wide

        self.dumps = open_dumps(Path(stats_folder))
        self.wide = open_wide(None if wide_folder is None else Path(wide_folder), self.dumps)
        self._options = {
            "stats": self.dumps,
            "wide": self.wide,
            "tables": Path(tables),
            "graphs": Path(graphs),
        } | options

    def general_table(self, **options: Any) -> Path:
        """Table 1: R@1 and mean rank, languages × verbalisations."""
        return self._general("general", options)

    def wide_table(self, **options: Any) -> Path:
        """Table 7: the same with aliases counted as right."""
        if self.wide is None:
            raise UserError("no wide dumps: give their folder as wide_folder")
        return self._general("general-wide", options)

    def additional_languages_table(self, **options: Any) -> Path:
        """Table 3: the same for the languages with fewer verbalisations."""
        return self._general("additional-langs", options)

    def inflection_table(self, **options: Any) -> Path:
        """Table 2: rank of the label minus rank of the inflected form."""
        from fluent_mlama.reporting.infl_table import write_infl_table

        return write_infl_table(self.dumps, self._arguments("infl-delta", options))

    def relation_table(self, **options: Any) -> Path:
        """Table 4: facts and distractors of each relation."""
        from fluent_mlama.reporting.relation_table import write_relation_table

        return write_relation_table(self.dumps, self._arguments("relations", options))

    def quality_table(self, **options: Any) -> Path:
        """Table 5: gain in R@1, and its correlation with gains in translation quality (``qe``: their TSV)."""
        from fluent_mlama.reporting.qe_table import write_qe_table

        return write_qe_table(self.dumps, self._arguments("qe", options))

    def draw(self, *names: str, **options: Any) -> list[Path]:
        """The graphs of these names, or all: general (Figure 3), rank_boxplot (4), qe (2), percentile, logprob_rank, dumbbell, heatmap."""
        from fluent_mlama.reporting.graphs import write_graphs

        return write_graphs(
            self.dumps, self._arguments("graphs", options | {"only": names or None})
        )

    def audit(self, **options: Any) -> list[Finding]:
        """What is wrong with the dumps; also writes audit.md, audit.tsv and audit_table.tex."""
        from fluent_mlama.reporting.audit import write_audit

        return write_audit(self.dumps, self.wide, self._arguments("audit", options))

    def recall(self, k: int = 1, **options: Any) -> pd.DataFrame:
        """R@k, verbalisations × languages, mean over relations, unrounded."""
        from fluent_mlama.reporting.measures import macro, recall_at

        return macro(self.selection(**options), recall_at(k))

    def mean_rank(self, **options: Any) -> pd.DataFrame:
        """Mean best rank, verbalisations × languages, mean over relations, unrounded."""
        from fluent_mlama.reporting.measures import macro, mean_rank

        return macro(self.selection(**options), mean_rank)

    def selection(self, **options: Any) -> Selection:
        """The dumps that the general table would take: input to the functions of ``fluent_mlama.reporting.measures``."""
        from fluent_mlama.reporting.experiments import select_for

        return select_for("general", self.dumps, self._arguments("general", options))

    def run(self, command: str, **options: Any) -> int:
        """Any command of the command line on the same folder, such as compare or report."""
        return _COMMANDS.execute(self._arguments(command, {"stats": self.dumps.path} | options))

    def _general(self, command: str, options: dict[str, Any]) -> Path:
        from fluent_mlama.reporting.general_table import write_general_table

        folder = self.wide if command == "general-wide" and self.wide is not None else self.dumps
        return write_general_table(command, folder, self._arguments(command, options))

    def _arguments(self, command: str, options: dict[str, Any]) -> argparse.Namespace:
        """The command's defaults, then this object's options, then the call's."""
        return _COMMANDS.arguments(command, self._options, options)
