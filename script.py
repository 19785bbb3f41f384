"""Step 3: rank facts with a language model.

    python script.py -l ru -r P19,P36 --model smollm2 --data starter --out stats/smollm2
    python script.py explain -l ru -r P101 --subject Q7251 --model smollm2 --data starter
    python script.py export lm-eval --data starter --out exports/lm-eval

For each language and relation it writes a rank dump, the scores of every candidate and ``run.json`` with the signature.
A stopped run goes on with the same command. The code is in ``fluent_mlama/script.py``; what happens to one file is in
``fluent_mlama/processor.py``. Next step: ``stats.py``.
"""

from fluent_mlama.console import run_main
from fluent_mlama.script import main

__all__ = ["main"]

if __name__ == "__main__":
    run_main(main)
