"""A command started with a Python that lacks the packages says so in one line and names the way out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = (
    "script.py",
    "stats.py",
    "datamodifier.py",
    "grammeval.py",
    "reader.py",
    "fluent_mlama.mlama",
    "fluent_mlama.zhoblimp",
    "fluent_mlama.cpopqa",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_without_the_packages_one_line_says_what_to_do(root: Path, command: str) -> None:
    words = [command] if command.endswith(".py") else ["-m", command]
    # -S leaves site-packages out, as a Python outside the environment would
    found = subprocess.run(
        [sys.executable, "-S", *words, "--help"],
        cwd=root,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert found.returncode == 2
    assert found.stdout == ""
    (line,) = found.stderr.splitlines()
    assert line.startswith("error: the packages of requirements.txt are not there for ")
    assert line.endswith(": make install, source .venv/bin/activate")
