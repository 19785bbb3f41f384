"""Report, audit and export of any experiment's outcomes: facts, typed queries, minimal pairs,
popularity questions.

    stats.py report --stats zhoblimp_results --out pairs.html
    stats.py audit --stats popularity
    stats.py export --stats mlama_results/smollm2/causal/mlama --out exports/mlama

All three see nothing but the outcomes table. A check is a function with ``@check``; it says where
it found something.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from cyclopts import Parameter
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fluent_mlama.console import UserError, note
from fluent_mlama.files import check_writable, format_table, write_bytes, write_text
from fluent_mlama.options import File
from fluent_mlama.outcomes import FILE, Outcomes
from fluent_mlama.reporting.inference import FEWEST
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.outcomes import (
    compare_outcomes,
    design_of_items,
    open_outcomes,
    statement,
)
from fluent_mlama.reporting.paired import Settings
from fluent_mlama.reporting.plotting import COLOURS, MARKERS, MUTED, as_image, legend_above, look

TEMPLATES = Path(__file__).with_name("templates")
FEW_CANDIDATES = 10
ALIKE = 0.95
LARGEST = 0.25


@dataclass(frozen=True)
class Check:
    """One question to a table of outcomes. find: yields where the answer is yes."""

    name: str
    meaning: str
    advice: str
    find: Callable[[Outcomes], Iterator[str]]


CHECKS: list[Check] = []


def check(meaning: str, advice: str) -> Callable[[Callable[[Outcomes], Iterator[str]]], Check]:
    """Register a check under its function's name."""

    def register(find: Callable[[Outcomes], Iterator[str]]) -> Check:
        made = Check(find.__name__.replace("_", " "), meaning, advice, find)
        CHECKS.append(made)
        return made

    return register


