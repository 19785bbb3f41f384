"""Scores beside ranks: for each fact what a verbalisation gains on the template in fluency, in retrieval and in length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from fluent_mlama.console import UserError, note
from fluent_mlama.fluency.judging import sentences
from fluent_mlama.reporting.correlations import LENGTH, QUALITY, RETRIEVAL
from fluent_mlama.reporting.loading import RankTable
from fluent_mlama.reporting.quality import KEY
from fluent_mlama.reporting.selection import Selection


def fact_gains(
    selections: Sequence[Selection], scores_of: Callable[[RankTable], pd.DataFrame]
) -> pd.DataFrame:
    """``lang``, ``verbalisation``, ``relation``, ``sub_uri``, ``obj_uri``, and each fact's gains on the template: ``qe_delta``,
    ``r1_delta`` (−1, 0, 1), ``length_delta`` (characters). Facts without both scores are left out, and told of."""
    parts, lacking, whole = [], 0, 0
    for selection in selections:
        for table in selection.tables.values():
            scores, length = scores_of(table), sentences(table).map(len)
            hit = (table.rank <= 1).astype(int)
            for v in (v for v in table.verbalisations if v != "template"):
                both = scores[v].notna() & scores["template"].notna()
                lacking, whole = lacking + int((~both).sum()), whole + len(both)
                values = {
                    QUALITY: scores[v] - scores["template"],
                    RETRIEVAL: hit[v] - hit["template"],
                    LENGTH: length[v] - length["template"],
                }
                ids = {"lang": table.lang, "verbalisation": v, "relation": table.relation}
                parts.append(
                    pd.DataFrame(
                        ids | {c: table.facts[c] for c in ("sub_uri", "obj_uri")} | values
                    )[both]
                )
    facts = pd.concat(parts, ignore_index=True)
    if facts.empty:
        raise UserError("no sentence has a score: are the scores of these dumps?")
    if lacking:
        note(
            f"{lacking} of {whole} sentences have no score, or their template has none; they are left out of means and correlations"
        )
    return facts


def relation_gains(facts: pd.DataFrame) -> pd.DataFrame:
    """``KEY``, ``qe_delta`` and ``length_delta``: means over facts."""
    return facts.groupby(KEY, sort=False, as_index=False)[[QUALITY, LENGTH]].mean()
