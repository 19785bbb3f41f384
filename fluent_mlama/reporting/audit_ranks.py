"""Audit of the ranks: what a dump says against itself, and against its wide twin."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from fluent_mlama.ranking.paper import POOL_LIMIT
from fluent_mlama.ranking.task import narrow_from_wide
from fluent_mlama.reporting.distractors import correct_and_excluded, pool
from fluent_mlama.reporting.findings import Finding, Outcome, some_rows
from fluent_mlama.reporting.loading import RankTable
from fluent_mlama.reporting.tails import tails

OTHER_DISTRACTORS_FROM = 0.1
"""Mean absolute change of the best rank above which two runs cannot have had the same distractors (rounding makes 0.01 to 0.03)."""


def finding(
    check: str,
    table: RankTable,
    rows: object = (),
    of: int = 0,
    detail: str = "",
    count: int | None = None,
    outcome: Outcome | None = None,
) -> Finding:
    """A finding on this dump: ``found`` where rows (or a count) show it, else ``clean``."""
    named = list(rows)  # type: ignore[call-overload]
    counted = len(named) if count is None else count
    return Finding(
        check,
        table.name,
        table.lang,
        table.relation,
        outcome or ("found" if counted else "clean"),
        counted,
        of,
        detail,
        some_rows(named),
    )


def unequal_ranks(table: RankTable) -> Iterator[Finding]:
    """Facts whose prompt is the same in two verbalisations must have the same ranks in both (fluent_mlama 3.6).

    In the corrected protocol the rest of the sentence must be the same as well, since it is scored.
    """
    pairs, unequal = 0, []
    for first, second in combinations(table.verbalisations, 2):
        same = [
            a == b
            for a, b in zip(
                _scored_around(table, first), _scored_around(table, second), strict=True
            )
        ]
        if table.form_ranks:
            ranks = [
                a != b
                for a, b in zip(table.form_ranks[first], table.form_ranks[second], strict=True)
            ]
        else:
            ranks = [a != b for a, b in zip(table.rank[first], table.rank[second], strict=True)]
        pairs += sum(same)
        unequal += [
            row
            for row, is_same, differs in zip(table.facts.index, same, ranks, strict=True)
            if is_same and differs
        ]
    if not pairs:
        yield finding(
            "unequal-ranks",
            table,
            outcome="untestable",
            detail="no two verbalisations have an equal prompt",
        )
    else:
        yield finding("unequal-ranks", table, unequal, pairs)


def _scored_around(table: RankTable, verbalisation: str) -> list[object]:
    """What the model saw besides the candidates: the prompt (paper); the trimmed prompt, the separator and the tail (corrected)."""
    prompts = table.prompts(verbalisation)
    if table.protocol == "paper":
        return list(prompts)
    return [
        (prompt.strip(), prompt[-1:].isspace(), tail)
        for prompt, tail in zip(prompts, tails(table, verbalisation), strict=True)
    ]


def against_wide(table: RankTable, wide: RankTable) -> Iterator[Finding]:
    """Compare the narrow ranks with those derived from the wide dump; says how they differ, and how often tied forms swapped."""
    if table.protocol != "paper":
        return
    keys, wide_keys = table.fact_keys(), wide.fact_keys()
    place = pd.Series(np.arange(len(wide)), index=wide_keys.to_numpy())
    shared = [(mine, place[key]) for mine, key in enumerate(keys) if key in place.index]
    compared, changed, swapped, best_changes, rounded, finite = 0, [], [], [], 0, 0
    for v in (name for name in table.verbalisations if name in wide.verbalisations):
        ours, theirs = table.prompt_prob[v].to_numpy(), wide.prompt_prob[v].to_numpy()
        for mine, other in shared:
            narrow = table.form_ranks[v][mine]
            if not narrow.keys() <= wide.form_ranks[v][other].keys():
                continue  # other forms: a row of its own kind, reported by ranked_forms
            derived = narrow_from_wide(wide.form_ranks[v][other], list(narrow))
            compared += 1
            rounded += bool(ours[mine] != theirs[other])
            finite += bool(np.isfinite(ours[mine]))
            best_changes.append(abs(min(narrow.values()) - min(derived.values())))
            if derived != narrow:
                changed.append(table.facts.index[mine])
                if set(derived.values()) == set(narrow.values()):
                    swapped.append(table.facts.index[mine])
    kind = _kind_of_difference(changed, best_changes, rounded)
    detail = (
        kind
        if kind in ("", "tie-order")
        else f"{kind}: mean change of the best rank {np.mean(best_changes):z.3f}"
    )
    yield finding("wide-differs", table, sorted(set(changed)), compared, detail, count=len(changed))
    if kind == "tie-order":
        yield finding(
            "ties",
            table,
            sorted(set(swapped)),
            compared,
            "correct forms swapped against the wide dump",
            count=len(swapped),
        )


def _kind_of_difference(changed: list[object], best_changes: list[int], rounded: int) -> str:
    if not changed:
        return ""
    if np.mean(best_changes) > OTHER_DISTRACTORS_FROM:
        return "other-distractors"
    if rounded:
        return "other-hardware"
    return "tie-order" if not any(best_changes) else "other-distractors"


def ranked_forms(table: RankTable, wide: bool = False) -> Iterator[Finding]:
    """The ranked forms must be the row's object cells, and its aliases in a wide dump."""
    if table.protocol != "paper":
        return
    objects = [
        {form for form in forms if form}
        for forms in zip(*(table.objects(v) for v in table.verbalisations), strict=True)
    ]
    expected = [forms - {""} for forms in correct_and_excluded(table)] if wide else objects
    shifted: dict[object, str] = {}
    foreign: dict[object, str] = {}
    for v in table.verbalisations:
        for position, row in enumerate(table.facts.index):
            forms = set(table.form_ranks[v][position])
            if forms == expected[position]:
                continue
            neighbours = [
                step
                for step in (-1, 1)
                if 0 <= position + step < len(table) and forms == expected[position + step]
            ]
            if neighbours:
                shifted[row] = (
                    f"{v} cells hold those of the row {'above' if neighbours[0] < 0 else 'below'}"
                )
            else:
                foreign[row] = v
    run = _grown_to_runs(table, shifted, foreign)
    for row in run:
        foreign.pop(row, None)
    yield finding("shifted-rows", table, run, len(table), "; ".join(sorted(set(shifted.values()))))
    yield finding(
        "foreign-forms", table, foreign, len(table), ", ".join(sorted(set(foreign.values())))
    )


