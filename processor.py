"""Step 3, in Python: rank the facts of one language and relation.

    from processor import Processor, Settings

``Processor`` turns one benchmark file into one rank dump: candidates, log-probabilities, ranks. The code is in
``fluent_mlama/processor.py``; protocols are in ``fluent_mlama/ranking/``, what is finished and what is not in
``fluent_mlama/runner/``, the model in ``fluent_mlama/scoring/``. The command for many files is ``script.py``.
"""

from fluent_mlama.console import run_main
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.script import main

__all__ = ["Processor", "Settings", "main"]

if __name__ == "__main__":
    run_main(main)
