"""Minimal pairs: evaluate a model on them, generate new ones, check and lint them, edit paradigms on a web page.

fluent-mlama zhoblimp generate --templates fluent_mlama/zhoblimp/content/zh --out pairs
fluent-mlama zhoblimp evaluate --model smollm2 --data pairs
"""

from __future__ import annotations

from collections.abc import Sequence

from fluent_mlama.command_line import Commands
from fluent_mlama.console import run_main

COMMANDS: dict[str, tuple[str, str]] = {
    "evaluate": (
        "fluent_mlama.zhoblimp.evaluate:evaluate_models",
        "models on minimal pairs, every linking function from one scoring pass",
    ),
    "generate": (
        "fluent_mlama.zhoblimp.generate:generate",
        "make minimal pairs from paradigm templates",
    ),
    "check": (
        "fluent_mlama.zhoblimp.check:check",
        "whether each pair is one that its template can produce",
    ),
    "train": (
        "fluent_mlama.zhoblimp.train:train_model",
        "a model from scratch on a corpus, with checkpoints by tokens",
    ),
    "serve": (
        "fluent_mlama.zhoblimp.serve:serve_page",
        "a web page for writing paradigms, on this machine alone",
    ),
    "lint": (
        "fluent_mlama.zhoblimp.check:lint_pairs",
        "noise in a set of pairs: repetitions, doublings, pairs that contradict their template",
    ),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return Commands("fluent-mlama zhoblimp", __doc__, COMMANDS).run(words)


if __name__ == "__main__":
    run_main(main)
