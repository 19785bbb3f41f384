"""How many distractors a fact had, and how many Table 4 of the paper says it had."""

from __future__ import annotations

import pandas as pd

from fluent_mlama.ranking.paper import POOL_LIMIT
from fluent_mlama.records.results import aliases_of
from fluent_mlama.reporting.loading import RankTable


def correct_and_excluded(table: RankTable) -> list[set[str]]:
    """For each fact, the strings that cannot be its distractors: its object forms and its aliases (protocol paper, 2)."""
    columns = [table.objects(v) for v in table.verbalisations]
    return [
        {form for form in forms if form} | set(aliases_of(aliases))
        for aliases, *forms in zip(table.facts["aliases"], *columns, strict=True)
    ]


def pool(table: RankTable) -> set[str]:
    """Every object form and every alias of the dump's rows."""
    return set().union(*correct_and_excluded(table)) - {""}


def distractor_counts(table: RankTable) -> pd.Series:
    """Distractors of each fact: recorded in a corrected dump, counted from the pool in a paper dump.

    Only over all verbalisations and all rows of the dump: the pool was made of them.
    """
    if table.n_distractors is not None:
        return table.n_distractors
    size = len(pool(table))
    return pd.Series(
        [min(POOL_LIMIT, size - len(taken - {""})) for taken in correct_and_excluded(table)],
        index=table.facts.index,
    )


def published_pool(table: RankTable) -> int:
    """The "distractor pool" of the paper's Table 4, which is wrong: it counts an alias list as one string, and correct forms too."""
    forms = {form for v in table.verbalisations for form in table.objects(v)}
    return min(POOL_LIMIT, len(forms | {repr(aliases_of(cell)) for cell in table.facts["aliases"]}))
