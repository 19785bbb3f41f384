"""mLAMA: ask a masked or causal model for facts in many languages, and compare what it knows in each.

python -m probes.mlama query --model bert-base-multilingual-cased --method tyq --data mlama1.1.zip --langs en,de,ja
python -m probes.mlama report --model smollm2 --data data/starter --langs en,es,ru,zh
"""

from __future__ import annotations

from collections.abc import Sequence

from fluent.commands import Commands
from fluent.console import run_main

COMMANDS: dict[str, tuple[str, str]] = {
    "query": ("probes.mlama.query", "ask a model for every fact and keep its answers"),
    "report": ("probes.mlama.report", "ask, then write every table and figure in one go"),
    "p1": ("probes.mlama.analyse", "precision at 1 by language and relation"),
    "rel-p1": ("probes.mlama.analyse", "precision relative to English on the same triples"),
    "split": ("probes.mlama.analyse", "objects of one piece and of several"),
    "bias": ("probes.mlama.analyse", "the most frequent answers of each language"),
    "pool": ("probes.mlama.analyse", "languages vote for the answer"),
    "uhn": ("probes.mlama.analyse", "leave out facts that a name gives away"),
    "templates": ("probes.mlama.analyse", "compare template sets"),
    "build": ("probes.mlama.build", "make mLAMA anew for any language from English LAMA"),
    "coverage": ("probes.mlama.analyse", "what the data holds in each language"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return Commands("python -m probes.mlama", __doc__, COMMANDS).run(arguments)


if __name__ == "__main__":
    run_main(main)
