"""Table 3 (worked examples) and Table 4 (how far the targets' gold orders agree)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import pandas as pd

from fluent_mlama.cpopqa.concepts import Concept
from fluent_mlama.cpopqa.items import Item, numbered
from fluent_mlama.cpopqa.measures import mark
from fluent_mlama.cpopqa.parsing import Answer

EXAMPLES = 3


def target_agreement(items: Sequence[Item], concepts: Sequence[Concept]) -> pd.DataFrame:
    """Each pair of targets and n: the first target's questions in the second one's order. agreement is a share.

    Questions with a tie or a name without value for the second target cannot be compared; they are counted.
    """
    value = {(one.group, one.name): one.popularity for one in concepts}
    rows = []
    targets = list(dict.fromkeys(item.target for item in items))
    for first, second in combinations(targets, 2):
        for n in dict.fromkeys(item.n for item in items if item.target == first):
            chosen = [item for item in items if (item.target, item.n) == (first, n)]
            marks = []
            for item in chosen:
                found = {name: value[item.group, name].get(second) for name in item.gold}
                known = {name: number for name, number in found.items() if number is not None}
                if len(set(known.values())) == n:
                    order = tuple(sorted(known, key=lambda name: -known[name]))
                    marks.append(mark(Answer(order, "full"), item.gold))
            count = len(marks)
            agree = sum(one.exact for one in marks) / count if count else float("nan")
            mean = sum(one.diff for one in marks) / count if count else float("nan")
            rows.append((f"{first} / {second}", n, count, len(chosen) - count, agree, mean))
    return pd.DataFrame(
        rows, columns=["targets", "n", "questions", "not comparable", "agreement", "Diff"]
    )


def worked_examples(
    items: Sequence[Item], orders: Mapping[str, Mapping[str, Answer]]
) -> pd.DataFrame:
    """Three of the longest questions, from different groups: the gold order and every model's, with its ρ."""
    longest = max(item.n for item in items)
    chosen: list[Item] = []
    for item in items:
        if item.n == longest and all(item.group != other.group for other in chosen):
            chosen.append(item)
        if len(chosen) == EXAMPLES:
            break
    rows = []
    for item in chosen:
        rows += [(item.id, item.group, "(question)", ", ".join(item.options), float("nan"))]
        rows += [(item.id, item.group, "(gold)", numbered(item.gold), 1.0)]
        for model, answers in orders.items():
            if item.id in answers:
                answer = answers[item.id]
                rows.append(
                    (
                        item.id,
                        item.group,
                        model,
                        numbered(answer.order) or "(none)",
                        1 - 2 * mark(answer, item.gold).diff,
                    )
                )
    return pd.DataFrame(rows, columns=["question", "group", "model", "order", "rho"])
