"""``stats.py report``: one self-contained HTML file of everything that rank dumps say.

    python stats.py report --stats stats/starter/paper --out report.html

Summary, tables, interactive graphs and every fact, with nothing to be fetched from anywhere: styles, script, the
plotly library and the data stand in the file. ``templates/`` holds the page itself.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from fluent.console import UserError, note
from fluent.languages import is_known, language
from fluent.records.atomic import write_text
from fluent.records.source import open_source
from fluent.reporting.closed_form import DESCRIPTION
from fluent.reporting.clusters import fact_ranks
from fluent.reporting.compare import chosen_tables
from fluent.reporting.comparing import Pair, Settings, compare_pairs, parts
from fluent.reporting.comparison_tables import digits, main_figures
from fluent.reporting.distractors import distractor_counts
from fluent.reporting.loading import DumpFolder, RankTable, open_dumps
from fluent.reporting.options import add_short_rule
from fluent.reporting.paired import significantly_best
from fluent.reporting.relation_table import english_template
from fluent.reporting.remarks import SHORT_RULE_TEXTS
from fluent.reporting.report_facts import collect_facts, pack
from fluent.reporting.report_figures import graphs
from fluent.reporting.selection import narrow, short_rule

TEMPLATES = Path(__file__).with_name("templates")
METRICS = ("R@1", "R@3", "MRR", "mean rank")
FEW_DISTRACTORS = 10
"""Below this a relation is marked (protocol corrected, 7)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of report."""
    parser.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="the report (default: report.html)")
    parser.add_argument("--title", default="Fluent-mLAMA report", help="its title")
    parser.add_argument("--resamples", type=int, default=2000, help="bootstrap samples and sign flips (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of resamples and flips (default: 0)")
    add_short_rule(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the report."""
    if arguments.out.is_dir():
        raise UserError(f"{arguments.out} is a folder: give a file name for the report, such as {arguments.out / 'report.html'}")
    if arguments.resamples < 200:
        raise UserError(f"--resamples {arguments.resamples} is too few to cut 5 % off; give a whole number from 200")
    folder = open_dumps(arguments.stats)
    page = build_page(folder, arguments)
    write_text(arguments.out, page)
    note(f"wrote {arguments.out} ({len(page.encode('utf-8')) / 1e6:.1f} MB)")
    return 0


def build_page(folder: DumpFolder, arguments: argparse.Namespace) -> str:
    """The report as HTML. Every text goes through the template's escaping; data stand in script tags that hold no '<'."""
    counted = chosen_tables(folder, arguments)
    if not counted:
        raise UserError(f"{folder.path}: no fact is left for the report; choose other languages or relations, or --exclude-short no")
    everything = [
        narrow(table, [v for v in table.verbalisations if v in (arguments.verbalisations or table.verbalisations)])
        for table in folder.tables(arguments.langs, arguments.relations)
    ]
    settings = Settings(cutoffs=(1, 3), resamples=arguments.resamples, seed=arguments.seed)
    ranks = fact_ranks(counted)
    names = list(dict.fromkeys(v for table in counted for v in table.verbalisations))
    pairs = [Pair(names[0], name) for name in names[1:]]
    # a way against itself gives its values on all of its rows, also where there is nothing to compare it with
    values, differences = compare_pairs(ranks, [*pairs, *(Pair(name, name) for name in names)], settings)
    differences = differences[differences["first"] != differences["second"]]
    shown = main_figures(differences, "macro") if pairs else pd.DataFrame()
    drawn = graphs(counted)
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("report.html").render(
        title=arguments.title,
        css=Markup(_template("report.css")),
        script=Markup(_template("report.js")),
        plotly=Markup(get_plotlyjs()),
        tiles=_tiles(everything, names),
        level=f"{settings.level:.0%}",
        metrics=METRICS,
        summary=_summary(ranks, values, names, settings),
        baseline=names[0],
        difference_columns=list(shown.columns)[1:],
        differences=[
            {"name": name, "rows": rows.drop(columns="comparison").to_numpy().tolist()}
            for name, rows in shown.groupby("comparison", sort=False)
        ]
        if pairs
        else [],
        graphs=[{"caption": graph.caption, "names": list(graph.figures), "height": graph.height} for graph in drawn],
        relations=_relations(everything, counted),
        few=FEW_DISTRACTORS,
        remarks=_remarks(everything, counted, arguments),
        signature=folder.signature(everything),
        facts_data=Markup(pack(collect_facts(everything, open_source(folder.path)))),
        graphs_data=Markup(script_json([graph.data() for graph in drawn])),
    )