def _each(outcomes: Outcomes) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each part and condition by name, with its rows."""
    for (part, condition), rows in outcomes.rows.groupby(["part", "condition"], sort=False):
        yield _named(part, condition), rows


def _named(part: object, condition: object) -> str:
    return f"{part!s}: {condition!s}" if part else str(condition)


@check("too few clusters of equal weight for an interval or a test", "collect more, or pool less")
def few_clusters(outcomes: Outcomes) -> Iterator[str]:
    for name, rows in _each(outcomes):
        effective = design_of_items(rows, outcomes).effective
        if effective < FEWEST:
            yield f"{name}: {effective:z.1f} effective {outcomes.clusters[0]}s"


@check("items that only some conditions have are left out of comparisons", "ask them everywhere")
def missing_items(outcomes: Outcomes) -> Iterator[str]:
    for part, rows in outcomes.rows.groupby("part", sort=False):
        items = rows["item"].nunique()
        for condition, own in rows.groupby("condition", sort=False):
            if len(own) < items:
                yield f"{_named(part, condition)}: {items - len(own)} of {items}"


@check("two conditions have the same outcomes nearly everywhere", "are they the same prompts?")
def conditions_alike(outcomes: Outcomes) -> Iterator[str]:
    columns = list(dict.fromkeys(measure.column for measure in outcomes.measures))
    for part, rows in outcomes.rows.groupby("part", sort=False):
        tables = {
            str(name): own.set_index("item")[columns]
            for name, own in rows.groupby("condition", sort=False)
        }
        names = list(tables)
        for place, first in enumerate(names):
            for second in names[place + 1 :]:
                shared = tables[first].index.intersection(tables[second].index)
                pair = [tables[name].loc[shared].fillna(-1) for name in (first, second)]
                same = (pair[0] == pair[1]).all(axis=1).mean() if len(shared) else 0.0
                if same >= ALIKE:
                    both = f"{first} and {second}: {same:.0%} of {len(shared)}"
                    yield _named(part, both)


@check("every item has the same outcome", "look at the raw answers")
def constant_outcomes(outcomes: Outcomes) -> Iterator[str]:
    for name, rows in _each(outcomes):
        values = [measure.values(rows) for measure in outcomes.measures]
        if len(rows) > 1 and all(np.ptp(np.nan_to_num(value)) == 0 for value in values):
            yield name


@check("the right candidate has no rank; such items count as wrong", "see why it did not compete")
def unranked_items(outcomes: Outcomes) -> Iterator[str]:
    if not any(measure.column == "rank" for measure in outcomes.measures):
        return
    for name, rows in _each(outcomes):
        count = int(rows["rank"].isna().sum())
        if count:
            yield f"{name}: {count} of {len(rows)}"


@check(f"a hit among at most {FEW_CANDIDATES} candidates says little", "read it beside chance")
def few_candidates(outcomes: Outcomes) -> Iterator[str]:
    for name, rows in _each(outcomes):
        count = int((rows["n_candidates"] <= FEW_CANDIDATES).sum())
        # A minimal pair has two candidates by design: chance is one half, as everybody knows.
        if count and not (rows["n_candidates"] == 2).all():
            yield f"{name}: {count} of {len(rows)}"


@check("one cluster carries much of the weight", "compare with --weights object, or leave it out")
def heavy_clusters(outcomes: Outcomes) -> Iterator[str]:
    for name, rows in _each(outcomes):
        share = rows["cluster_1"].value_counts(normalize=True)
        if share.iloc[0] > LARGEST:
            yield f"{name}: {share.index[0]} {share.iloc[0]:.0%}"


def audit_outcomes(outcomes: Outcomes) -> pd.DataFrame:
    """What the checks find: columns check, where, meaning, advice."""
    rows = [
        (one.name, where, one.meaning, one.advice) for one in CHECKS for where in one.find(outcomes)
    ]
    return pd.DataFrame(rows, columns=["check", "where", "meaning", "advice"])


def audit_experiment(options: StatsOptions) -> pd.DataFrame:
    """Write ``audit.tsv`` and ``audit.md`` of a folder's outcomes, and print what was found."""
    outcomes = open_outcomes(options.dumps)
    found = audit_outcomes(outcomes)
    write_text(options.tables / "audit.tsv", format_table(found.astype(str)))
    lines = [f"# Audit of {outcomes.experiment}", "", f"signature: {outcomes.signature}", ""]
    for name, rows in found.groupby("check", sort=False):
        first = rows.iloc[0]
        lines += [f"**{name}**: {first['meaning']}; {first['advice']}."]
        lines += [f"- {where}" for where in rows["where"]] + [""]
    if found.empty:
        lines += [f"Nothing found by {len(CHECKS)} checks."]
    write_text(options.tables / "audit.md", "\n".join(lines).rstrip() + "\n")
    print("\n".join(lines[4:]))
    return found


def report_experiment(options: StatsOptions, out: Path, title: str, settings: Settings) -> None:
    """One HTML page: values, differences, a forest plot, the audit, and what made them."""
    outcomes = open_outcomes(options.dumps)
    values, differences = compare_outcomes(outcomes, outcomes.conditions[0], settings)
    page = render(
        "experiment.html",
        title=title,
        statement=statement(outcomes, settings),
        tables=[
            ("Values", values.columns, _cells(values)),
            (
                f"Differences from {outcomes.conditions[0]}",
                differences.columns,
                _cells(differences),
            ),
        ],
        plot=_forest(differences) if len(differences) else "",
        findings=audit_outcomes(outcomes).to_dict("records"),
        checks=len(CHECKS),
    )
    write_text(out, page)
    note(f"wrote {out} ({len(page.encode('utf-8')) / 1e6:.1f} MB)")


