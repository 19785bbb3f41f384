"""The parts that the steps at the repository's root are made of (see docs/architecture.md).

``fluent_mlama.load_scorer("smollm2").rank("The capital of France is", ["Paris", "Rome"])`` ranks candidates.
"""

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluent_mlama.scoring.ranker import load_scorer as load_scorer

__version__ = "1.0.0"

if (
    importlib.util.find_spec("tqdm") is None
):  # what every room needs stands for all: the wrong Python is the usual reason
    sys.stderr.write(
        f"error: the packages of requirements.txt are not there for {sys.executable}: make install, source .venv/bin/activate\n"
    )
    sys.exit(2)


def __getattr__(name: str) -> Any:
    """``load_scorer`` on first use, so that importing the package does not import torch."""
    if name == "load_scorer":
        from fluent_mlama.scoring.ranker import load_scorer

        return load_scorer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
