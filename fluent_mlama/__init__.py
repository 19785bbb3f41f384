"""The parts that the steps at the repository's root are made of (see docs/architecture.md)."""

import importlib.util
import sys

__version__ = "1.0.0"

if (
    importlib.util.find_spec("tqdm") is None
):  # what every room needs stands for all: the wrong Python is the usual reason
    sys.stderr.write(
        f"error: the packages of requirements.txt are not there for {sys.executable}: make install, source .venv/bin/activate\n"
    )
    sys.exit(2)
