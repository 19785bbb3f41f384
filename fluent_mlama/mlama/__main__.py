"""mLAMA: ask a masked or causal model for facts in many languages, and compare the languages.

fluent-mlama mlama query --model xlm-roberta-base --method tyq --data mlama1.1.zip -l en,de,ja
fluent-mlama mlama report --model smollm2 --data starter --langs en,es,ru,zh
"""

from __future__ import annotations

from collections.abc import Sequence

from fluent_mlama.command_line import Commands
from fluent_mlama.console import run_main

COMMANDS: dict[str, tuple[str, str]] = {
    "query": (
        "fluent_mlama.mlama.query:query_models",
        "ask a model for every fact and keep its answers",
    ),
    "report": (
        "fluent_mlama.mlama.report:report",
        "ask, then write every table and figure in one go",
    ),
    "p1": ("fluent_mlama.mlama.analyse:p1", "precision at 1 by language and relation"),
    "rel-p1": (
        "fluent_mlama.mlama.analyse:rel_p1",
        "precision relative to English on the same triples",
    ),
    "split": ("fluent_mlama.mlama.analyse:split", "objects of one piece and of several"),
    "bias": ("fluent_mlama.mlama.analyse:bias", "the most frequent answers of each language"),
    "pool": ("fluent_mlama.mlama.analyse:pool", "languages vote for the answer"),
    "uhn": ("fluent_mlama.mlama.analyse:uhn", "leave out facts that a name gives away"),
    "templates": ("fluent_mlama.mlama.analyse:templates", "compare template sets"),
    "build": (
        "fluent_mlama.mlama.build:build_mlama",
        "make mLAMA again for any language from English LAMA",
    ),
    "coverage": ("fluent_mlama.mlama.analyse:coverage", "what the data holds in each language"),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return Commands("fluent-mlama mlama", __doc__, COMMANDS).run(words)


if __name__ == "__main__":
    run_main(main)
