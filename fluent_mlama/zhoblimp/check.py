"""``check`` and ``lint``: pairs against the templates that claim to have made them, and against good sense."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path

from tabulate import tabulate

from fluent_mlama.console import UserError, progress
from fluent_mlama.zhoblimp.data import read_pairs
from fluent_mlama.zhoblimp.generate import add_template_arguments, load_templates
from fluent_mlama.zhoblimp.lint import lint
from fluent_mlama.zhoblimp.matcher import Matcher


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of both commands; for ``lint`` the templates may be left out."""
    add_template_arguments(parser)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        action="append",
        help="pairs: a folder, a .jsonl or a tar archive (may be repeated)",
    )
    if parser.get_default("command") == "lint":
        parser.add_argument(
            "--without-templates", action="store_true", help="look at the sentences alone"
        )


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; ``check`` ends with status 1 if a pair is refused."""
    pairs = {}
    for path in arguments.data:
        for uid, rows in read_pairs(path).items():
            if uid in pairs:
                raise UserError(
                    f"{path}: UID '{uid}' also stands in an earlier --data; give each paradigm once"
                )
            pairs[uid] = rows
    matchers: dict[str, list[Matcher]] = defaultdict(list)
    if not getattr(arguments, "without_templates", False):
        paradigms, vocabulary, phrases = load_templates(arguments)
        for paradigm in paradigms:
            matchers[paradigm.uid].append(Matcher(paradigm, vocabulary, phrases))
    if arguments.command == "lint":
        remarks = lint(pairs, matchers)
        print(
            tabulate(
                [(r.uid, r.kind, f"{r.count}/{r.total}", r.example) for r in remarks],
                ["paradigm", "remark", "pairs", "example"],
            )
        )
        return 0
    refused = 0
    for uid, rows in progress(pairs.items(), total=len(pairs), unit="paradigms", label="check"):
        if uid not in matchers:
            print(f"{uid}: no template with this UID in {arguments.templates}")
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
