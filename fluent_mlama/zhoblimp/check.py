"""``check`` and ``lint``: pairs against their templates, and what a careful reader would object to.

A remark of ``lint`` is not an error: pairs stay as they are, and the counts say how much noise a
paradigm's accuracy carries.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

from cyclopts import Parameter

from fluent_mlama.console import UserError, progress
from fluent_mlama.options import Files
from fluent_mlama.zhoblimp.data import PairRow, read_pairs
from fluent_mlama.zhoblimp.generate import TEMPLATES, TemplateOptions
from fluent_mlama.zhoblimp.matcher import Matcher
from fluent_mlama.zhoblimp.vocabulary import Vocabulary

Data = Annotated[Files, Parameter(help="pairs: folders, .jsonl files or tar archives")]
Pairs = dict[str, list[PairRow]]


def check(*, data: Data, templates: TemplateOptions = TEMPLATES) -> int:
    """Check whether each pair is one that its template can produce.

        fluent-mlama zhoblimp check --templates FOLDER/paradigms --data pairs

    The exit status is 1 if a pair is refused.
    """
    pairs = read_all(data)
    matchers = make_matchers(templates)
    refused = 0
    for uid, rows in progress(pairs.items(), total=len(pairs), unit="paradigms", label="check"):
        if uid not in matchers:
            print(f"{uid}: no template with this UID in {templates.templates}")
            refused += 1
            continue
        counts = []
        for matcher in matchers[uid]:
            verdicts = [matcher.check(row.good, row.bad) for row in rows]
            reasons = Counter(verdict.remark for verdict in verdicts if not verdict.accepted)
            accepted = len(rows) - reasons.total()
            counts.append((accepted, matcher.paradigm.where, reasons))
        accepted, where, reasons = max(counts, key=lambda count: count[0])
        if reasons:
            refused += 1
            reason, count = reasons.most_common(1)[0]
            print(
                f"{uid}: {where} accepts {accepted} of {len(rows)} pairs; "
                f"most often ({count}): {reason}"
            )
    print(f"{len(pairs) - refused} of {len(pairs)} paradigms accepted in full")
    return 1 if refused else 0


def lint(
    *, data: Data, without_templates: bool = False, templates: TemplateOptions = TEMPLATES
) -> None:
    """Find noise in minimal pairs: repetitions, doublings, pairs that contradict their template.

        fluent-mlama zhoblimp lint --data pairs --without-templates

    Args:
        without_templates: look at the sentences alone
    """
    from tabulate import tabulate

    pairs = read_all(data)
    remarks = find_remarks(pairs, {} if without_templates else make_matchers(templates))
    rows = [(r.uid, r.kind, f"{r.count}/{r.total}", r.example) for r in remarks]
    print(tabulate(rows, ["paradigm", "remark", "pairs", "example"]))


def read_all(data: Files) -> Pairs:
    """The pairs of several sources; a paradigm in two of them is a ``UserError``."""
    pairs: Pairs = {}
    for path in data:
        for uid, rows in read_pairs(path).items():
            if uid in pairs:
                raise UserError(
                    f"{path}: UID '{uid}' is also in an earlier --data; give each paradigm once"
                )
            pairs[uid] = rows
    return pairs


def make_matchers(templates: TemplateOptions) -> dict[str, list[Matcher]]:
    """The matchers of each uid: several templates may share one."""
    matchers: dict[str, list[Matcher]] = defaultdict(list)
    paradigms, vocabulary, phrases = templates.load()
    for paradigm in paradigms:
        matchers[paradigm.uid].append(Matcher(paradigm, vocabulary, phrases))
    return matchers


@dataclass(frozen=True)
class Remark:
    """One kind of noise in one paradigm: how many of its pairs, and the first of them."""

    uid: str
    kind: str
    count: int
    total: int
    example: str


def find_remarks(
    paradigms: Mapping[str, Sequence[PairRow]], matchers: Mapping[str, Sequence[Matcher]]
) -> list[Remark]:
    """All remarks on the pairs of each uid; with matchers also what its templates object to."""
    remarks = []
    for uid, rows in paradigms.items():
        remarks += _repetitions(uid, rows) + _doublings(uid, rows)
        if uid in matchers:
            remarks += _second_classifiers(uid, rows, matchers[uid][0].vocabulary)
            remarks += _against_template(uid, rows, matchers[uid])
    return remarks + _shared_pairs(paradigms)


def _remark(uid: str, kind: str, hits: Sequence[PairRow], total: int) -> list[Remark]:
    """A remark on the bad sentences of these pairs; none where there are no pairs."""
    return [Remark(uid, kind, len(hits), total, hits[0].bad)] if hits else []


def _repetitions(uid: str, rows: Sequence[PairRow]) -> list[Remark]:
    """Sentences in more than one pair of the paradigm (surplus occurrences are counted)."""
    remarks = []
    for side in ("good", "bad"):
        counts = Counter(getattr(row, side) for row in rows)
        surplus = sum(count - 1 for count in counts.values())
        if surplus:
            example = counts.most_common(1)[0][0]
            remarks.append(Remark(uid, f"{side} sentence repeated", surplus, len(rows), example))
    same = [row for row in rows if row.good == row.bad]
    return remarks + _remark(uid, "good and bad sentence equal", same, len(rows))


def _doublings(uid: str, rows: Sequence[PairRow]) -> list[Remark]:
    """A character doubled in the bad sentence alone: often a second, unintended error (这个个)."""
    hits = [row for row in rows if _doubled(row.bad) - _doubled(row.good)]
    return _remark(uid, "character doubled in the bad sentence only", hits, len(rows))


def _second_classifiers(uid: str, rows: Sequence[PairRow], vocabulary: Vocabulary) -> list[Remark]:
    """A determiner that ends in a classifier before another classifier (这个个), in bad sentences."""
    words: dict[str, set[str]] = {"DT": set(), "M": set()}
    for entry in vocabulary.entries:
        for pos in entry.values("pos") & words.keys():
            words[pos].add(entry.expression)
    doubled = set()
    for determiner in words["DT"]:
        if any(determiner.endswith(one) and determiner != one for one in words["M"]):
            doubled |= {determiner + classifier for classifier in words["M"]}
    hits = [row for row in rows if any(one in row.bad and one not in row.good for one in doubled)]
    return _remark(uid, "classifier after a determiner that has one", hits, len(rows))


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
    """Identical pairs in two paradigms, reported once for each pair of paradigms."""
    owners: dict[tuple[str, str], set[str]] = defaultdict(set)
    for uid, rows in paradigms.items():
        for row in rows:
            owners[row.good, row.bad].add(uid)
    shared: Counter[tuple[str, str]] = Counter()
    example: dict[tuple[str, str], str] = {}
    for (good, bad), uids in owners.items():
        for both in combinations(sorted(uids), 2):
            shared[both] += 1
            example.setdefault(both, f"{good} / {bad}")
    return [
        Remark(
            first, f"pair also in {second}", count, len(paradigms[first]), example[first, second]
        )
        for (first, second), count in shared.items()
    ]
