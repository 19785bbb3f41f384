"""Minimal pairs: evaluate models, generate and check pairs, edit paradigms on a web page.

fluent-mlama zhoblimp generate --templates fluent_mlama/zhoblimp/content/zh/paradigms --out pairs
fluent-mlama zhoblimp evaluate --model smollm2 --data pairs --out results
"""

from __future__ import annotations

from collections.abc import Sequence

from fluent_mlama.command_line import Commands
from fluent_mlama.console import run_main

_HERE = "fluent_mlama.zhoblimp"
COMMANDS = {
    "evaluate": (
        f"{_HERE}.evaluate:evaluate",
        "models on minimal pairs, every linking function from one scoring pass",
    ),
    "generate": (f"{_HERE}.generate:generate", "make minimal pairs from paradigm templates"),
    "check": (f"{_HERE}.check:check", "whether each pair is one that its template can produce"),
    "train": (f"{_HERE}.train:train", "a model from scratch, with checkpoints by tokens"),
    "serve": (f"{_HERE}.page:serve", "a web page for writing paradigms, on this machine alone"),
    "lint": (f"{_HERE}.check:lint", "noise in a set of pairs: repetitions, doublings, …"),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return Commands("fluent-mlama zhoblimp", __doc__ or "", COMMANDS).run(words)


if __name__ == "__main__":
    run_main(main)
