"""From rank dumps to the paper's tables and graphs, and to what their numbers are worth.

    python stats.py all --stats stats/starter --tables tables/starter --graphs graphs/starter
    python stats.py general --style paper --stats published/stats.zip

Each command is a module of ``fluent/reporting/`` with ``add_arguments(parser)`` and ``run(arguments)``;
it is imported when it is asked for, so that ``--help`` does not wait for plotting libraries.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from fluent.console import ArgumentParser, run_main
from fluent.reporting.options import add_shared_arguments

COMMANDS: dict[str, tuple[str, str]] = {
    "all": ("fluent.reporting.everything", "all tables and graphs that the dumps allow, and the audit"),
    "general": ("fluent.reporting.general_table", "R@1 and mean rank by language and verbalisation (Table 1)"),
    "general-wide": ("fluent.reporting.general_table", "the same from the wide dumps (Table 7)"),
    "additional-langs": ("fluent.reporting.general_table", "the same for the languages with fewer verbalisations (Table 3)"),
    "infl-delta": ("fluent.reporting.infl_table", "rank of the label minus rank of the inflected form (Table 2)"),
    "relations": ("fluent.reporting.relation_table", "facts and distractors of each relation (Table 4)"),
    "qe": ("fluent.reporting.qe_table", "gain in R@1 and its correlation with translation quality (Table 5)"),
    "graphs": ("fluent.reporting.graphs", "R@k, rank boxes, QE scatter, percentiles, dumbbells, heat maps (Figures 2 to 4 and more)"),
    "audit": ("fluent.reporting.audit", "what is wrong with the dumps, found from the dumps alone"),
    "compare": ("fluent.reporting.compare", "intervals and paired tests between verbalisations, models or protocols"),
    "rerank": ("fluent.reporting.rerank", "ranks anew from the scores files: other linking functions, k or ties"),
    "report": ("fluent.reporting.report", "one self-contained HTML file of everything"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = ArgumentParser(prog="stats.py", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module_name, purpose) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose)
        add_shared_arguments(command)
        if name in words[:1]:
            importlib.import_module(module_name).add_arguments(command)
    parsed = parser.parse_args(words)
    return int(importlib.import_module(COMMANDS[parsed.command][0]).run(parsed))


if __name__ == "__main__":
    run_main(main)
