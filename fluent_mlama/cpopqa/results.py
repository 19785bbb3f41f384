"""Marks of every model and baseline in one table, and what is averaged from it.

A row is one model's answer to one question. Intervals and tests are those of the facts (``fluent_mlama.reporting.inference``):
questions of one group (country) are not independent, nor are those with the same right answer (a holiday of many countries).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from fluent_mlama.cpopqa.baselines import NAMES
from fluent_mlama.cpopqa.concepts import Concept
from fluent_mlama.cpopqa.items import Item, chance
from fluent_mlama.cpopqa.measures import mark
from fluent_mlama.cpopqa.parsing import Answer
from fluent_mlama.reporting.inference import Design, Scale, holm, intervals, sign_flips
from fluent_mlama.reporting.inference import design_of as rows_design

METRICS = {"first": "P@1", "exact": "Acc", "diff": "Diff"}
SCALES = [Scale.SHARE] * len(METRICS)


def mark_all(
    items: Sequence[Item], orders: Mapping[str, Mapping[str, Answer]], concepts: Sequence[Concept]
) -> pd.DataFrame:
    """(answers) model, target, n, round, group, region, answer, id, status, first, exact, diff, places, pairs, as asked."""
    regions = {one.group: one.region for one in concepts}
    rows = []
    for model, answers in orders.items():
        for item in items:
            if item.id in answers:
                marks = mark(answers[item.id], item.gold)
                asked = (
                    model,
                    item.target,
                    item.n,
                    item.round,
                    item.group,
                    regions.get(item.group, ""),
                )
                as_asked = float(answers[item.id].order[:1] == item.options[:1])
                rows.append(
                    (
                        *asked,
                        item.gold[0],
                        item.id,
                        marks.status,
                        marks.first,
                        marks.exact,
                        marks.diff,
                        marks.places,
                        marks.pairs,
                        as_asked,
                    )
                )
    columns = [
        "model",
        "target",
        "n",
        "round",
        "group",
        "region",
        "answer",
        "id",
        "status",
        *METRICS,
        "places",
        "pairs",
        "as asked",
    ]
    return pd.DataFrame(rows, columns=columns)


def design_of(rows: pd.DataFrame) -> Design:
    """The clusters of answers to one target's questions: the right first answers and the groups; without groups each question."""
    unit = rows["group"].where(rows["group"] != "", rows["id"])
    return rows_design(rows.assign(unit=unit), [], ["answer", "unit"], "fact")


def measures(results: pd.DataFrame) -> pd.DataFrame:
    """A row a target, n and model: each metric's mean, sample standard deviation over rounds and 95 % interval; answer rates.

    "Diff (full)" is over complete answers only. "first as asked": how often the answer's first name is the question's, 1 / n
    for a model that the order of the question does not lead. The standard deviation is NaN where there is one round.
    """
    rows = []
    for (target, n, model), part in results.groupby(["target", "n", "model"], sort=False):
        record: dict[str, object] = {
            "target": target,
            "n": n,
            "model": model,
            "questions": len(part),
        }
        spread = part.groupby("round")[list(METRICS)].mean().std(ddof=1)
        interval = intervals(design_of(part), part[list(METRICS)].to_numpy(dtype=float), SCALES)
        for place, (column, name) in enumerate(METRICS.items()):
            record[name] = float(part[column].mean())
            record[f"{name} sd"] = float(spread[column])
            record[f"{name} low"], record[f"{name} high"] = (
                float(interval.low[place]),
                float(interval.high[place]),
            )
        complete = part[part["status"] == "full"]
        record["Diff (full)"] = float(complete["diff"].mean()) if len(complete) else float("nan")
        record |= {
            status: float((part["status"] == status).mean())
            for status in ("full", "partial", "none")
        }
        rows.append(record | {"first as asked": float(part["as asked"].mean())})
    return pd.DataFrame(rows)


def comparisons(results: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Every model against every other and against the baselines, on the questions that both answered.

    Differences are second minus first. p: paired sign flips of whole groups and of whole right answers, the larger; each
    metric's are adjusted by Holm over the whole table. NaN where there are too few of either.
    """
    models = list(dict.fromkeys(results["model"]))
    own = [name for name in models if name not in NAMES]
    chosen = [
        *((base, name) for name in own for base in models if base in NAMES),
        *combinations(own, 2),
    ]
    rows = []
    for (target, n), part in results.groupby(["target", "n"], sort=False):
        tables = {model: rows.set_index("id") for model, rows in part.groupby("model", sort=False)}
        for first, second in chosen:
            both = [
                name
                for name in tables.get(second, part[:0]).index
                if first in tables and name in tables[first].index
            ]
            if not both:
                continue
            one, other = tables[first].loc[both], tables[second].loc[both]
            design = design_of(other.reset_index())
            differences = (other[list(METRICS)] - one[list(METRICS)]).to_numpy(dtype=float)
            p_values = sign_flips([design], differences, seed=seed)[0]
            record: dict[str, object] = {
                "target": target,
                "n": n,
                "first": first,
                "second": second,
                "questions": len(both),
            }
            for place, name in enumerate(METRICS.values()):
                record |= {
                    f"{name} change": float(differences[:, place].mean()),
                    f"p {name}": float(p_values[place]),
                }
            rows.append(record)
    table = pd.DataFrame(rows)
    for name in [column for column in table.columns if column.startswith("p ")]:
        table[name] = holm(table[name].to_numpy(dtype=float))
    return table


def paper_table(measured: pd.DataFrame, target: str) -> pd.DataFrame:
    """Tables 2 and 5: P@1 and Acc in per cent, Diff; ± is the sample standard deviation over rounds. Chance stands first.

    For n = 2 the paper prints Acc alone, as P@1 is the same and Diff is 1 − Acc where every question is answered.
    """
    rows: list[tuple[object, ...]] = []
    for n, part in measured[measured["target"] == target].groupby("n", sort=False):
        first, exact, difference = chance(int(str(n)))
        rows.append(
            (n, "(chance)", "", f"{100 * first:z.1f}", f"{100 * exact:z.1f}", f"{difference:z.3f}")
        )
        for _, one in part.iterrows():
            cells = [
                _with_spread(100 * one[name], 100 * one[f"{name} sd"], 1) for name in ("P@1", "Acc")
            ]
            rows.append(
                (
                    n,
                    one["model"],
                    one["questions"],
                    *cells,
                    _with_spread(one["Diff"], one["Diff sd"], 3),
                )
            )
    return pd.DataFrame(rows, columns=["n", "model", "questions", "P@1", "Acc", "Diff"])


def _with_spread(value: float, spread: float, digits: int) -> str:
    return f"{value:z.{digits}f}" + ("" if np.isnan(spread) else f" ± {spread:z.{digits}f}")
