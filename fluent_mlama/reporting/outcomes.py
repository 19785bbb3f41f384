"""The comparison of conditions for any experiment: one statistics layer over one table of outcomes.

Rank dumps of the fluent experiment are read into the same table (``outcomes_of_dumps``); the paper's own tables and the
full ``compare`` of dumps stay in their modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fluent_mlama.console import UserError, note
from fluent_mlama.outcomes import FILE, Measure, Outcomes, outcome_rows, read_outcomes
from fluent_mlama.reporting.inference import (
    Design,
    Scale,
    design_of,
    holm,
    intervals,
    sign_flips,
)
from fluent_mlama.reporting.loading import DumpFolder, open_dumps
from fluent_mlama.reporting.paired import Settings

_SCALES = {"share": Scale.SHARE, "rank": Scale.RANK, "number": Scale.DIFFERENCE}
VALUE_COLUMNS = (
    "part",
    "condition",
    "measure",
    "items",
    "strata",
    "effective",
    "value",
    "low",
    "high",
)
DIFFERENCE_COLUMNS = (
    *("part", "first", "second", "measure", "items", "effective", "first_value", "second_value"),
    *("difference", "low", "high", "detectable", "p", "p_holm"),
)


def has_outcomes(path: Path) -> bool:
    """Whether a folder holds an outcomes table."""
    return path.is_dir() and (path / FILE).is_file()


def open_outcomes(path: Path) -> Outcomes:
    """The outcomes of a folder of any experiment: its table, or the rank dumps there."""
    return read_outcomes(path) if has_outcomes(path) else outcomes_of_dumps(open_dumps(path))


def outcomes_of_dumps(folder: DumpFolder, cutoffs: Sequence[int] = (1, 3, 5)) -> Outcomes:
    """All rank dumps of a folder as outcomes: part = language, stratum = relation, clusters = object and subject."""
    parts = []
    tables = folder.tables()
    for table in tables:
        for verbalisation in table.verbalisations:
            parts.append(
                pd.DataFrame(
                    {
                        "part": table.lang,
                        "stratum": table.relation,
                        "item": table.fact_keys(),
                        "cluster_1": table.facts["obj_uri"],
                        "cluster_2": table.facts["sub_uri"],
                        "condition": verbalisation,
                        "rank": table.rank[verbalisation].astype(float),
                        "n_candidates": np.nan
                        if table.n_distractors is None
                        else table.n_distractors.astype(float) + 1,
                    }
                )
            )
    rows = pd.concat(parts, ignore_index=True)
    measures = [Measure(f"R@{k}", cutoff=k) for k in cutoffs]
    measures.append(Measure("mean rank", scale="rank", larger_is_better=False))
    return Outcomes(
        f"fluent, protocol {tables[0].protocol}",
        outcome_rows(rows.itertuples(index=False, name=None)),  # type: ignore[arg-type]
        tuple(measures),
        ("object", "subject"),
        "relation",
        folder.signature(tables),
    )


def design_of_items(rows: pd.DataFrame, outcomes: Outcomes) -> Design:
    """Strata weigh the same; clusters as the experiment names them."""
    clusters = ["cluster_1", "cluster_2"][: len(outcomes.clusters)]
    strata = ["stratum"] if rows["stratum"].nunique() > 1 else []
    return design_of(rows, strata, clusters, "relation" if strata else "fact")


def compare_outcomes(
    outcomes: Outcomes, baseline: str, settings: Settings
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(values, differences) of each condition and of each against the baseline, on the items that both have.

    Columns: ``VALUE_COLUMNS`` and ``DIFFERENCE_COLUMNS``. Differences are condition minus baseline; Holm's family is one
    measure over all parts and conditions.
    """
    if baseline not in outcomes.conditions:
        raise UserError(
            f"no condition '{baseline}': there are {', '.join(outcomes.conditions)}; choose with --baseline"
        )
    values, differences = [], []
    names = [measure.name for measure in outcomes.measures]
    scales = [_SCALES[measure.scale] for measure in outcomes.measures]
    for part, rows in outcomes.rows.groupby("part", sort=False):
        tables = {
            name: own.set_index("item") for name, own in rows.groupby("condition", sort=False)
        }
        for name, own in tables.items():
            design = design_of_items(own, outcomes)
            found = intervals(design, _columns(own, outcomes), scales, level=settings.level)
            values.append(
                pd.DataFrame(
                    {
                        "part": part,
                        "condition": name,
                        "measure": names,
                        "items": len(own),
                        "strata": own["stratum"].nunique(),
                        "effective": design.effective,
                        "value": found.estimate,
                        "low": found.low,
                        "high": found.high,
                    }
                )
            )
        if baseline not in tables:
            continue
        for name in tables:
            shared = tables[baseline].index.intersection(tables[name].index)
            if name == baseline or shared.empty:
                continue
            first, second = tables[baseline].loc[shared], tables[name].loc[shared]
            design = design_of_items(second, outcomes)
            before, after = _columns(first, outcomes), _columns(second, outcomes)
            gap = after - before
            found = intervals(design, gap, [Scale.DIFFERENCE] * len(names), level=settings.level)
            p_values = sign_flips([design], gap, flips=settings.resamples, seed=settings.seed)[0]
            differences.append(
                pd.DataFrame(
                    {
                        "part": part,
                        "first": baseline,
                        "second": name,
                        "measure": names,
                        "items": len(shared),
                        "effective": design.effective,
                        "first_value": design.mean(before),
                        "second_value": design.mean(after),
                        "difference": found.estimate,
                        "low": found.low,
                        "high": found.high,
                        "detectable": found.detectable,
                        "p": p_values,
                    }
                )
            )
    joined = pd.concat(differences, ignore_index=True) if differences else pd.DataFrame()
    for _, family in joined.groupby("measure", sort=False) if len(joined) else ():
        joined.loc[family.index, "p_holm"] = holm(family["p"].to_numpy(dtype=float))
    return (
        pd.concat(values, ignore_index=True).reindex(columns=list(VALUE_COLUMNS)),
        joined.reindex(columns=list(DIFFERENCE_COLUMNS)),
    )


