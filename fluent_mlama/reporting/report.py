"""``stats.py report``: one self-contained HTML file of everything that rank dumps say.

    python stats.py report --stats stats/starter/paper --out report.html
    python stats.py report --stats stats/models/smollm2,stats/models/mine --out report.html

Summary, tables, interactive graphs and every fact, with nothing to be fetched from anywhere: styles, script, the
plotly library and the data stand in the file. ``templates/`` holds the page itself.

What the report tells of each folder of dumps (a model, a protocol), and its tables with the folders side by side.

The report's graphs where several folders of dumps (models, protocols) stand side by side.
"""

from __future__ import annotations

import html
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from fluent_mlama.console import UserError, note
from fluent_mlama.files import check_writable, open_source, write_text
from fluent_mlama.languages import is_known, language
from fluent_mlama.options import File, Seed
from fluent_mlama.reporting.comparison import (
    chosen_tables,
    digits,
    interval_cell,
    main_figures,
    open_folders,
    pair_folders,
)
from fluent_mlama.reporting.experiment import report_experiment
from fluent_mlama.reporting.inference import STATEMENT
from fluent_mlama.reporting.loading import DumpFolder, RankTable
from fluent_mlama.reporting.measures import distractor_counts
from fluent_mlama.reporting.options import Against, Resamples, StatsOptions
from fluent_mlama.reporting.outcomes import has_outcomes
from fluent_mlama.reporting.paired import (
    POOLED,
    Pair,
    Settings,
    compare_pairs,
    fact_ranks,
    parts,
    significantly_best,
)
from fluent_mlama.reporting.relation_table import english_template
from fluent_mlama.reporting.report_facts import collect_facts, join_facts, pack
from fluent_mlama.reporting.report_figures import Graph, graphs, plain, style
from fluent_mlama.reporting.selection import narrow, relation_counts, rules_text

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


METRICS = ("R@1", "R@3", "MRR", "mean rank")
FEW_DISTRACTORS = 10
"""Below this a relation is marked (protocol corrected, 7)."""


@dataclass(frozen=True)
class Side:
    """One folder. everything: its dumps for the list of facts; counted: those that tables and graphs count, short prompts left out.

    ranks: as ``paired.fact_ranks`` makes them of counted. names: verbalisations. values, differences: as
    ``paired.compare_pairs`` gives them, of every verbalisation and of the first against each other.
    """

    label: str
    folder: DumpFolder
    everything: list[RankTable]
    counted: list[RankTable]
    ranks: pd.DataFrame
    names: list[str]
    values: pd.DataFrame
    differences: pd.DataFrame

    def shown_differences(self, labelled: bool) -> pd.DataFrame:
        """The main figures of the differences, empty where there is one verbalisation."""
        if self.differences.empty:
            return pd.DataFrame()
        shown = main_figures(self.differences, "relation")
        return (
            shown.assign(comparison=self.label + ": " + shown["comparison"]) if labelled else shown
        )


def open_sides(
    folders: Mapping[str, DumpFolder], options: StatsOptions, settings: Settings
) -> list[Side]:
    """Read, select and compare; a folder of which nothing is left is a ``UserError``."""
    chosen = chosen_tables(list(folders.values()), options)
    return [
        _side(label, folder, counted, options, settings)
        for (label, folder), counted in zip(folders.items(), chosen, strict=True)
    ]


def _side(
    label: str,
    folder: DumpFolder,
    counted: list[RankTable],
    options: StatsOptions,
    settings: Settings,
) -> Side:
    if not counted:
        raise UserError(
            f"{folder.path}: no fact is left for the report; choose other languages or relations, or --exclude-short no"
        )
    everything = [
        narrow(
            table,
            [
                v
                for v in table.verbalisations
                if v in (options.verbalisations or table.verbalisations)
            ],
        )
        for table in folder.tables(options.langs, options.relations)
    ]
    ranks = fact_ranks(counted)
    names = list(dict.fromkeys(v for table in counted for v in table.verbalisations))
    # a way against itself gives its values on all of its rows, also where there is nothing to compare it with
    pairs = [*(Pair(names[0], name) for name in names[1:]), *(Pair(name, name) for name in names)]
    values, differences = compare_pairs(ranks, pairs, settings)
    return Side(
        label,
        folder,
        everything,
        counted,
        ranks,
        names,
        values,
        differences[differences["first"] != differences["second"]],
    )


def language_name(code: str) -> str:
    """The language's name, or nothing for a code that this project does not know."""
    return language(code).name if is_known(code) else ""


def summary(sides: Sequence[Side], settings: Settings) -> list[dict[str, Any]]:
    """Per language (pooled last) its folders, and of each the values of every verbalisation."""
    found: dict[str, dict[str, Any]] = {}
    for side in sides:
        # values over other facts than the rest's would mislead here: such a verbalisation has its own comparison below
        ranked = {
            code: (rows, [name for name in side.names if rows[name].notna().all()])
            for code, rows in parts(side.ranks)
        }
        best = significantly_best(ranked, METRICS, flips=settings.resamples, seed=settings.seed)
        for code, (rows, ways) in ranked.items():
            name = "languages, pooled by fact" if code == POOLED else language_name(code)
            entry = found.setdefault(code, {"code": code, "name": name, "sides": []})
            bold = {metric: best[code, metric] for metric in METRICS}
            entry["sides"].append(
                _of_side(side, rows, ways, side.values[side.values["language"] == code], bold)
            )
    return sorted(found.values(), key=lambda entry: entry["code"] == POOLED)


