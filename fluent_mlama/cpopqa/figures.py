"""Figures 1 to 3 of the paper, for every target: by kind of concept, by rank position, by continent."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from fluent_mlama.cpopqa.concepts import Concept
from fluent_mlama.cpopqa.items import Item
from fluent_mlama.reporting.plotting import COLOURS, MARKERS, MUTED, look, save_stem

SHARED = 10
KINDS = ("shared", "unique, high population", "unique, low population")


def by_kind(
    results: pd.DataFrame, items: Sequence[Item], concepts: Sequence[Concept], shared: int = SHARED
) -> pd.DataFrame:
    """Figure 1: model, target, kind, concepts met in questions, share of their pairs in the right order.

    shared: a name of at least this many groups; unique: of one group, of a country among the most or the least populous.
    Whether the paper takes pairs within a kind or a concept against any other is open; here it is a concept against all
    others of its question.
    """
    kind: dict[tuple[str, str], str] = {}
    for one in concepts:
        if one.groups >= shared:
            kind[one.group, one.name] = KINDS[0]
        elif one.groups == 1 and one.level in {"high", "low"}:
            kind[one.group, one.name] = f"unique, {one.level} population"
    gold = {item.id: item.gold for item in items}
    rows = []
    for (target, model), part in results.groupby(["target", "model"], sort=False):
        found: dict[str, list[float]] = {name: [] for name in KINDS}
        for group, question, pairs in zip(part["group"], part["id"], part["pairs"], strict=True):
            for name, share in zip(gold[question], pairs, strict=True):
                if (group, name) in kind:
                    found[kind[group, name]].append(share)
        rows += [
            (model, target, name, len(shares), sum(shares) / len(shares))
            for name, shares in found.items()
            if shares
        ]
    return pd.DataFrame(rows, columns=["model", "target", "kind", "concepts", "pairwise accuracy"])


def by_place(results: pd.DataFrame) -> pd.DataFrame:
    """Figure 2: model, target, rank, share of the longest questions with the right concept at that rank."""
    longest = results[results["n"] == results["n"].max()]
    rows = []
    for (target, model), part in longest.groupby(["target", "model"], sort=False):
        shares = pd.DataFrame(part["places"].tolist()).mean()
        rows += [(model, target, rank, float(share)) for rank, share in enumerate(shares, start=1)]
    return pd.DataFrame(rows, columns=["model", "target", "rank", "accuracy"])


def by_region(results: pd.DataFrame) -> pd.DataFrame:
    """Figure 3: model, target, region, questions, Diff of the longest questions."""
    longest = results[(results["n"] == results["n"].max()) & (results["region"] != "")]
    grouped = longest.groupby(["model", "target", "region"], sort=False)["diff"]
    table = grouped.agg(questions="size", Diff="mean").reset_index()
    return table.sort_values(["target", "region"], kind="stable").reset_index(drop=True)


@look()
def write_figures(folder: Path, tables: Mapping[str, pd.DataFrame], n: int) -> None:
    """``figure1-<target>`` and so on, as PDF and PNG, from the tables of the same names; n: concepts of the longest question."""
    for name, table in tables.items():
        if table.empty:
            continue
        number = name.partition("-")[0]
        if number == "figure2":
            figure = _lines(table, "rank", "accuracy", 1 / n)
        else:
            column, value = (
                ("kind", "pairwise accuracy") if number == "figure1" else ("region", "Diff")
            )
            figure = _bars(table, column, value)
        save_stem(folder / name, figure)


def _bars(table: pd.DataFrame, column: str, value: str) -> Figure:
    names, models = list(dict.fromkeys(table[column])), list(dict.fromkeys(table["model"]))
    figure = Figure(figsize=(max(5.0, 1.2 * len(names)), 3.2))
    axes = figure.add_subplot()
    width = 0.8 / len(models)
    for place, (model, colour) in enumerate(zip(models, cycle(COLOURS), strict=False)):
        rows = table[table["model"] == model]
        places = [
            names.index(name) + (place - (len(models) - 1) / 2) * width for name in rows[column]
        ]
        axes.bar(places, rows[value], width, color=colour, label=model, edgecolor="white")
    axes.set_xticks(range(len(names)), [textwrap.fill(name, 14) for name in names])
    axes.axhline(0.5, color=MUTED, linestyle="--", linewidth=1)
    axes.set_ylabel(f"{value} (dashed: chance)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)
    return figure


def _lines(table: pd.DataFrame, column: str, value: str, chance: float) -> Figure:
    figure = Figure(figsize=(5.5, 3.2))
    axes = figure.add_subplot()
    for model, colour, marker in zip(
        dict.fromkeys(table["model"]), cycle(COLOURS), cycle(MARKERS), strict=False
    ):
        rows = table[table["model"] == model]
        axes.plot(rows[column], rows[value], marker=marker, color=colour, label=model)
    axes.set_xticks(sorted(set(table[column])))
    axes.axhline(chance, color=MUTED, linestyle="--", linewidth=1)
    axes.set_xlabel(column)
    axes.set_ylabel(f"{value} (dashed: chance)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)
    return figure
