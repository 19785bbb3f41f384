"""Detectable differences before a run, against simulated experiments."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fluent_mlama.reporting.inference import Scale, design_of, intervals
from fluent_mlama.reporting.planning import detectable, plan_table


def facts(relations: int = 6, objects: int = 25, each: int = 4) -> pd.DataFrame:
    """A benchmark whose objects have 1 to 2 * each - 1 facts."""
    generator = np.random.default_rng(1)
    rows = [
        ("ru", f"P{relation}", f"s{relation}_{one}_{fact}", f"o{relation}_{one}")
        for relation in range(relations)
        for one in range(objects)
        for fact in range(generator.integers(1, 2 * each))
    ]
    return pd.DataFrame(rows, columns=["lang", "relation", "sub_uri", "obj_uri"])


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_the_detectable_difference_is_found_in_four_of_five_experiments(correlation: float) -> None:
    table, discordant = facts(), 0.2
    design = design_of(table, ["relation"], ["obj_uri", "sub_uri"])
    difference = detectable(design, discordant, correlation)
    generator = np.random.default_rng(2)
    objects = design.clusters[0]
    found = 0
    for _ in range(400):
        shared = generator.normal(size=objects.max() + 1)[objects]
        own = generator.normal(size=len(table))
        noise = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
        values = difference + np.sqrt(discordant) * noise
        interval = intervals(design, values[:, None], [Scale.DIFFERENCE])
        found += interval.low[0] > 0
    # 400 experiments: the share's own standard error is .02.
    assert found / 400 == pytest.approx(0.8, abs=0.06)


def test_one_row_per_language_without_relations_of_one_object() -> None:
    table = facts()
    alone = pd.DataFrame([("ru", "P9", f"s{n}", "only") for n in range(50)], columns=table.columns)
    few = table.head(6).assign(lang="cs")
    plan = plan_table(pd.concat([table, alone, few])).set_index("lang")
    assert plan.loc["ru", ["facts", "relations", "objects"]].tolist() == [len(table), 6, 150]
    assert plan.loc["ru", "rho=0"] < plan.loc["ru", "rho=0.1"] < plan.loc["ru", "rho=0.2"]
    assert np.isnan(plan.loc["cs", "rho=0"])


def test_independent_facts_need_what_a_textbook_says() -> None:
    table = facts(relations=1, objects=100, each=1)
    plan = plan_table(table, discordant=0.25).iloc[0]
    reach = stats.t.ppf(0.975, 99) + stats.t.ppf(0.8, 99)
    assert plan["rho=0.2"] == pytest.approx(reach * np.sqrt(0.25 / 100))
