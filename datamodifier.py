"""Step 2: rebuild facts as fluent sentences.

    python datamodifier.py -l ru -r P19 --mlama starter --translator phrasebook --aliases none --show 10

``DataModifier`` translates a fact's whole sentence, finds the inflected object in it and cuts the sentence into prompt,
object and tail: one ``fixed_data/{lang}_{relation}_{spec}.tsv`` per language and relation. The code is in
``fluent_mlama/datamodifier.py``; back ends are in ``fluent_mlama/translating/``, finding the object is
``fluent_mlama/locating/``. Next step: ``script.py``.
"""

from fluent_mlama.console import run_main
from fluent_mlama.datamodifier import DataModifier, main

__all__ = ["DataModifier", "main"]

if __name__ == "__main__":
    run_main(main)
