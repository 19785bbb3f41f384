"""Other people's tools in an environment of their own: where it is, and how a command is run in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

SETTING = "FLUENT_PEERS"


def peers_python(root: Path, module: str) -> Path:
    """The peers' interpreter (FLUENT_PEERS, default ``.venv-peers``), if it has this module; else the test is skipped."""
    folder = Path(os.environ.get(SETTING, root / ".venv-peers"))
    python = folder / "bin" / "python"
    if not python.is_file():
        pytest.skip(
            f"needs the peers' environment; none at {folder} (make peers, or set {SETTING})"
        )
    found = subprocess.run(
        [
            python,
            "-c",
            f"import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)",
        ],
        check=False,
    )
    if found.returncode:
        pytest.skip(f"{folder} has no {module} (make peers)")
    return python


def run_peer(python: Path, words: Sequence[str], *, cwd: Path) -> str:
    """Standard output of one command there, offline and with a cache of its own; what it said where it failed."""
    offline = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(cwd / "hf"),
        "TOKENIZERS_PARALLELISM": "false",
    }
    done = subprocess.run(
        [python, *words],
        cwd=cwd,
        env=os.environ | offline,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout
