"""Popularity of cultural concepts: build the questions, ask a model or rank by its log-probabilities, score.

fluent-mlama cpopqa build --proxy --out popularity
fluent-mlama cpopqa rank --data popularity --model smollm2
fluent-mlama cpopqa score --data popularity
"""

from __future__ import annotations

from collections.abc import Sequence

from fluent_mlama.command_line import Commands
from fluent_mlama.console import run_main

COMMANDS: dict[str, tuple[str, str]] = {
    "build": (
        "fluent_mlama.cpopqa.build:build",
        "concepts, their popularity and the questions, from calendars or from a CSV",
    ),
    "ask": (
        "fluent_mlama.cpopqa.ask:ask",
        "let a model write its answers: a local causal model or an OpenAI-compatible endpoint",
    ),
    "rank": (
        "fluent_mlama.cpopqa.rank:rank",
        "the same questions by log-probability, through the scoring engine",
    ),
    "score": (
        "fluent_mlama.cpopqa.score:score",
        "parse the answers; tables, figures and paired tests beside the baselines",
    ),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return Commands("fluent-mlama cpopqa", __doc__, COMMANDS).run(words)


if __name__ == "__main__":
    run_main(main)
