"""Fluency against retrieval: do sentences that became more fluent also retrieve more facts?

    python grammeval.py qe --stats stats/starter/paper
    python grammeval.py gender --stats stats/starter/paper

``QECheck`` offers the same in Python. The code is in ``fluent_mlama/grammeval.py``, with one module per command in
``fluent_mlama/fluency/``.
"""

from fluent_mlama.console import run_main
from fluent_mlama.grammeval import QECheck, main

__all__ = ["QECheck", "main"]

if __name__ == "__main__":
    run_main(main)
