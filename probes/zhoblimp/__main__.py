"""Minimal pairs: evaluate a model on them, generate new ones, check and lint them, edit paradigms on a web page.

python -m probes.zhoblimp generate --templates probes/zhoblimp/content/zh --out pairs
python -m probes.zhoblimp evaluate --model smollm2 --data pairs
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from fluent.console import ArgumentParser, run_main

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
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = ArgumentParser(prog="python -m probes.zhoblimp", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module_name, purpose) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose)
        if name in words[:1]:
            importlib.import_module(module_name).add_arguments(command, name)
    parsed = parser.parse_args(words)
    return int(importlib.import_module(COMMANDS[parsed.command][0]).run(parsed))


if __name__ == "__main__":
    run_main(main)
