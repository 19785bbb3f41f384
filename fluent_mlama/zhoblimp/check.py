"""``check`` and ``lint``: pairs against the templates that claim to have made them, and against good sense."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from tabulate import tabulate

from fluent_mlama.console import UserError, progress
from fluent_mlama.options import Files
from fluent_mlama.zhoblimp.data import PairRow, read_pairs
from fluent_mlama.zhoblimp.generate import TemplateOptions
from fluent_mlama.zhoblimp.lint import lint
from fluent_mlama.zhoblimp.matcher import Matcher

Pairs = Annotated[
    Files, Parameter(help="pairs: a folder, a .jsonl or a tar archive (may be repeated)")
]


def lint_pairs(
    *,
    source: TemplateOptions = TemplateOptions(),
    data: Pairs,
    without_templates: bool = False,
) -> None:
    """Noise in a set of pairs: repetitions, doublings, pairs that contradict their template.

    Args:
        without_templates: look at the sentences alone
    """
    pairs = read_all(data)
    remarks = lint(pairs, {} if without_templates else matchers_of(source))
    print(
        tabulate(
            [(r.uid, r.kind, f"{r.count}/{r.total}", r.example) for r in remarks],
            ["paradigm", "remark", "pairs", "example"],
        )
    )


def read_all(places: Sequence[Path]) -> dict[str, list[PairRow]]:
    """UID -> pairs of several sources; a UID that is in two is a ``UserError``."""
    pairs: dict[str, list[PairRow]] = {}
    for path in places:
        for uid, rows in read_pairs(path).items():
            if uid in pairs:
                raise UserError(
                    f"{path}: UID '{uid}' is also in an earlier --data; give each paradigm once"
                )
            pairs[uid] = rows
    return pairs


def matchers_of(source: TemplateOptions) -> dict[str, list[Matcher]]:
    """UID -> what can tell whether a pair comes from one of its templates."""
    matchers: dict[str, list[Matcher]] = defaultdict(list)
    paradigms, vocabulary, phrases = source.load()
    for paradigm in paradigms:
        matchers[paradigm.uid].append(Matcher(paradigm, vocabulary, phrases))
    return matchers


def check(*, source: TemplateOptions = TemplateOptions(), data: Pairs) -> int:
    """Whether each pair is one that its template can produce; status 1 if a pair is refused."""
    pairs, matchers = read_all(data), matchers_of(source)
    refused = 0
    for uid, rows in progress(pairs.items(), total=len(pairs), unit="paradigms", label="check"):
        if uid not in matchers:
            print(f"{uid}: no template with this UID in {source.templates}")
            refused += 1
            continue
        counts = []
        for matcher in matchers[uid]:
            verdicts = [matcher.check(row.good, row.bad) for row in rows]
            accepted = sum(verdict.accepted for verdict in verdicts)
            counts.append(
                (
                    accepted,
                    matcher.paradigm.where,
                    Counter(v.remark for v in verdicts if not v.accepted),
                )
            )
        accepted, where, reasons = max(counts, key=lambda count: count[0])
        if accepted < len(rows):
            refused += 1
            reason, count = reasons.most_common(1)[0]
            print(
                f"{uid}: {where} accepts {accepted} of {len(rows)} pairs; most often ({count}): {reason}"
            )
    print(f"{len(pairs) - refused} of {len(pairs)} paradigms accepted in full")
    return 1 if refused else 0
