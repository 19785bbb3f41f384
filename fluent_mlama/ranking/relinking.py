"""Stored scores seen through another linking function, or by the other protocol's rule. No model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.languages import language
from fluent_mlama.linking import Linking, Unigrams, evidence
from fluent_mlama.ranking.corrected import Frame, read_frame
from fluent_mlama.records.benchmark import name_columns
from fluent_mlama.records.results import ProtocolName

RELINKED = "relinked"
"""The column that holds the new scores."""


def columns_for(linking: Linking) -> list[str]:
    """The columns of a scores file that this function and the ranks need."""
    needed = [
        "row",
        "obj_uri",
        "verbalisation",
        "candidate",
        "role",
        "entity",
        "own",
        "prompt_logprob",
        "logprob",
    ]
    needed += ["token_ids"] if linking.kind not in {"lp", "pmi", "per-char"} else []
    return needed + (["neutral_logprob"] if linking.needs == "prior" else [])


def relink(
    scores: pd.DataFrame,
    linking: Linking,
    facts: pd.DataFrame,
    lang: str,
    protocol: ProtocolName,
    unigrams: Unigrams | None,
) -> pd.Series:
    """One number a candidate by this linking function; with ``lp`` the stored scores themselves.

    facts: benchmark columns by row number; they tell how long the tails are where characters count.
    """
    total = scores["logprob"].to_numpy(dtype=np.float64)
    if linking.kind == "lp":
        return scores["logprob"]
    more: dict[str, np.ndarray] = {}
    if linking.needs == "prior":
        more["prior"] = scores["neutral_logprob"].to_numpy(dtype=np.float64)
    if linking.needs == "characters":
        more["characters"] = _characters(scores, facts, lang, protocol)
    if linking.needs == "unigram":
        if unigrams is None:
            raise UserError(
                f"--linking {linking.name} needs token frequencies: give --unigrams FILE, or --unigrams counts"
            )
        more["unigram"] = np.array([unigrams.look_up(ids).sum() for ids in scores["token_ids"]])
    tokens = (
        scores["token_ids"].str.len().to_numpy() if "token_ids" in scores else np.ones(len(scores))
    )
    with np.errstate(invalid="ignore"):
        values = linking.score(evidence(total, tokens, **more))
    return pd.Series(
        np.where(np.isnan(values), -np.inf, values), index=scores.index
    )  # -inf minus -inf says nothing in its favour


def _characters(
    scores: pd.DataFrame, facts: pd.DataFrame, lang: str, protocol: ProtocolName
) -> np.ndarray:
    """Characters of what was scored: the form, and in protocol `corrected` its separator and tail."""
    lengths = scores["candidate"].str.len().to_numpy(dtype=np.float64)
    if protocol == "corrected":
        around = {
            key: _around(facts, key, lang)
            for key in set(zip(scores["row"], scores["verbalisation"], strict=True))
        }
        lengths += np.array(
            [around[key] for key in zip(scores["row"], scores["verbalisation"], strict=True)]
        )
    return lengths


def _around(facts: pd.DataFrame, key: tuple[int, str], lang: str) -> int:
    row, verbalisation = key
    names = name_columns(verbalisation)
    present = set(facts.columns)
    names = names._replace(
        tail=names.tail if names.tail in present else None,
        status=names.status if names.status in present else None,
    )
    cells = {str(name): str(cell) for name, cell in facts.loc[row].items()}
    frame = read_frame(cells, names, language(lang), accept_unsure=True)  # the row was ranked
    return len(frame.separator + frame.tail) if isinstance(frame, Frame) else 0


def for_protocol(
    scores: pd.DataFrame, scored_by: ProtocolName, ranked_by: ProtocolName
) -> pd.DataFrame:
    """The scores as the other protocol's rule wants them.

    Scores of `paper` by the rule of `corrected`: gold's forms are one entity, each distractor string is one of its own.
    Scores of `corrected` by the rule of `paper`: each form is a candidate; nothing needs to change.
    """
    if (scored_by, ranked_by) != ("paper", "corrected"):
        return scores
    wrong = scores["role"] == "distractor"
    entity = scores["obj_uri"].where(~wrong, "form " + scores["candidate"])
    return scores.assign(entity=entity, own=scores["own"] | wrong)


def without(columns: Sequence[str], results: Sequence[str]) -> list[str]:
    """The benchmark's columns of a dump: all but the results, ``v_top{k}_correct`` of any k among them."""
    known = set(results)
    return [
        name
        for name in columns
        if name not in known and not (name.endswith("_correct") and "_top" in name)
    ]
