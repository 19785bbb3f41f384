"""Popularity of cultural concepts: build the questions, ask a model or rank by its log-probabilities, score.

python -m probes.cpopqa build --proxy --out popularity
python -m probes.cpopqa rank --data popularity --model smollm2
python -m probes.cpopqa score --data popularity
"""

from __future__ import annotations

from collections.abc import Sequence

from fluent_mlama.commands import Commands
from fluent_mlama.console import run_main

COMMANDS: dict[str, tuple[str, str]] = {
    "build": (
        "fluent_mlama.cpopqa.build",
        "concepts, their popularity and the questions, from calendars or from a CSV",
    ),
    "ask": (
        "fluent_mlama.cpopqa.ask",
        "let a model write its answers: a local causal model or an OpenAI-compatible endpoint",
    ),
    "rank": (
        "fluent_mlama.cpopqa.rank",
        "the same questions by log-probability, through the scoring engine",
    ),
    "score": (
        "fluent_mlama.cpopqa.score",
        "parse the answers; tables, figures and paired tests beside the baselines",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return Commands("python -m probes.cpopqa", __doc__, COMMANDS).run(arguments)


if __name__ == "__main__":
    run_main(main)
