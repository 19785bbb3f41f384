"""Pooling: languages vote for entities, the most voted is the prediction (Kassner et al. 2021,
section 4.5, Table 3).

The paper leaves open how ties fall and how labels become entities. Here: a label is the entity that
it most often names among that language's own triples of the relation (then the smallest id);
without an id, the English label of those triples, or else the label itself. Tie rules: ``english``
(the English vote where it is among the tied, else the best mean score), ``score`` (best mean
score), ``random``, ``expected`` (the share of the tied that is right).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.languages import fold_case
from fluent_mlama.mlama.measures import ENGLISH, english_of, macro, mean
from fluent_mlama.mlama.results import Results

TIE_RULES = ("english", "score", "random", "expected")


@dataclass(frozen=True, slots=True)
class Vote:
    """One language's answer to one fact: the entity and the model's score."""

    lang: str
    entity: str
    score: float


@dataclass(frozen=True, slots=True)
class Pooled:
    """The outcome for one fact. credit: 1 right, 0 wrong; a share of 1 under ``expected``."""

    credit: float
    tied: bool
    votes: int


def pool_votes(votes: Sequence[Vote], gold: str, rule: str, draw: random.Random) -> Pooled:
    """The credit that the most voted entity gets; no votes are wrong."""
    counts = Counter(vote.entity for vote in votes)
    if not counts:
        return Pooled(0.0, False, 0)
    most = max(counts.values())
    tied = sorted(entity for entity, count in counts.items() if count == most)
    if len(tied) == 1:
        return Pooled(float(tied[0] == gold), False, len(votes))
    if rule == "expected":
        return Pooled((gold in tied) / len(tied), True, len(votes))
    if rule == "random":
        winner = draw.choice(tied)
    else:
        english = next((vote.entity for vote in votes if vote.lang == ENGLISH), None)
        scores = {
            entity: mean([vote.score for vote in votes if vote.entity == entity]) for entity in tied
        }
        best = min(tied, key=lambda entity: (-scores[entity], entity))
        winner = english if rule == "english" and english in tied else best
    return Pooled(float(winner == gold), True, len(votes))


def entities_of(frame: pd.DataFrame, english: pd.DataFrame) -> dict[str, str]:
    """label -> entity for every object label of one (language, relation)."""
    named: dict[str, Counter[str]] = {}
    for lineid, label, uri in zip(frame.index, frame["gold"], frame["obj_uri"], strict=True):
        name = uri or english_name(
            str(english.at[lineid, "gold"]) if lineid in english.index else label
        )
        named.setdefault(label, Counter())[name] += 1
    return {
        label: min(counts, key=lambda name: (-counts[name], *_by_number(name)))
        for label, counts in named.items()
    }


def english_name(label: str) -> str:
    """What stands for an entity without an id: a key of all languages, so all labels are folded
    alike.
    """
    return f"label:{fold_case(label, ENGLISH)}"


def _by_number(name: str) -> tuple[bool, int, str]:
    match = re.fullmatch(r"Q(\d+)", name)
    return match is None, int(match[1]) if match else 0, name


def votes_of(results: Results, relation: str) -> dict[int, list[Vote]]:
    """lineid -> the votes of all languages that have that triple, English first where it is among
    them.
    """
    english = english_of(results).get(relation)
    votes: dict[int, list[Vote]] = {}
    for lang in sorted(results.frames, key=lambda one: (one != ENGLISH, one)):
        frame = results.frames[lang].get(relation)
        if frame is None or english is None:
            continue
        entities = entities_of(frame, english)
        for lineid, prediction, score in zip(
            frame.index, frame["prediction"], frame["score"], strict=True
        ):
            if prediction:
                votes.setdefault(lineid, []).append(
                    Vote(lang, entities.get(prediction, english_name(prediction)), score)
                )
    return votes


def pool(results: Results, rule: str = "english", seed: int = 0) -> dict[str, dict[int, Pooled]]:
    """relation -> lineid -> outcome, for every English triple."""
    if rule not in TIE_RULES:
        raise UserError(f"tie rule '{rule}': choose from {', '.join(TIE_RULES)}")
    if len(results.frames) < 2:
        raise UserError("pooling needs at least two languages, English among them")
    outcomes: dict[str, dict[int, Pooled]] = {}
    for relation, frame in english_of(results).items():
        gold = entities_of(frame, frame)
        votes = votes_of(results, relation)
        outcomes[relation] = {
            lineid: pool_votes(
                votes[lineid],
                uri or gold[label],
                rule,
                random.Random(f"{seed}|{relation}|{lineid}"),
            )
            for lineid, label, uri in zip(frame.index, frame["gold"], frame["obj_uri"], strict=True)
        }
    return outcomes


def pooling_table(results: Results, seed: int = 0) -> pd.DataFrame:
    """English alone, then the pool under each tie rule: macro p1 over relations, the gain, and the
    tied facts.
    """
    english = english_of(results)
    alone = macro(english)
    size = sum(map(len, english.values()))
    rows = [
        {
            "answers": "English alone",
            "languages": 1,
            "triples": size,
            "tied facts": 0,
            "p1": alone,
            "gain": 0.0,
        }
    ]
    for rule in TIE_RULES:
        outcomes = pool(results, rule, seed)
        pooled = mean([mean([one.credit for one in facts.values()]) for facts in outcomes.values()])
        tied = sum(one.tied for facts in outcomes.values() for one in facts.values())
        name = f"pooled, ties: {rule}"
        rows.append(
            {
                "answers": name,
                "languages": len(results.frames),
                "triples": size,
                "tied facts": tied,
                "p1": pooled,
                "gain": pooled - alone,
            }
        )
    return pd.DataFrame(rows)


def pooling_by_relation(results: Results, rule: str = "english", seed: int = 0) -> pd.DataFrame:
    """English alone and pooled, a row a relation, with how many languages vote for a fact on the
    average.
    """
    outcomes: Mapping[str, Mapping[int, Pooled]] = pool(results, rule, seed)
    rows = []
    for relation, frame in english_of(results).items():
        facts = list(outcomes[relation].values())
        alone, pooled = float(frame["correct"].mean()), mean([one.credit for one in facts])
        rows.append(
            {
                "relation": relation,
                "triples": len(frame),
                "votes a fact": mean([float(one.votes) for one in facts]),
                "tied facts": sum(one.tied for one in facts),
                "English p1": alone,
                "pooled p1": pooled,
                "gain": pooled - alone,
            }
        )
    return pd.DataFrame(rows)
