"""``stats.py report``: one self-contained HTML file of everything that rank dumps say.

    python stats.py report --stats stats/starter/paper --out report.html
    python stats.py report --stats stats/models/smollm2,stats/models/mine --out report.html

Summary, tables, the figures that the paper prints, and every fact. The page fetches nothing:
styles, script, figures and data are in the file. ``templates/`` holds the page itself. Several
folders (models, protocols) are shown side by side.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

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
from fluent_mlama.reporting.experiment import TEMPLATES, render, report_experiment
from fluent_mlama.reporting.graphs import dumbbells, heat_map, rank_boxes, recall_lines
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
from fluent_mlama.reporting.plotting import as_image, legend_above, look, panels, style_of
from fluent_mlama.reporting.relation_table import english_template
from fluent_mlama.reporting.report_facts import collect_facts, join_facts, pack
from fluent_mlama.reporting.selection import (
    Selection,
    relation_counts,
    rules_text,
    select_verbalisations,
)

_ACROSS = (
    "Runs are compared with the first on the facts that both have. Where protocols differ, so "
    "do the candidates: "
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
    """The report as HTML. The template escapes every text; the facts are base64 in a script tag."""
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
    for side in sides:
        side.folder.check_scores(side.everything)
    facts = {
        side.label: collect_facts(side.everything, open_source(side.folder.path)) for side in sides
    }
    return render(
        "report.html",
        title=title,
        script=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
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
        figures=draw_figures(sides, options),
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
    )


def between(sides: Sequence[RunSummary], settings: Settings) -> pd.DataFrame:
    """The main figures of each folder against the first, verbalisation by verbalisation."""
    table, _, pairs = pair_folders({side.label: side.counted for side in sides})
    _, differences = compare_pairs(table, pairs, settings)
    differences = differences[differences["first"] != differences["second"]]
    return main_figures(differences, "relation") if len(differences) else pd.DataFrame()


def _tiles(sides: Sequence[RunSummary]) -> list[tuple[str, str]]:
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


def _remarks(side: RunSummary, options: StatsOptions, settings: Settings) -> list[str]:
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
        f"Tables and graphs: {counts}; {rule}, which leaves {sum(map(len, counted)):,} of "
        f"{sum(map(len, everything)):,} rows; "
        "the list of facts has them all.",
        f"{STATEMENT} {settings.resamples} flips, seed {settings.seed}; Holm over all tests of "
        "a table.",
        "A rank is the best rank of a correct form among the correct forms and the "
        "distractors; 1 is best."
        if everything[0].protocol == "paper"
        else "A rank is the entity's among gold and distractors, ties by their middle; 1 is best.",
    ]
    if changed:
        remarks.append(
            "Changed by hand since they were written, so that their run records no longer "
            f"tell what made them: {changed}."
        )
    if lonely:
        remarks.append(
            "Left out of tables over relations, since not all that is compared has them, they "
            "have one object, or no fact is long enough: "
            f"{', '.join(lonely)}."
        )
    return remarks


METRICS = ("R@1", "R@3", "MRR", "mean rank")
FEW_DISTRACTORS = 10
"""Below this a relation is marked (protocol corrected, 7)."""


@dataclass(frozen=True)
class RunSummary:
    """One folder. everything: its dumps for the list of facts; counted: those that tables and
    graphs count, short prompts left out.

    ranks: as ``paired.fact_ranks`` makes them of counted. names: verbalisations. values,
    differences: as ``paired.compare_pairs`` gives them, of every verbalisation and of the first
    against each other.
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
) -> list[RunSummary]:
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
) -> RunSummary:
    if not counted:
        raise UserError(
            f"{folder.path}: no fact is left for the report; choose other languages or "
            "relations, or --exclude-short no"
        )
    everything = [
        select_verbalisations(
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
    # a condition against itself gives its values on all its rows, even with nothing to compare
    pairs = [*(Pair(names[0], name) for name in names[1:]), *(Pair(name, name) for name in names)]
    values, differences = compare_pairs(ranks, pairs, settings)
    return RunSummary(
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


def summary(sides: Sequence[RunSummary], settings: Settings) -> list[dict[str, Any]]:
    """Per language (pooled last) its folders, and of each the values of every verbalisation."""
    found: dict[str, dict[str, Any]] = {}
    for side in sides:
        # values over other facts than the rest's would mislead here: such a verbalisation has its
        # own comparison below
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
    side: RunSummary,
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


def relations(sides: Sequence[RunSummary]) -> list[dict[str, Any]]:
    """Per language its relations: example, facts, distractors, and R@1 and mean rank of every
    folder's verbalisations."""
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


def draw_figures(sides: Sequence[RunSummary], options: StatsOptions) -> list[tuple[str, str]]:
    """Caption and image of each figure: runs side by side, then the paper's figures per run."""
    found: list[tuple[str, Figure]] = []
    with look():
        if len(sides) > 1:
            found += [(_MARKS.format(metric), run_marks(sides, metric)) for metric in _MARKED]
        for side in sides:
            by_language = _selections(side, options)
            # a gain needs the first verbalisation and another one
            gaining = [
                one
                for one in by_language
                if one.verbalisations[0] == side.names[0] and len(one.verbalisations) > 1
            ]
            for caption, draw, selections in (
                ("R@1 to R@5, mean over relations.", recall_lines, by_language),
                (_BOXES, rank_boxes, by_language),
                (_HEAT.format(side.names[0]), heat_map, gaining),
                ("R@1 by relation.", dumbbells, gaining),
            ):
                if selections:
                    label = f"{side.label}: " if len(sides) > 1 else ""
                    found.append((label + caption, draw(selections)))
        return [(caption, as_image(figure)) for caption, figure in found]


_MARKED = ("R@1", "mean rank")
_MARKS = "Runs side by side: {}, mean over relations with its interval, by language."
_BOXES = (
    "Ranks of all facts: quartiles, mean (diamond), whiskers of 1.5 interquartile ranges; "
    "logarithmic."
)
_HEAT = "R@1 of {} by language and relation, and what each other verbalisation adds to it."


def _selections(side: RunSummary, options: StatsOptions) -> list[Selection]:
    """One selection per language: languages may differ in relations and in verbalisations."""
    found = []
    for lang in dict.fromkeys(table.lang for table in side.counted):
        tables = {table.relation: table for table in side.counted if table.lang == lang}
        names = [
            v for v in side.names if all(v in table.verbalisations for table in tables.values())
        ]
        if names:
            keyed = {(lang, relation): table for relation, table in tables.items()}
            found.append(Selection((lang,), tuple(tables), tuple(names), options.rules, keyed))
    return found


def run_marks(sides: Sequence[RunSummary], metric: str) -> Figure:
    """The metric by language with its interval: a panel per verbalisation, a mark per folder."""
    labels = [side.label for side in sides]
    every = pd.concat([side.values.assign(folder=side.label) for side in sides])
    every = every[(every["weights"] == "relation") & (every["metric"] == metric)]
    langs = list(dict.fromkeys(every["language"]))
    ways = list(dict.fromkeys(every["way"]))
    figure, axes = panels(ways, width=max(3.3, 0.3 * len(langs)))
    for axis, way in zip(axes, ways, strict=True):
        for place, label in enumerate(labels):
            own = every[(every["way"] == way) & (every["folder"] == label)]
            # marks of one language stand beside each other: 0.6 of its width for all of them
            shift = 0.6 * ((place + 0.5) / len(labels) - 0.5)
            below, above = own["value"] - own["low"], own["high"] - own["value"]
            look_of = style_of(label, labels) | {"linestyle": ""}
            axis.errorbar(
                [langs.index(lang) + shift for lang in own["language"]],
                own["value"],
                yerr=[below.fillna(0.0), above.fillna(0.0)],
                label=label,
                markersize=4,
                **look_of,
            )
        axis.set_xticks(range(len(langs)), langs)
    axes[0].set_ylim(bottom=0)
    figure.supylabel(metric, fontsize=9)
    legend_above(figure, axes[0], columns=len(labels))
    return figure
