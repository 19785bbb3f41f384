"""Minimal pairs: evaluate a model on them, generate new ones, check and lint them, edit paradigms on a web page.

python -m probes.zhoblimp generate --templates probes/zhoblimp/content/zh --out pairs
python -m probes.zhoblimp evaluate --model smollm2 --data pairs
"""

from __future__ import annotations

from collections.abc import Sequence

from fluent.commands import Commands
from fluent.console import run_main

COMMANDS: dict[str, tuple[str, str]] = {
    "evaluate": ("probes.zhoblimp.evaluate", "models on minimal pairs, every linking function from one scoring pass"),
    "generate": ("probes.zhoblimp.generate", "make minimal pairs from paradigm templates"),
    "check": ("probes.zhoblimp.check", "whether each pair is one that its template can produce"),
    "train": ("probes.zhoblimp.train", "a model from scratch on a corpus, with checkpoints by tokens"),
    "serve": ("probes.zhoblimp.serve", "a web page for writing paradigms, on this machine alone"),
    "lint": ("probes.zhoblimp.check", "noise in a set of pairs: repetitions, doublings, pairs that contradict their template"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return Commands("python -m probes.zhoblimp", __doc__, COMMANDS).run(arguments)


if __name__ == "__main__":
    run_main(main)
