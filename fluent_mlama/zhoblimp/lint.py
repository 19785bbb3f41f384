"""What a careful reader would object to in a set of minimal pairs, found by rule.

A remark is no error: pairs stay as they are, and the counts say how much noise a paradigm's accuracy carries.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluent_mlama.zhoblimp.data import PairRow
from fluent_mlama.zhoblimp.matcher import Matcher
from fluent_mlama.zhoblimp.vocabulary import Vocabulary


@dataclass(frozen=True)
class Remark:
    """One kind of noise in one paradigm: how many of its pairs, and the first of them."""

    uid: str
    kind: str
    count: int
    total: int
    example: str


def lint(
    paradigms: Mapping[str, Sequence[PairRow]],
    matchers: Mapping[str, Sequence[Matcher]] | None = None,
) -> list[Remark]:
    """All remarks on the pairs of each uid; with matchers (templates at hand) also what the templates object to."""
    remarks = []
    for uid, rows in paradigms.items():
        remarks += _repetitions(uid, rows) + _doublings(uid, rows)
        if matchers and uid in matchers:
            remarks += _second_classifiers(
                uid, rows, matchers[uid][0].vocabulary
            ) + _against_template(uid, rows, matchers[uid])
    return remarks + _shared_pairs(paradigms)


def _repetitions(uid: str, rows: Sequence[PairRow]) -> list[Remark]:
    """Sentences that stand in more than one pair of the paradigm (the count is of surplus occurrences)."""
    remarks = []
    for side in ("good", "bad"):
        counts = Counter(getattr(row, side) for row in rows)
        surplus = sum(count - 1 for count in counts.values())
        if surplus:
            remarks.append(
                Remark(
                    uid,
                    f"{side} sentence repeated",
                    surplus,
                    len(rows),
                    counts.most_common(1)[0][0],
                )
            )
    same = [row for row in rows if row.good == row.bad]
    if same:
        remarks.append(
            Remark(uid, "good and bad sentence equal", len(same), len(rows), same[0].good)
        )
    return remarks


def _doublings(uid: str, rows: Sequence[PairRow]) -> list[Remark]:
    """A character doubled in the bad sentence alone: often a second, unintended error (这个个)."""
    hits = [row for row in rows if _doubled(row.bad) - _doubled(row.good)]
    return (
        [
            Remark(
                uid, "character doubled in the bad sentence only", len(hits), len(rows), hits[0].bad
            )
        ]
        if hits
        else []
    )


def _second_classifiers(uid: str, rows: Sequence[PairRow], vocabulary: Vocabulary) -> list[Remark]:
    """A determiner that ends in a classifier before another one, in the bad sentence alone: 这个个, 这个位."""
    by_pos = {
        pos: {entry.expression for entry in vocabulary.entries if pos in entry.values("pos")}
        for pos in ("DT", "M")
    }
    complete = [
        word
        for word in by_pos["DT"]
        if any(word.endswith(one) and word != one for one in by_pos["M"])
    ]
    doubled = {determiner + classifier for determiner in complete for classifier in by_pos["M"]}
    hits = [row for row in rows if any(one in row.bad and one not in row.good for one in doubled)]
    return (
        [
            Remark(
                uid, "classifier after a determiner that has one", len(hits), len(rows), hits[0].bad
            )
        ]
        if hits
        else []
    )


def _doubled(text: str) -> set[str]:
    return {
        first
        for first, second in zip(text, text[1:], strict=False)
        if first == second and not first.isspace()
    }


def _against_template(
    uid: str, rows: Sequence[PairRow], matchers: Sequence[Matcher]
) -> list[Remark]:
    """What the best-fitting of the uid's templates refuses, or accepts with a remark."""
    best: list[tuple[PairRow, str]] | None = None
    for matcher in matchers:
        verdicts = [(row, matcher.check(row.good, row.bad)) for row in rows]
        objections = [(row, verdict.remark) for row, verdict in verdicts if verdict.remark]
        if best is None or len(objections) < len(best):
            best = objections
    grouped: dict[str, list[PairRow]] = defaultdict(list)
    for row, remark in best or []:
        grouped[remark if " row " not in remark else "not what the template generates"].append(row)
    return [
        Remark(uid, kind, len(found), len(rows), f"{found[0].good} / {found[0].bad}")
        for kind, found in grouped.items()
    ]


def _shared_pairs(paradigms: Mapping[str, Sequence[PairRow]]) -> list[Remark]:
    """Identical pairs in two paradigms, told once for each pair of paradigms."""
    owners: dict[tuple[str, str], set[str]] = defaultdict(set)
    for uid, rows in paradigms.items():
        for row in rows:
            owners[row.good, row.bad].add(uid)
    shared: Counter[tuple[str, str]] = Counter()
    example: dict[tuple[str, str], str] = {}
    for (good, bad), uids in owners.items():
        for first in sorted(uids):
            for second in sorted(uids):
                if first < second:
                    shared[first, second] += 1
                    example.setdefault((first, second), f"{good} / {bad}")
    return [
        Remark(
            first, f"pair also in {second}", count, len(paradigms[first]), example[first, second]
        )
        for (first, second), count in shared.items()
    ]