def script_json(value: Any) -> str:
    """JSON that may stand in a script tag: no '<', so neither ``</script>`` nor ``<!--`` can occur in it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c").replace("\u2028", "\\u2028")


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def language_name(code: str) -> str:
    """The language's name, or nothing for a code that this project does not know."""
    return language(code).name if is_known(code) else ""


def _tiles(tables: Sequence[RankTable], names: Sequence[str]) -> list[tuple[str, str]]:
    return [
        ("facts", f"{sum(map(len, tables)):,}"),
        ("languages", str(len({table.lang for table in tables}))),
        ("relations", str(len({table.relation for table in tables}))),
        ("verbalisations", ", ".join(names)),
        ("protocol", tables[0].protocol),
    ]


def _summary(ranks: pd.DataFrame, values: pd.DataFrame, names: Sequence[str], settings: Settings) -> list[dict[str, Any]]:
    macro = {
        (str(row["language"]), str(row["way"]), str(row["metric"])): row for row in values[values["average"] == "macro"].to_dict("records")
    }
    summary = []
    for code, rows in parts(ranks):
        # values over other facts than the rest's would mislead here: such a verbalisation has its own comparison below
        ways = [name for name in names if rows[name].notna().all()]
        best = {metric: significantly_best(rows, ways, metric, flips=settings.resamples, seed=settings.seed) for metric in METRICS}
        cells = [
            {"name": name, "cells": [_cell(macro[code, name, metric], metric, best[metric] == name) for metric in METRICS]} for name in ways
        ]
        summary.append(
            {
                "code": code,
                "name": "languages, pooled by fact" if code == "all" else language_name(code),
                "relations": rows["relation"].nunique(),
                "facts": f"{len(rows.drop_duplicates(['relation', 'sub_uri', 'obj_uri'])):,}",
                "ways": cells,
            }
        )
    return summary


def _cell(row: dict[Hashable, Any], metric: str, best: bool) -> dict[str, Any]:
    places = digits(metric)
    interval = "" if pd.isna(row["low"]) else f"{row['low']:.{places}f} – {row['high']:.{places}f}"
    return {"value": f"{row['value']:.{places}f}", "interval": interval, "best": best}


def _relations(everything: Sequence[RankTable], counted: Sequence[RankTable]) -> list[dict[str, Any]]:
    kept = {(table.lang, table.relation): table for table in counted}
    found: dict[str, dict[str, Any]] = {}
    for table in everything:
        entry = found.setdefault(table.lang, {"code": table.lang, "name": language_name(table.lang), "ways": [], "rows": []})
        entry["ways"] += [v for v in table.verbalisations if v not in entry["ways"]]
    for table in everything:
        ways = found[table.lang]["ways"]
        used = kept.get((table.lang, table.relation), table)
        recall, ranks = (used.rank <= 1).mean().reindex(ways), used.rank.mean().reindex(ways)
        distractors = distractor_counts(table)
        low, high = int(distractors.min()), int(distractors.max())
        found[table.lang]["rows"].append(
            {
                "relation": table.relation,
                "example": _example(table),
                "facts": f"{len(used):,}",
                "distractors": str(low) if low == high else f"{low}–{high}",
                "few": low < FEW_DISTRACTORS,
                "recall": ["–" if pd.isna(value) else f"{value:.3f}" for value in recall],
                "ranks": ["–" if pd.isna(value) else f"{value:.2f}" for value in ranks],
            }
        )
    return list(found.values())


def _example(table: RankTable) -> str:
    try:
        return english_template([table])
    except UserError:  # a benchmark without English sentences has no example to show
        return ""


def _remarks(everything: Sequence[RankTable], counted: Sequence[RankTable], arguments: argparse.Namespace) -> list[str]:
    rule = SHORT_RULE_TEXTS[short_rule(arguments.style, arguments.exclude_short)]
    kept = {(table.lang, table.relation) for table in counted}
    lonely = [f"{table.lang} {table.relation}" for table in everything if (table.lang, table.relation) not in kept]
    remarks = [
        f"Tables and graphs: {rule}, which leaves {sum(map(len, counted)):,} of {sum(map(len, everything)):,} rows; "
        "the list of facts has them all.",
        f"Intervals: {DESCRIPTION}. Tests: {arguments.resamples} sign flips of the same units, seed {arguments.seed}.",
        "A rank is the best rank of a correct form among the correct forms and the distractors; 1 is best."
        if everything[0].protocol == "paper"
        else "A rank is the entity's among gold and distractors, ties by their middle; 1 is best.",
    ]
    if lonely:
        remarks.append(
            f"Left out of tables over relations, since no fact has a distractor there or none is long enough: {', '.join(lonely)}."
        )
    return remarks
