"""``fluent-mlama``: every command of the library under one name.

    fluent-mlama list starter
    fluent-mlama rank -l ru -r P36 --model smollm2 --data starter --out stats/smollm2
    fluent-mlama stats compare --stats stats/smollm2

The root files (``script.py``, ``stats.py``, …) run the same commands. Only the command that is asked for is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from fluent_mlama import __version__
from fluent_mlama.console import EXIT_BAD_INPUT, run_main, say_error

# name -> (module with ``main(words)``, words that go before the user's, purpose)
COMMANDS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "list": (
        "fluent_mlama.listing",
        (),
        "languages, relations and verbalisations of a data source",
    ),
    "read": ("fluent_mlama.reader", (), "look at, sample or download mLAMA facts"),
    "build": ("fluent_mlama.datamodifier", (), "facts to fluent sentences: a benchmark file"),
    "rank": ("fluent_mlama.script", (), "rank facts with a language model"),
    "explain": ("fluent_mlama.script", ("explain",), "one fact's prompts, candidates and scores"),
    "export": ("fluent_mlama.script", ("export",), "the benchmark for other tools"),
    "stats": ("fluent_mlama.stats", (), "tables, graphs, tests and audit of rank dumps"),
    "report": ("fluent_mlama.stats", ("report",), "one self-contained HTML page of everything"),
    "fluency": ("fluent_mlama.grammeval", (), "fluency and gender against retrieval"),
    "mlama": ("fluent_mlama.mlama.__main__", (), "mLAMA's typed and untyped queries"),
    "zhoblimp": ("fluent_mlama.zhoblimp.__main__", (), "minimal pairs: generate, evaluate, train"),
    "cpopqa": ("fluent_mlama.cpopqa.__main__", (), "popularity questions: build, ask, rank, score"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--version"]:
        print(f"fluent-mlama {__version__}")
        return 0
    if not words or words[0] in {"-h", "--help"}:
        print(_help())
        return 0
    name, *rest = words
    if name not in COMMANDS:
        say_error("fluent-mlama", f"no command {name!r}; there are {', '.join(COMMANDS)}")
        return EXIT_BAD_INPUT
    module, first, _ = COMMANDS[name]
    return import_module(module).main([*first, *rest]) or 0


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {purpose}" for name, (_, _, purpose) in COMMANDS.items()]
    usage = "usage: fluent-mlama COMMAND [OPTIONS]      (fluent-mlama COMMAND --help)"
    return "\n".join(
        [usage, "", *lines, "", "Without data of your own: --data starter --model smollm2"]
    )


def entry_point() -> None:
    """What ``fluent-mlama`` runs."""
    run_main(main)
