"""How small a difference an experiment could find, before any model is loaded.

A paired difference of hits is -1, 0 or 1 per fact; with a share d of facts where the two conditions differ its variance
is about d. Facts about one object go together: with correlation rho between them the variance of the weighted mean is

    V(rho) = d * (rho * sum_o W_o^2 + (1 - rho) * sum_i w_i^2)      W_o: total weight of an object's facts

and the detectable difference is (t.975 + t.80)(G* - 1) * sqrt(V), as ``compare`` prints it after the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from cyclopts import Parameter, Token
from tabulate import tabulate

from fluent_mlama.console import note
from fluent_mlama.ranking.arguments import AnyDataOptions
from fluent_mlama.ranking.corrected import select_frames
from fluent_mlama.ranking.paper import select_rows
from fluent_mlama.ranking.task import cells_by_row, choose_verbalisations
from fluent_mlama.reporting.inference import POWER, Design, design_of

DISCORDANT = 0.2
"""Facts with a hit in one verbalisation only: .06 to .34 in the published Llama-2 dumps."""
CORRELATIONS = (0.0, 0.1, 0.2)
"""Between such differences of facts about one object: -.06 to .15 in the published dumps."""


def _share(_: Any, tokens: Sequence[Token]) -> float:
    value = tokens[-1].value
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ValueError(
            f"{value!r} is not a share; give a number above 0 and up to 1, such as 0.2"
        )
    return share


Discordant = Annotated[
    float,
    Parameter(
        converter=_share,
        n_tokens=1,
        help="share of facts that only one of two verbalisations finds "
        "(.06 to .34 in the published Llama-2 dumps)",
    ),
]


def plan(
    *,
    what: AnyDataOptions = AnyDataOptions(),
    protocol: Literal["paper", "corrected"] = "corrected",
    discordant: Discordant = DISCORDANT,
    weights: Literal["relation", "object", "fact"] = "relation",
) -> None:
    """How small a difference in R@1 an experiment could find, before any model is loaded.

        stats.py plan --data starter
        stats.py plan --data fixed_data -l ru,cs -r P19,P20 --discordant .3

    A difference of this size is found in 80 % of such experiments (5 %, two-sided), at each correlation rho between
    facts about one object. Nothing is printed below 10 effective objects (G*): too few for a test.

    Args:
        protocol: whose rule says which rows are ranked
        weights: what counts alike
    """
    parts = []
    for benchmark in what.benchmarks():
        verbalisations = choose_verbalisations(benchmark, what.verbalisations)
        if protocol == "corrected":
            _, kept, _ = select_frames(benchmark, verbalisations)
        else:
            kept = list(select_rows(benchmark, verbalisations).kept)
        cells = cells_by_row(benchmark)
        for row in kept:
            fact = (cells[row]["sub_uri"], cells[row]["obj_uri"])
            parts.append((benchmark.lang, benchmark.relation, *fact))
    facts = pd.DataFrame(parts, columns=["lang", "relation", "sub_uri", "obj_uri"])
    table = plan_table(facts, discordant, weights=weights)
    print(tabulate(table, headers="keys", showindex=False, floatfmt="z.3f", missingval="–"))
    left_out = len(facts) - int(table["facts"].sum() if len(table) else 0)
    if left_out:
        note(f"{left_out} facts of relations with one object are left out, as in stats.py compare")


def detectable(design: Design, discordant: float, correlation: float, level: float = 0.95) -> float:
    """The true difference of hits that a test finds in ``POWER`` of samples; NaN with too few objects (G* below 10)."""
    objects = np.bincount(design.clusters[0], weights=design.weight)
    together, apart = np.sum(objects**2), np.sum(design.weight**2)
    variance = discordant * (correlation * together + (1 - correlation) * apart)
    reach = design.quantile(0.5 + level / 2) + design.quantile(POWER)
    return float(reach * np.sqrt(variance))


def plan_table(
    facts: pd.DataFrame,
    discordant: float = DISCORDANT,
    correlations: Sequence[float] = CORRELATIONS,
    weights: str = "relation",
) -> pd.DataFrame:
    """A row per language: facts, relations, objects, G* and the detectable difference at each correlation.

    facts: columns lang, relation, sub_uri, obj_uri. Relations with one object are left out, as in ``compare``.
    """
    several = facts.groupby(["lang", "relation"])["obj_uri"].transform("nunique") > 1
    rows = []
    for lang, own in facts[several].groupby("lang", sort=False):
        design = design_of(own, ["relation"], ["obj_uri", "sub_uri"], weights)
        row = {
            "lang": lang,
            "facts": len(own),
            "relations": own["relation"].nunique(),
            "objects": own["obj_uri"].nunique(),
            "effective": design.effective,
        }
        for correlation in correlations:
            row[f"rho={correlation:g}"] = detectable(design, discordant, correlation)
        rows.append(row)
    return pd.DataFrame(rows)
