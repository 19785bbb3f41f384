"""What ships with the library: the starter facts, their sentences and the benchmark made from them.

==============  ==================================================================================
``STARTER``     the facts in the mLAMA 1.1 layout (``starter/{lang}/{relation}.jsonl``)
``BENCHMARK``   the benchmark files (``benchmark/{lang}_{relation}_phrasebook.tsv``)
``PHRASEBOOK``  what they are made of, by language
==============  ==================================================================================

``--data starter`` and ``--mlama starter`` name the first two where no such path exists
(``shipped``).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

DATA = Path(str(files(__package__)))
STARTER = DATA / "starter"
BENCHMARK = DATA / "benchmark"
PHRASEBOOK = DATA / "phrasebook"
GENDERED_FORMS = DATA / "gendered_forms.tsv"

_NAMES = {"starter", "fixed_data/starter", "data/starter"}


def shipped(path: Path | str, place: Path) -> Path:
    """``path`` as it is where it exists; where it does not, ``place`` for one of the names of the
    starter.
    """
    path = Path(path)
    return place if path.as_posix() in _NAMES and not path.exists() else path
