"""Popularity of cultural concepts: build the questions, ask a model or rank by its log-probabilities, score.

python -m probes.cpopqa build --proxy --out popularity
python -m probes.cpopqa rank --data popularity --model smollm2
python -m probes.cpopqa score --data popularity
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from fluent.console import ArgumentParser, run_main

COMMANDS: dict[str, tuple[str, str]] = {
    "build": ("probes.cpopqa.build", "concepts, their popularity and the questions, from calendars or from a CSV"),
    "ask": ("probes.cpopqa.ask", "let a model write its answers: a local causal model or an OpenAI-compatible endpoint"),
    "rank": ("probes.cpopqa.rank", "the same questions by log-probability, through the scoring engine"),
    "score": ("probes.cpopqa.score", "parse the answers; tables, figures and paired tests beside the baselines"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = ArgumentParser(prog="python -m probes.cpopqa", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module_name, purpose) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose)
        if name in words[:1]:
            importlib.import_module(module_name).add_arguments(command)
    parsed = parser.parse_args(words)
    return int(importlib.import_module(COMMANDS[parsed.command][0]).run(parsed))


if __name__ == "__main__":
    run_main(main)
