"""The command line of stats.py: quick help, one-line errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import stats


def test_help_lists_every_command_without_heavy_imports(root: Path) -> None:
    code = (
        "import sys, stats\ntry: stats.main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('pandas', 'matplotlib', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.rstrip().endswith("[]")
    assert all(f"    {name} " in done.stdout or f"    {name}\n" in done.stdout for name in stats.COMMANDS)


def test_unknown_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        stats.main(["tables"])
    assert left.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
