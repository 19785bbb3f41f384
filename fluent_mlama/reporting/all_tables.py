"""``stats.py all``: every table and graph the dumps allow, the audit, and a document that shows the tables.

The dumps are read once. A part that these dumps cannot give is left out with one line on why; the general table
must be possible.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fluent_mlama.console import UserError, note
from fluent_mlama.files import check_writable
from fluent_mlama.reporting import audit, graphs
from fluent_mlama.reporting.general_table import write_general_table
from fluent_mlama.reporting.infl_table import write_infl_table
from fluent_mlama.reporting.latex import write_document
from fluent_mlama.reporting.loading import open_dumps, open_wide
from fluent_mlama.reporting.options import QualityGains, QualityScale, StatsOptions
from fluent_mlama.reporting.qe_table import write_qe_table
from fluent_mlama.reporting.relation_table import write_relation_table


def write_all(
    *,
    options: StatsOptions = StatsOptions(),
    only: graphs.Only = (),
    qe: QualityGains = None,
    qe_scale: QualityScale = "",
    data: audit.Data = None,
    prompts: audit.Prompts = None,
) -> None:
    """All tables and graphs that the dumps allow, and the audit.

    stats.py all --stats stats/starter/paper --tables tables/mine --graphs graphs/mine
    """
    for option in ("tables", "graphs"):
        check_writable(getattr(options, option), f"--{option}")
    folder, wide = open_dumps(options.dumps), open_wide(options.wide, options.dumps)
    tables = [write_general_table("general", folder, options)]
    parts: list[tuple[str, Callable[[], Path]]] = [
        ("additional-langs", lambda: write_general_table("additional-langs", folder, options)),
        ("infl-delta", lambda: write_infl_table(folder, options)),
        ("relations", lambda: write_relation_table(folder, options)),
        ("qe", lambda: write_qe_table(folder, options, qe, qe_scale)),
    ]
    if wide is not None:
        parts.insert(
            0, ("general-wide", lambda: write_general_table("general-wide", wide, options))
        )
    for name, write in parts:
        try:
            tables.append(write())
        except UserError as reason:
            note(f"left out {name}: {reason}")
    audit.write_audit(folder, wide, options, data, prompts)
    graphs.write_graphs(folder, options, only, qe, qe_scale)
    document, program = write_document(
        options.tables, [*tables, options.tables / "audit_table.tex"]
    )
    note(f"wrote {document}: {program} {document.name} in that folder sets all tables")
