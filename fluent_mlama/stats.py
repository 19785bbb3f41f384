"""From rank dumps to the paper's tables and graphs, and to what their numbers are worth.

    python stats.py all --stats stats/starter/paper --tables tables/mine --graphs graphs/mine
    python stats.py general --style paper --stats published/stats.zip

Each command is a function of a module of fluent_mlama/reporting/, which is imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluent_mlama.command_line import Commands
from fluent_mlama.console import UserError
from fluent_mlama.reporting.options import SHARED, StatsOptions, python_options

if TYPE_CHECKING:
    import pandas as pd

    from fluent_mlama.reporting.audit_checks import Finding
    from fluent_mlama.reporting.selection import Selection

_HERE = "fluent_mlama.reporting"
COMMANDS: dict[str, tuple[str, str]] = {
    "all": (
        f"{_HERE}.all_tables:write_all",
        "all tables and graphs that the dumps allow, and the audit",
    ),
    "general": (
        f"{_HERE}.general_table:general",
        "R@1 and mean rank by language and verbalisation (Table 1)",
    ),
    "general-wide": (
        f"{_HERE}.general_table:general_wide",
        "the same from the wide dumps (Table 7)",
    ),
    "additional-langs": (
        f"{_HERE}.general_table:additional_langs",
        "the same for the languages with fewer verbalisations (Table 3)",
    ),
    "infl-delta": (
        f"{_HERE}.infl_table:infl_delta",
        "rank of the label minus rank of the inflected form (Table 2)",
    ),
    "relations": (
        f"{_HERE}.relation_table:relations",
        "facts and distractors of each relation (Table 4)",
    ),
    "qe": (
        f"{_HERE}.qe_table:qe",
        "gain in R@1 and its correlation with translation quality (Table 5)",
    ),
    "graphs": (
        f"{_HERE}.graphs:draw_graphs",
        "R@k, rank boxes, QE scatter, percentiles, dumbbells, heat maps (Figures 2 to 4 and more)",
    ),
    "audit": (
        f"{_HERE}.audit:audit_dumps",
        "what is wrong with the dumps, found from the dumps alone",
    ),
    "compare": (
        f"{_HERE}.comparison:compare",
        "intervals and paired tests between verbalisations, models or protocols",
    ),
    "rerank": (
        f"{_HERE}.rerank:rerank",
        "ranks again from the scores files: other linking functions, k or ties",
    ),
    "plan": (
        f"{_HERE}.planning:plan",
        "how small a difference an experiment could find, before any model is loaded",
    ),
    "export": (
        f"{_HERE}.experiment:export",
        "one row per item and condition for other tools: CSV, JSON lines, a Hugging Face dataset",
    ),
    "report": (f"{_HERE}.report:report", "one self-contained HTML file of everything"),
}
_COMMANDS = Commands("stats.py", __doc__, COMMANDS)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return _COMMANDS.run(words)


class Statistics:
    """The paper's tables and graphs from one folder of dumps, read once.

    stats_folder, wide_folder: folders or zips of narrow and wide dumps (wide: else the twin of stats_folder, if there is
    one). Further options are those that all commands share (``StatsOptions``): ``tables`` and ``graphs``, where files go,
    ``langs``, ``relations``, ``verbalisations``, ``style``, ``exclude_short``; every method takes them as well, for that
    call alone. The methods that write return the paths; bad input is a ``UserError``.
    """

    def __init__(
        self,
        stats_folder: Path | str = "stats",
        wide_folder: Path | str | None = None,
        **options: Any,
    ) -> None:
        from fluent_mlama.reporting.loading import open_dumps, open_wide

        self.dumps = open_dumps(Path(stats_folder))
        self.wide = open_wide(None if wide_folder is None else Path(wide_folder), self.dumps)
        self._options = replace(python_options(options), stats=(self.dumps.path,))

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

        return write_infl_table(self.dumps, self._with(options))

    def relation_table(self, **options: Any) -> Path:
        """Table 4: facts and distractors of each relation."""
        from fluent_mlama.reporting.relation_table import write_relation_table

        return write_relation_table(self.dumps, self._with(options))

    def quality_table(self, qe: Path | None = None, qe_scale: str = "", **options: Any) -> Path:
        """Table 5: gain in R@1, and its correlation with gains in translation quality (``qe``: their TSV)."""
        from fluent_mlama.reporting.qe_table import write_qe_table

        return write_qe_table(self.dumps, self._with(options), qe, qe_scale)

    def draw(
        self, *names: str, qe: Path | None = None, qe_scale: str = "", **options: Any
    ) -> list[Path]:
        """The graphs of these names, or all: general (Figure 3), rank_boxplot (4), qe (2), percentile, logprob_rank, dumbbell, heatmap."""
        from fluent_mlama.reporting.graphs import write_graphs

        return write_graphs(self.dumps, self._with(options), names, qe, qe_scale)

    def audit(
        self, data: Path | None = None, prompts: Path | None = None, **options: Any
    ) -> list[Finding]:
        """What is wrong with the dumps; also writes audit.md, audit.tsv and audit_table.tex."""
        from fluent_mlama.reporting.audit import write_audit

        return write_audit(self.dumps, self.wide, self._with(options), data, prompts)

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
        from fluent_mlama.reporting.selection import select_for

        return select_for("general", self.dumps, self._with(options))

    def compare(self, **settings: Any) -> None:
        """Intervals and tests; ``settings`` are the options of the command ``compare``, shared ones among them."""
        from fluent_mlama.reporting.comparison import compare

        own = {name: settings.pop(name) for name in SHARED & settings.keys()}
        compare(options=self._with(own), **settings)

    def report(self, out: Path | str = "report.html", **settings: Any) -> None:
        """The HTML report; ``settings`` as for ``compare``."""
        from fluent_mlama.reporting.report import report

        own = {name: settings.pop(name) for name in SHARED & settings.keys()}
        report(options=self._with(own), out=Path(out), **settings)

    def _general(self, command: str, options: dict[str, Any]) -> Path:
        from fluent_mlama.reporting.general_table import write_general_table

        folder = self.wide if command == "general-wide" and self.wide is not None else self.dumps
        return write_general_table(command, folder, self._with(options))

    def _with(self, options: dict[str, Any]) -> StatsOptions:
        """This object's options, over them the call's."""
        return python_options(options, self._options)
