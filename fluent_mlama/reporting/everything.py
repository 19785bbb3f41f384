"""``stats.py all``: every table and graph the dumps allow, the audit, and a document that shows the tables.

The dumps are read once. A part that these dumps cannot give is left out with one line on why; the general table
must be possible.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from fluent_mlama.console import UserError, note
from fluent_mlama.records.atomic import check_writable
from fluent_mlama.reporting import audit, graphs
from fluent_mlama.reporting.general_table import write_general_table
from fluent_mlama.reporting.infl_table import write_infl_table
from fluent_mlama.reporting.latex_document import write_document
from fluent_mlama.reporting.loading import open_dumps, open_wide
from fluent_mlama.reporting.qe_table import write_qe_table
from fluent_mlama.reporting.relation_table import write_relation_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All options of the tables, the graphs and the audit."""
    graphs.add_arguments(parser)
    audit.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write everything."""
    for option in ("tables", "graphs"):
        check_writable(getattr(arguments, option), f"--{option}")
    folder, wide = open_dumps(arguments.stats), open_wide(arguments.wide, arguments.stats)
    tables = [write_general_table("general", folder, arguments)]
    parts: list[tuple[str, Callable[[], Path]]] = [
        ("additional-langs", lambda: write_general_table("additional-langs", folder, arguments)),
        ("infl-delta", lambda: write_infl_table(folder, arguments)),
        ("relations", lambda: write_relation_table(folder, arguments)),
        ("qe", lambda: write_qe_table(folder, arguments)),
    ]
    if wide is not None:
        parts.insert(
            0, ("general-wide", lambda: write_general_table("general-wide", wide, arguments))
        )
    for name, write in parts:
        try:
            tables.append(write())
        except UserError as reason:
            note(f"left out {name}: {reason}")
    audit.write_audit(folder, wide, arguments)
    graphs.write_graphs(folder, arguments)
    document, program = write_document(
        arguments.tables, [*tables, arguments.tables / "audit_table.tex"]
    )
    note(f"wrote {document}: {program} {document.name} in that folder sets all tables")
    return 0