def render(template: str, **values: object) -> str:
    """A page of ``templates/``, every value escaped; ``report.css`` is its style."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    return environment.get_template(template).render(css=Markup(css), **values)


def _cells(frame: pd.DataFrame) -> list[list[str]]:
    """Cells as text: three decimals, nothing for what is not there."""
    return [
        [
            "" if isinstance(cell, float) and np.isnan(cell) else f"{cell:z.3f}"
            if isinstance(cell, float)
            else str(cell)
            for cell in row
        ]
        for row in frame.itertuples(index=False, name=None)
    ]  # fmt: skip


def _forest(differences: pd.DataFrame) -> str:
    """Each difference with its interval, one panel per measure, as an image of the page."""
    measures = list(dict.fromkeys(differences["measure"]))
    labels = differences["part"] + " " + differences["second"]
    names = list(dict.fromkeys(labels.str.strip()))
    with look():
        figure, axes = plt.subplots(
            1, len(measures), figsize=(3.1 * len(measures), 1 + 0.25 * len(names)),
            sharey=True, squeeze=False,
        )  # fmt: skip
        for place, (axis, measure) in enumerate(zip(axes[0], measures, strict=True)):
            rows = differences[differences["measure"] == measure]
            at = [names.index(name) for name in labels[rows.index].str.strip()]
            center = rows["difference"].to_numpy(dtype=float)
            ends = rows[["low", "high"]].to_numpy(dtype=float)
            reach = np.nan_to_num(np.abs(ends - center[:, None])).T
            axis.errorbar(
                center, at, xerr=reach, fmt=MARKERS[place % len(MARKERS)],
                color=COLOURS[place % len(COLOURS)], label=measure,
            )  # fmt: skip
            axis.axvline(0, color=MUTED, linewidth=1)
            axis.set_title(measure)
        axes[0][0].set_yticks(range(len(names)), names)
        axes[0][0].invert_yaxis()
        legend_above(figure, axes[0][0], columns=2)
        return as_image(figure)


Out = Annotated[File, Parameter(help="new or empty folder")]


def export(*, options: StatsOptions = StatsOptions(), out: Out) -> None:
    """Write outcomes as CSV, JSON lines and a Hugging Face dataset with its card.

    stats.py export --stats stats/starter/corrected --out exports/outcomes
    """
    outcomes = open_outcomes(options.dumps)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"--out {out} is there and not empty; name a new folder")
    check_writable(out, "--out")
    rows = outcomes.rows
    write_text(out / "outcomes.csv", rows.to_csv(index=False, lineterminator="\n"))
    lines = [json.dumps(row, ensure_ascii=False) for row in _plain_rows(rows)]
    write_text(out / "outcomes.jsonl", "\n".join(lines) + "\n")
    buffer = io.BytesIO()
    rows.to_parquet(buffer, index=False)
    write_bytes(out / "data" / FILE, buffer.getvalue())
    write_text(out / "README.md", _card(outcomes))
    print(f"{len(rows)} outcomes of {rows['item'].nunique()} items are in {out}")


def _plain_rows(rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    for row in rows.to_dict("records"):
        yield {str(name): None if cell != cell else cell for name, cell in row.items()}


def _card(outcomes: Outcomes) -> str:
    """The dataset card: where the data are, what a row is, what made it."""
    measures = []
    for one in outcomes.measures:
        what = f"`{one.column}`" + (f" at most {one.cutoff}" if one.cutoff is not None else "")
        better = "larger" if one.larger_is_better else "smaller"
        measures.append(f"- **{one.name}**: {what}; {better} is better")
    return "\n".join(
        [
            "---",
            "configs:",
            "- config_name: default",
            "  data_files: data/outcomes.parquet",
            "---",
            f"# Outcomes of {outcomes.experiment}",
            "",
            f"One row per item and condition. `stratum`: {outcomes.stratum}; "
            f"`cluster_1`, `cluster_2`: {', '.join(outcomes.clusters)}; `rank`: of the right "
            "candidate, 1 is best.",
            "",
            *measures,
            "",
            f"Signature: `{outcomes.signature}`",
            "",
        ]
    )