def _of_side(
    side: Side,
    rows: pd.DataFrame,
    ways: Sequence[str],
    values: pd.DataFrame,
    bold: dict[str, str | None],
) -> dict[str, Any]:
    by_relation = values[values["weights"] == "relation"].to_dict("records")
    of = {(str(row["way"]), str(row["metric"])): row for row in by_relation}
    return {
        "label": side.label,
        "relations": rows["relation"].nunique(),
        "facts": f"{len(rows.drop_duplicates(['relation', 'sub_uri', 'obj_uri'])):,}",
        "ways": [
            {
                "name": name,
                "cells": [
                    _cell(of[name, metric], metric, bold[metric] == name) for metric in METRICS
                ],
            }
            for name in ways
        ],
    }


def _cell(row: dict[Hashable, Any], metric: str, best: bool) -> dict[str, Any]:
    form = f"z.{digits(metric)}f"
    interval = interval_cell(row, form).strip("[]").replace(", ", " – ")
    return {"value": f"{row['value']:{form}}", "interval": interval, "best": best}


def relations(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Per language its relations: example, facts, distractors, and R@1 and mean rank of every folder's verbalisations."""
    found: dict[str, dict[str, Any]] = {}
    several = len(sides) > 1
    for side in sides:
        kept = {(table.lang, table.relation): table for table in side.counted}
        for table in side.everything:
            entry = found.setdefault(
                table.lang,
                {"code": table.lang, "name": language_name(table.lang), "ways": [], "rows": {}},
            )
            names = {f"{side.label}:{v}" if several else v: v for v in table.verbalisations}
            entry["ways"] += [name for name in names if name not in entry["ways"]]
            used = kept.get((table.lang, table.relation), table)
            row = entry["rows"].setdefault(
                table.relation,
                {
                    "table": table,
                    "facts": [],
                    "distractors": [],
                    "few": False,
                    "recall": {},
                    "ranks": {},
                },
            )
            distractors = distractor_counts(table)
            low, high = int(distractors.min()), int(distractors.max())
            row["facts"].append(f"{len(used):,}")
            row["distractors"].append(str(low) if low == high else f"{low}–{high}")
            row["few"] |= low < FEW_DISTRACTORS
            row["recall"] |= {
                name: f"{(used.rank[v] <= 1).mean():z.3f}" for name, v in names.items()
            }
            row["ranks"] |= {name: f"{used.rank[v].mean():z.2f}" for name, v in names.items()}
    for entry in found.values():
        entry["rows"] = [
            _relation_row(relation, row, entry["ways"]) for relation, row in entry["rows"].items()
        ]
    return list(found.values())


def _relation_row(relation: str, row: dict[str, Any], ways: Sequence[str]) -> dict[str, Any]:
    told = {name: " / ".join(dict.fromkeys(row[name])) for name in ("facts", "distractors")}
    cells = {name: [row[name].get(way, "–") for way in ways] for name in ("recall", "ranks")}
    return {
        "relation": relation,
        "example": _example(row["table"]),
        "few": row["few"],
        **told,
        **cells,
    }


def _example(table: RankTable) -> str:
    try:
        return english_template([table])
    except UserError:  # a benchmark without English sentences has no example to show
        return ""


def all_graphs(sides: Sequence[Side]) -> list[Graph]:
    """Every graph of one folder; of several the same graphs with the folder among the choices."""
    drawn = {side.label: graphs(side.counted) for side in sides}
    if len(sides) == 1:
        return drawn[sides[0].label]
    found = []
    for row in zip_longest(*drawn.values()):
        there = {label: graph for label, graph in zip(drawn, row, strict=True) if graph is not None}
        kinds = {
            kind: {
                f"{label}, {name}" if name else label: figure
                for label, graph in there.items()
                for name, figure in getattr(graph, kind).items()
            }
            for kind in ("figures", "small")
        }
        first = next(iter(there.values()))
        height, small_height = (
            max(getattr(graph, kind) for graph in there.values())
            for kind in ("height", "small_height")
        )
        found.append(Graph(first.caption, kinds["figures"], height, kinds["small"], small_height))
    return found


def run_marks(values: Mapping[str, pd.DataFrame]) -> Graph:
    """R@1 and mean rank by language with intervals, a mark a folder, a figure per metric and verbalisation.

    values: folder -> its values as ``paired.compare_pairs`` gives them.
    """
    labels = list(values)
    figures = {}
    every = pd.concat([frame.assign(folder=label) for label, frame in values.items()])
    rows = every[every["weights"] == "relation"]
    for metric in ("R@1", "mean rank"):
        for way in dict.fromkeys(rows["way"]):
            part = rows[(rows["metric"] == metric) & (rows["way"] == way)]
            figure = go.Figure()
            for label in labels:
                own = part[part["folder"] == label]
                if own.empty:
                    continue
                colour, symbol = style(labels, label)
                reach = [
                    (own["high"] - own["value"]).fillna(0.0),
                    (own["value"] - own["low"]).fillna(0.0),
                ]
                figure.add_trace(
                    go.Scatter(
                        x=own["language"].tolist(),
                        y=own["value"].round(4).tolist(),
                        error_y={
                            "array": reach[0].round(4).tolist(),
                            "arrayminus": reach[1].round(4).tolist(),
                            "thickness": 1.2,
                            "width": 3,
                        },
                        mode="markers",
                        name=html.escape(label),
                        marker={"color": colour, "symbol": symbol, "size": 9},
                        hovertemplate=f"%{{x}} %{{y:.{digits(metric)}f}}",
                    )
                )
            figure.update_layout(scattermode="group")
            figure.update_xaxes(type="category")
            figure.update_yaxes(title=metric, rangemode="tozero")
            figures[f"{metric}, {way}"] = plain(figure)
    return Graph(
        "Runs side by side: mean over relations with its interval, by language.", figures, 400
    )
