"""What the tables count: R@k, ranks, log-probabilities, and their means over relations.

Definitions follow the paper (EMNLP 2025, section 4.3): a value for each (language, relation), then the unweighted
mean over relations. Every function takes ``RankTable``s that ``selection`` has already narrowed.

How many distractors a fact had, and how many Table 4 of the paper says it had.

What follows the object in a sentence: from the benchmark's tail column, else what the prompt and the object leave over.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Sequence
from typing import cast

import numpy as np
import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.ranking.paper import MAX_DISTRACTORS
from fluent_mlama.records.results import aliases_of
from fluent_mlama.reporting.loading import RankTable
from fluent_mlama.reporting.selection import Selection

Measure = Callable[[RankTable], pd.Series]
"""From one table to one number for each verbalisation (NaN where it is not defined)."""


def recall_at(k: int) -> Measure:
    """R@k: the share of facts whose best correct rank is at most k."""
    return lambda table: (table.rank <= k).mean()


def mean_rank(table: RankTable) -> pd.Series:
    """Mean over facts of the best correct rank."""
    return table.rank.mean()


def mean_of_all_forms(table: RankTable) -> pd.Series:
    """Mean over all correct forms of all facts (paper protocol: a fact has several correct forms, each with a rank)."""
    return pd.Series({v: all_ranks(table, v).mean() for v in table.verbalisations})


def percentile(share: float) -> Measure:
    """Linear percentile (0 to 100) of the ranks of all correct forms."""
    return lambda table: pd.Series(
        {v: np.percentile(all_ranks(table, v), share) for v in table.verbalisations}
    )


def all_ranks(table: RankTable, verbalisation: str) -> np.ndarray:
    """Ranks of every correct form of every fact (paper); the entity's rank of every fact (corrected)."""
    if not table.form_ranks:
        return table.rank[verbalisation].to_numpy()
    return np.array(
        [rank for ranks in table.form_ranks[verbalisation] for rank in ranks.values()], dtype=float
    )


def mean_prompt_logprob(table: RankTable) -> pd.Series:
    """Mean natural-log probability of the prompt over the facts where it is finite in every verbalisation."""
    finite = np.isfinite(table.prompt_prob.to_numpy()).all(axis=1)
    return table.prompt_prob[finite].mean()


def share_of_minus_infinity(table: RankTable) -> pd.Series:
    """Share of facts whose prompt probability underflowed to -inf."""
    return pd.Series(
        {v: float(np.isneginf(table.prompt_prob[v]).mean()) for v in table.verbalisations}
    )


def inflection_deltas(table: RankTable) -> pd.DataFrame:
    """rank(label) - rank(the other form), facts × verbalisations, for facts with exactly two correct forms, the label one of them.

    The paper's Table 2: positive where the inflected form ranks better than the label from the dictionary. A fact counts
    only if it has the two forms in every verbalisation.
    """
    if not table.form_ranks:
        raise UserError(
            f"{table.name} follows the corrected protocol, which ranks entities: it has no rank for each form to compare"
        )
    labels = table.facts["obj_label"]
    deltas: dict[str, list[int]] = {v: [] for v in table.verbalisations}
    kept = []
    for position, (row, label) in enumerate(labels.items()):
        ranks = [table.form_ranks[v][position] for v in table.verbalisations]
        if all(len(forms) == 2 and label in forms for forms in ranks):
            kept.append(row)
            for v, forms in zip(table.verbalisations, ranks, strict=True):
                deltas[v].append(2 * forms[label] - sum(forms.values()))
    return pd.DataFrame(deltas, index=kept, columns=list(table.verbalisations), dtype=float)


def mean_inflection_delta(table: RankTable) -> pd.Series:
    """Mean of ``inflection_deltas`` over facts."""
    return inflection_deltas(table).mean()


def comma_in_template_only(table: RankTable, verbalisation: str = "gt") -> float:
    """Share of facts named formally ("Surname, Name"): a comma in the template's prompt, none in the other's."""
    formal = table.prompts("template").str.contains(",", regex=False) & ~table.prompts(
        verbalisation
    ).str.contains(",", regex=False)
    return float(formal.mean())


def by_relation(selection: Selection, measure: Measure) -> pd.DataFrame:
    """relations × (language, verbalisation): the measure of each table."""
    columns = pd.MultiIndex.from_product(
        [selection.langs, selection.verbalisations], names=("lang", "verbalisation")
    )
    values = [
        [measure(selection.tables[lang, relation]) for lang in selection.langs]
        for relation in selection.relations
    ]
    rows = [[of_lang[v] for of_lang in row for v in selection.verbalisations] for row in values]
    return pd.DataFrame(rows, index=list(selection.relations), columns=columns)


def macro(selection: Selection, measure: Measure) -> pd.DataFrame:
    """verbalisations × languages: the unweighted mean over relations, relations without a value (NaN) left out."""
    means = by_relation(selection, measure).mean()
    return means.unstack("lang").loc[list(selection.verbalisations), list(selection.langs)]


def value_at(frame: pd.DataFrame, row: Hashable, column: Hashable) -> float:
    """One number of a frame of numbers, as a plain float."""
    return float(cast(float, frame.at[row, column]))


def pooled_ranks(tables: Sequence[RankTable], verbalisation: str) -> np.ndarray:
    """Best ranks of all facts of several tables in one array (the paper's Figure 4)."""
    return np.concatenate([table.rank[verbalisation].to_numpy() for table in tables])


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
        [min(MAX_DISTRACTORS, size - len(taken - {""})) for taken in correct_and_excluded(table)],
        index=table.facts.index,
    )


def published_pool(table: RankTable) -> int:
    """The "distractor pool" of the paper's Table 4, which is wrong: it counts an alias list as one string, and correct forms too."""
    forms = {form for v in table.verbalisations for form in table.objects(v)}
    return min(
        MAX_DISTRACTORS, len(forms | {repr(aliases_of(cell)) for cell in table.facts["aliases"]})
    )


def tails(table: RankTable, verbalisation: str) -> pd.Series:
    """The rest of each sentence; "" where the sentence does not begin with prompt + object."""
    column = f"{verbalisation}_tail"
    if column in table.facts:
        return table.facts[column]
    sentences = table.facts[
        "template" if verbalisation == "template" else f"{verbalisation}_translation"
    ]
    starts = table.prompts(verbalisation) + table.objects(verbalisation)
    rest = [
        sentence.removeprefix(start) if sentence.startswith(start) else ""
        for sentence, start in zip(sentences, starts, strict=True)
    ]
    return pd.Series(rest, index=table.facts.index)


def has_words(text: str) -> bool:
    """Whether a tail holds a letter or a digit, so more than closing marks."""
    return any(unicodedata.category(char)[0] in "LN" for char in text)
