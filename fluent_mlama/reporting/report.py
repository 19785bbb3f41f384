"""``stats.py report``: one self-contained HTML file of everything that rank dumps say.

    python stats.py report --stats stats/starter/paper --out report.html
    python stats.py report --stats stats/models/smollm2,stats/models/mine --out report.html

Summary, tables, interactive graphs and every fact, with nothing to be fetched from anywhere: styles, script, the
plotly library and the data stand in the file. ``templates/`` holds the page itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from fluent_mlama.console import UserError, note
from fluent_mlama.files import check_writable, open_source, write_text
from fluent_mlama.options import File, Seed
from fluent_mlama.reporting.compare import pair_folders
from fluent_mlama.reporting.comparing import Settings, compare_pairs
from fluent_mlama.reporting.comparison_tables import main_figures
from fluent_mlama.reporting.experiment import report_experiment
from fluent_mlama.reporting.folders import open_folders
from fluent_mlama.reporting.inference import STATEMENT
from fluent_mlama.reporting.loading import DumpFolder
from fluent_mlama.reporting.options import Against, Resamples, StatsOptions
from fluent_mlama.reporting.outcomes import has_outcomes
from fluent_mlama.reporting.remarks import relation_counts, rules_text
from fluent_mlama.reporting.report_facts import collect_facts, join_facts, pack
from fluent_mlama.reporting.report_models import all_graphs, run_marks
from fluent_mlama.reporting.report_sides import (
    FEW_DISTRACTORS,
    METRICS,
    Side,
    open_sides,
    relations,
    summary,
)

TEMPLATES = Path(__file__).with_name("templates")
_ACROSS = (
    "Runs are compared with the first on the facts that both have. Where protocols differ, so do the candidates: "
    "such runs stand side by side and are not tested against each other."
)


def report(
    *,
    options: StatsOptions = StatsOptions(),
    against: Against = (),
    out: File = Path("report.html"),
    title: str = "Fluent-mLAMA report",
    resamples: Resamples = 2000,
    seed: Seed = 0,
) -> None:
    """One self-contained HTML file of everything.

    stats.py report --stats stats/starter/paper,stats/starter/corrected --out report.html
    """
    if out.is_dir():
        raise UserError(
            f"{out} is a folder: give a file name for the report, such as {out / 'report.html'}"
        )
    check_writable(out.parent, "the folder of --out")
    settings = Settings(cutoffs=(1, 3), resamples=resamples, seed=seed)
    if has_outcomes(options.stats[0]):
        report_experiment(options, out, title, settings)
        return
    folders = open_folders((*options.stats, *against))
    page = build_page(folders, options, settings, title)
    write_text(out, page)
    note(f"wrote {out} ({len(page.encode('utf-8')) / 1e6:.1f} MB)")


def build_page(
    folders: Mapping[str, DumpFolder], options: StatsOptions, settings: Settings, title: str
) -> str:
    """The report as HTML. Every text goes through the template's escaping; data stand in script tags that hold no '<'."""
    sides = open_sides(folders, options, settings)
    several = len(sides) > 1
    shown = [side.shown_differences(several) for side in sides] + (
        [between(sides, settings)] if several else []
    )
    differences = (
        pd.concat([frame for frame in shown if not frame.empty])
        if any(not frame.empty for frame in shown)
        else pd.DataFrame()
    )
    drawn = [
        *([run_marks({side.label: side.values for side in sides})] if several else []),
        *all_graphs(sides),
    ]
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    for side in sides:
        side.folder.check_scores(side.everything)
    facts = {
        side.label: collect_facts(side.everything, open_source(side.folder.path)) for side in sides
    }
    return environment.get_template("report.html").render(
        title=title,
        css=Markup(_template("report.css")),
        script=Markup(_template("report.js")),
        plotly=Markup(get_plotlyjs()),
        tiles=_tiles(sides),
        several=several,
        level=f"{settings.level:.0%}",
        metrics=METRICS,
        summary=summary(sides, settings),
        baseline=" or ".join(dict.fromkeys(side.names[0] for side in sides)),
        difference_columns=list(differences.columns)[1:],
        differences=[
            {"name": name, "rows": rows.drop(columns="comparison").to_numpy().tolist()}
            for name, rows in (
                differences.groupby("comparison", sort=False) if len(differences) else ()
            )
        ],
        graphs=[
            {"caption": graph.caption, "names": list(graph.figures), "height": graph.height}
            for graph in drawn
        ],
        relations=relations(sides),
        few=FEW_DISTRACTORS,
        remarks=[
            f"{side.label}: {remark}" if several else remark
            for side in sides
            for remark in _remarks(side, options, settings)
        ]
        + ([_ACROSS] if several else []),
        signatures=[(side.label, side.folder.signature(side.everything)) for side in sides],
        facts_data=Markup(pack(join_facts(facts) if several else facts[sides[0].label])),
        graphs_data=Markup(script_json([graph.data() for graph in drawn])),
    )


def between(sides: Sequence[Side], settings: Settings) -> pd.DataFrame:
    """The main figures of each folder against the first, verbalisation by verbalisation."""
    table, _, pairs = pair_folders({side.label: side.counted for side in sides})
    _, differences = compare_pairs(table, pairs, settings)
    differences = differences[differences["first"] != differences["second"]]
    return main_figures(differences, "relation") if len(differences) else pd.DataFrame()


def script_json(value: Any) -> str:
    """JSON that may stand in a script tag: no '<', so neither ``</script>`` nor ``<!--`` can occur in it."""
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
    )


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _tiles(sides: Sequence[Side]) -> list[tuple[str, str]]:
    tables = [table for side in sides for table in side.everything]
    facts = {(table.lang, key) for table in tables for key in table.fact_keys()}
    tiles = [("facts", f"{len(facts):,}")]
    if len(sides) > 1:
        tiles.append(("runs", ", ".join(side.label for side in sides)))
    return [
        *tiles,
        ("languages", str(len({table.lang for table in tables}))),
        ("relations", str(len({table.relation for table in tables}))),
        ("verbalisations", ", ".join(dict.fromkeys(name for side in sides for name in side.names))),
        ("protocol", ", ".join(dict.fromkeys(table.protocol for table in tables))),
    ]


def _remarks(side: Side, options: StatsOptions, settings: Settings) -> list[str]:
    everything, counted = side.everything, side.counted
    changed = ", ".join(table.name for table in everything if side.folder.is_changed(table.name))
    rule = rules_text(options.rules, counted)
    kept = {(table.lang, table.relation) for table in counted}
    counts = relation_counts([(table.lang, table.relation, len(table)) for table in counted])
    lonely = [
        f"{table.lang} {table.relation}"
        for table in everything
        if (table.lang, table.relation) not in kept
    ]
    remarks = [
        f"Tables and graphs: {counts}; {rule}, which leaves {sum(map(len, counted)):,} of {sum(map(len, everything)):,} rows; "
        "the list of facts has them all.",
        f"{STATEMENT} {settings.resamples} flips, seed {settings.seed}; Holm over all tests of a table.",
        "A rank is the best rank of a correct form among the correct forms and the distractors; 1 is best."
        if everything[0].protocol == "paper"
        else "A rank is the entity's among gold and distractors, ties by their middle; 1 is best.",
    ]
    if changed:
        remarks.append(
            f"Changed by hand since they were written, so that their run records no longer tell what made them: {changed}."
        )
    if lonely:
        remarks.append(
            "Left out of tables over relations, since not all that is compared has them, they have one object, or no fact is long enough: "
            f"{', '.join(lonely)}."
        )
    return remarks
