"""Step 4: from ranks to tables, graphs, tests and the report.

    python stats.py all --stats stats/starter/paper --tables tables/mine --graphs graphs/mine
    python stats.py compare --stats stats/starter/corrected
    python stats.py report --stats stats/starter/corrected --out report.html

``Statistics`` offers the same in Python. The code is in ``fluent_mlama/stats.py``, with one module per command in
``fluent_mlama/reporting/``; intervals and tests are in ``fluent_mlama/reporting/inference.py``.
"""

from fluent_mlama.console import run_main
from fluent_mlama.stats import Statistics, main

__all__ = ["Statistics", "main"]

if __name__ == "__main__":
    run_main(main)