def _grown_to_runs(
    table: RankTable, shifted: dict[object, str], foreign: dict[object, str]
) -> list[object]:
    """Foreign rows next to shifted ones belong to the same slip: the row whose cells came first has lost its own neighbour."""
    index = list(table.facts.index)
    run = set(shifted)
    for order in (range(len(index)), range(len(index) - 1, -1, -1)):
        for position in order:
            beside = {index[p] for p in (position - 1, position + 1) if 0 <= p < len(index)}
            if index[position] in foreign and beside & run:
                run.add(index[position])
    return [row for row in index if row in run]


def flags(table: RankTable) -> Iterator[Finding]:
    """top-1 and top-3 flags must follow from the ranks."""
    wrong = ((table.rank <= 1).astype(int) != table.top1) | (
        (table.rank <= 3).astype(int) != table.top3
    )
    rows = table.facts.index[wrong.any(axis=1).to_numpy()]
    yield finding("flags-differ", table, rows, len(table))


def impossible_ranks(table: RankTable, wide: bool = False) -> Iterator[Finding]:
    """No rank can exceed correct forms + min(50, pool - excluded); with the corrected protocol 1 + distractors."""
    if table.n_distractors is not None:
        beyond = (table.rank.gt(table.n_distractors + 1, axis=0)).any(axis=1).tolist()
        yield finding(
            "impossible-ranks",
            table,
            [row for row, is_beyond in zip(table.facts.index, beyond, strict=True) if is_beyond],
            len(table),
        )
        return
    size = len(pool(table))
    excluded = correct_and_excluded(table)
    over = []
    for position, row in enumerate(table.facts.index):
        room = min(POOL_LIMIT, size - len(excluded[position] - {""}))
        if any(
            max(ranks[position].values()) > len(ranks[position]) + room
            for ranks in table.form_ranks.values()
        ):
            over.append(row)
    yield finding("impossible-ranks", table, over, len(table))
