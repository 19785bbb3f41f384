"""What the report tells of each folder of dumps (a model, a protocol), and its tables with the folders side by side."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.languages import is_known, language
from fluent_mlama.reporting.compare import chosen_tables
from fluent_mlama.reporting.comparing import POOLED, Pair, Settings, compare_pairs, parts
from fluent_mlama.reporting.comparison_tables import digits, interval_cell, main_figures
from fluent_mlama.reporting.distractors import distractor_counts
from fluent_mlama.reporting.loading import DumpFolder, RankTable
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.paired import fact_ranks, significantly_best
from fluent_mlama.reporting.relation_table import english_template
from fluent_mlama.reporting.selection import narrow

METRICS = ("R@1", "R@3", "MRR", "mean rank")
FEW_DISTRACTORS = 10
"""Below this a relation is marked (protocol corrected, 7)."""


@dataclass(frozen=True)
class Side:
    """One folder. everything: its dumps for the list of facts; counted: those that tables and graphs count, short prompts left out.

    ranks: as ``paired.fact_ranks`` makes them of counted. names: verbalisations. values, differences: as
    ``comparing.compare_pairs`` gives them, of every verbalisation and of the first against each other.
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
