"""How people's rankings agree with the gold order (appendix C): their ranks come from a file.

``rater,country,holiday,rank``: 1 is the most popular. Within each country the raters' mean rank of a holiday is compared
with its frequency; the published figures (Pearson .6334, Spearman .5865 over 5 countries, 10 holidays, 6 raters) do not
say how they were averaged, so the mean over countries and every country's own figure are given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from fluent_mlama.console import UserError, note
from fluent_mlama.cpopqa.concepts import Concept
from fluent_mlama.cpopqa.tables_in import number, read_rows

FEWEST = 3


def read_people(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """group -> rater -> concept -> rank."""
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row, cells in read_rows(path, ("rater", "country", "holiday", "rank")):
        ranks = found[cells["country"]][cells["rater"]]
        if cells["holiday"] in ranks:
            raise UserError(
                f"{path.name}: row {row}: rater {cells['rater']} ranks {cells['holiday']!r} of {cells['country']} twice"
            )
        ranks[cells["holiday"]] = number(path, row, "rank", cells["rank"])
    return found


def agreement(
    people: dict[str, dict[str, dict[str, float]]],
    concepts: Sequence[Concept],
    targets: Sequence[str],
) -> pd.DataFrame:
    """A row a target and country, and one "(mean)" a target: concepts compared, raters, Pearson, Spearman, agreement of raters.

    Pearson: of the gold rank and the mean of the raters' ranks; Spearman: of their orders. A holiday that is not among
    the concepts, or has no frequency, is not compared; fewer than three leave a country out.
    """
    known = {(one.group, one.name) for one in concepts}
    ranked = {
        (group, name)
        for group, raters in people.items()
        for ranks in raters.values()
        for name in ranks
    }
    strange = sorted(ranked - known)
    if strange and len(strange) < len(ranked):
        note(
            f"--human: {len(strange)} of {len(ranked)} ranked names are not compared, e.g. {strange[0][1]!r} of {strange[0][0]!r}"
        )
    rows = []
    for target in targets:
        gold = {
            (one.group, one.name): one.popularity[target]
            for one in concepts
            if target in one.popularity
        }
        found = []
        for group, raters in sorted(people.items()):
            names = sorted(
                {name for ranks in raters.values() for name in ranks if (group, name) in gold}
            )
            means = [
                float(np.mean([ranks[name] for ranks in raters.values() if name in ranks]))
                for name in names
            ]
            values = [-gold[group, name] for name in names]
            if len(names) >= FEWEST and len(set(means)) > 1 and len(set(values)) > 1:
                pearson = stats.pearsonr(means, stats.rankdata(values)).statistic
                figures = (
                    float(pearson),
                    float(stats.spearmanr(means, values).statistic),
                    _between(list(raters.values()), names),
                )
                found.append((target, group, len(names), len(raters), *figures))
        if found:
            averages = (float(np.nanmean([row[place] for row in found])) for place in (4, 5))
            between = [row[6] for row in found if not np.isnan(row[6])]
            summed = (sum(row[2] for row in found), max(row[3] for row in found))
            rows += [
                *found,
                (
                    target,
                    "(mean)",
                    *summed,
                    *averages,
                    float(np.mean(between)) if between else float("nan"),
                ),
            ]
    if not rows:
        raise UserError(
            f"--human: no country with {FEWEST} ranked holidays that have a frequency; take names and codes from concepts.tsv"
        )
    return pd.DataFrame(
        rows,
        columns=[
            "target",
            "country",
            "holidays",
            "raters",
            "Pearson",
            "Spearman",
            "between raters",
        ],
    )


def _between(raters: Sequence[dict[str, float]], names: Sequence[str]) -> float:
    """Mean Spearman correlation of two raters, NaN where no two ranked the same three."""
    found = []
    for first, second in combinations(raters, 2):
        both = [name for name in names if name in first and name in second]
        one, other = [first[name] for name in both], [second[name] for name in both]
        if len(both) >= FEWEST and len(set(one)) > 1 and len(set(other)) > 1:
            found.append(float(stats.spearmanr(one, other).statistic))
    return float(np.mean(found)) if found else float("nan")
