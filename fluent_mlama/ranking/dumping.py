"""From a table of scores to a rank dump: the one way, for a run that has just scored and for ranking again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from fluent_mlama.ranking import corrected, paper
from fluent_mlama.ranking.corrected import corrected_ranks
from fluent_mlama.ranking.paper import paper_ranks
from fluent_mlama.ranking.ranks import Ties
from fluent_mlama.records.dump import Dump, ProtocolName, aliases_of

EDITIONS: Mapping[ProtocolName, int] = {"paper": paper.EDITION, "corrected": corrected.EDITION}
TIES: Mapping[ProtocolName, Ties] = {"paper": "gold", "corrected": "mid"}
"""How each protocol itself ranks equal scores."""
TIE_NAMES: Mapping[Ties, str] = {
    "gold": "correct-first",
    "mid": "mid-rank",
    "worst": "correct-last",
}
"""What the signature calls them."""


def dump_of_scores(
    facts: pd.DataFrame,
    scores: pd.DataFrame,
    lang: str,
    relation: str,
    verbalisations: Sequence[str],
    protocol: ProtocolName,
    *,
    wide: bool = False,
    logprob: str = "logprob",
    ties: Ties | None = None,
    top: Sequence[int] = (),
) -> Dump:
    """The dump of the rows that ``scores`` holds.

    facts: benchmark columns by row number (aliases as a cell or as a list). logprob: the column of ``scores`` to rank by.
    ties: None = the protocol's own rule. top: further k for ``v_top{k}_correct`` columns besides 1 and 3.
    """
    rule = TIES[protocol] if ties is None else ties
    if protocol == "corrected":
        ranks = corrected_ranks(scores, verbalisations, logprob=logprob, ties=rule, top=top)
    else:
        ranks = paper_ranks(scores, verbalisations, wide=wide, logprob=logprob, ties=rule, top=top)
    columns = facts.loc[ranks.index].astype("object")
    if "aliases" in columns:
        columns["aliases"] = pd.Series(
            [aliases_of(cell) for cell in columns["aliases"]], index=columns.index, dtype="object"
        )
    return Dump(
        lang, relation, tuple(verbalisations), protocol, pd.concat([columns, ranks], axis="columns")
    )
