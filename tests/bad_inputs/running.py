"""A case, run on its desk, and everything that can be seen of it."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

from fluent_mlama.console import run_main
from tests.bad_inputs.case import Case
from tests.bad_inputs.desk import ROOT
from tests.stand_in import StandInScorer


@dataclass(frozen=True)
class Run:
    """Exit status, what was printed, and the desk before and after: path -> sha256 ("" for a folder)."""

    status: object
    out: str
    err: str
    before: dict[str, str]
    after: dict[str, str]

    def left_behind(self, case: Case) -> list[str]:
        """What is there that was not, is gone, or is not as it was; files that are kept on purpose apart."""
        changed = [
            name
            for name in sorted({*self.before, *self.after})
            if self.before.get(name) != self.after.get(name)
        ]
        return [
            name for name in changed if not any(fnmatch(name, pattern) for pattern in case.keeps)
        ]


def see(desk: Path) -> dict[str, str]:
    """Every file and folder of the desk."""
    paths = sorted(desk.rglob("*"))
    return {
        str(path.relative_to(desk)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file() and os.access(path, os.R_OK)
        else ""
        for path in paths
    }


def run_here(
    case: Case, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """In this process, with a stand-in for the model unless the case is about loading one."""
    case.spoil(desk)
    monkeypatch.chdir(desk)
    name = (
        f"{ROOT / case.words[1].replace('.', '/')}/__main__.py"
        if case.words[0] == "-m"
        else case.words[0]
    )
    monkeypatch.setattr(sys, "argv", [name])
    module = importlib.import_module(case.module)
    if not case.loads:
        _stand_in(monkeypatch)
    before = see(desk)
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        run_main(module.main, case.arguments)
    captured = capsys.readouterr()
    return Run(left.value.code, captured.out, captured.err, before, see(desk))


def run_alone(case: Case, desk: Path) -> Run:
    """In a process of its own, as a person runs it."""
    case.spoil(desk)
    before = see(desk)
    words = case.words if case.words[0] == "-m" else [str(ROOT / case.words[0]), *case.words[1:]]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=desk,
        env=os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr, before, see(desk))


def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    from fluent_mlama import script

    monkeypatch.setattr(script, "load", lambda asked: StandInScorer(asked.settings.model))
    monkeypatch.setattr(
        "fluent_mlama.mlama.query.load", lambda options: StandInScorer(options.model)
    )
