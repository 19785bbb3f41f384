"""mLAMA: ask a masked or causal model for facts in many languages, and compare what it knows in each.

python -m probes.mlama query --model bert-base-multilingual-cased --method tyq --data mlama1.1.zip --langs en,de,ja
python -m probes.mlama report --model smollm2 --data starter --langs en,es,ru,zh
"""

from __future__ import annotations

from collections.abc import Sequence

from fluent_mlama.commands import Commands
from fluent_mlama.console import run_main

COMMANDS: dict[str, tuple[str, str]] = {
    "query": ("fluent_mlama.mlama.query", "ask a model for every fact and keep its answers"),
    "report": ("fluent_mlama.mlama.report", "ask, then write every table and figure in one go"),
    "p1": ("fluent_mlama.mlama.analyse", "precision at 1 by language and relation"),
    "rel-p1": ("fluent_mlama.mlama.analyse", "precision relative to English on the same triples"),
    "split": ("fluent_mlama.mlama.analyse", "objects of one piece and of several"),
    "bias": ("fluent_mlama.mlama.analyse", "the most frequent answers of each language"),
    "pool": ("fluent_mlama.mlama.analyse", "languages vote for the answer"),
    "uhn": ("fluent_mlama.mlama.analyse", "leave out facts that a name gives away"),
    "templates": ("fluent_mlama.mlama.analyse", "compare template sets"),
    "build": ("fluent_mlama.mlama.build", "make mLAMA anew for any language from English LAMA"),
    "coverage": ("fluent_mlama.mlama.analyse", "what the data holds in each language"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return Commands("python -m probes.mlama", __doc__, COMMANDS).run(arguments)


if __name__ == "__main__":
    run_main(main)
