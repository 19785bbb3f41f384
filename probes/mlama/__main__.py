"""mLAMA: ask a masked or causal model for facts in many languages, and compare what it knows in each.

python -m probes.mlama query --model bert-base-multilingual-cased --method tyq --data mlama1.1.zip --langs en,de,ja
python -m probes.mlama report --model smollm2 --data data/starter --langs en,es,ru,zh
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from fluent.console import ArgumentParser, run_main

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
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = ArgumentParser(prog="python -m probes.mlama", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module_name, purpose) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose)
        if name in words[:1]:
            importlib.import_module(module_name).add_arguments(command, name)
    parsed = parser.parse_args(words)
    return int(importlib.import_module(COMMANDS[parsed.command][0]).run(parsed))


if __name__ == "__main__":
    run_main(main)