def _columns(rows: pd.DataFrame, outcomes: Outcomes) -> np.ndarray:
    return np.column_stack([measure.values(rows) for measure in outcomes.measures])


def join_outcomes(folders: dict[str, Outcomes]) -> Outcomes:
    """Outcomes of several folders of one experiment as one, each condition named ``folder:condition``."""
    first, *others = folders.values()
    for other in others:
        if (other.experiment, other.measures) != (first.experiment, first.measures):
            raise UserError(
                f"{first.experiment} and {other.experiment} measure different things; compare folders of one experiment"
            )
    rows = [
        own.rows.assign(condition=label + ":" + own.rows["condition"])
        for label, own in folders.items()
    ]
    signature = " and ".join(f"{label}: {own.signature}" for label, own in folders.items())
    return Outcomes(
        first.experiment,
        pd.concat(rows, ignore_index=True),
        first.measures,
        first.clusters,
        first.stratum,
        signature,
    )


def statement(outcomes: Outcomes, settings: Settings) -> list[str]:
    """What the figures are about, for below a table."""
    clusters = " and new ".join(f"{name}s" for name in outcomes.clusters)
    rows = outcomes.rows
    return [
        f"{outcomes.experiment}: {rows['item'].nunique()} items, {rows['stratum'].nunique()} {outcomes.stratum}s, "
        f"{len(outcomes.conditions)} conditions",
        f"Estimand: new {clusters} of the same {outcomes.stratum}s. Intervals: clustered (CR3), level {settings.level:.0%}. "
        f"p: {settings.resamples} sign flips of whole clusters, seed {settings.seed}; Holm over each measure's tests",
        f"signature: {outcomes.signature}",
    ]


def tell_missing(outcomes: Outcomes) -> None:
    """Say which conditions some items lack: those items are left out of their comparisons."""
    counts = outcomes.rows.groupby("condition", sort=False)["item"].count()
    if counts.nunique() > 1:
        told = ", ".join(f"{name} {count}" for name, count in counts.items())
        note(f"conditions have different numbers of items, compared on those they share: {told}")
