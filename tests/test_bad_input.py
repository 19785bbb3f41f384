"""Every bad input of the table gets one clear line and exit status 2, and leaves everything as it was."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shutil
from pathlib import Path

import pytest

from fluent_mlama.console import run_main
from tests.bad_inputs.case import Case, matches
from tests.bad_inputs.desk import make_desk
from tests.bad_inputs.running import Run, run_alone, run_here
from tests.bad_inputs.table import CASES
from tests.test_architecture import source_files

ALONE = {
    case.program: case
    for case in reversed(CASES)
    if "--help" not in case.says and "; there are" not in case.says and case.by_root
}
"""One case of each program that the program itself finds, not the parser of its arguments."""


@pytest.fixture(scope="module")
def good_desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    make_desk(folder)
    return folder


@pytest.fixture
def desk(good_desk: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good_desk, tmp_path / "desk"))


def judge(case: Case, run: Run) -> None:
    """One error line, last and as the table has it; nothing else but the notes that the table knows; nothing left behind."""
    assert run.status == 2, (run.status, run.out, run.err)
    *notes, error = run.err.splitlines()
    line = re.fullmatch(
        r"(?:fluent-mlama )?(?P<program>[\w.]+)(?: [\w-]+){0,2}: error: (?P<said>.*)", error
    )
    assert line is not None and line["program"] == case.error_name, run.err
    said = line["said"]
    assert matches(case.says, said), f"\n{said}\nis not\n{case.says}"
    assert len(notes) == len(case.notes) and all(map(matches, case.notes, notes)), notes
    assert "Traceback" not in run.out + run.err
    assert run.left_behind(case) == []


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{case.command.split(' -')[0]}: {case.what}" for case in CASES]
)
def test_bad_input_is_one_line_and_touches_nothing(
    case: Case, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not case.by_root and os.geteuid() == 0:
        pytest.skip("root may read and write everything")
    judge(case, run_here(case, desk, monkeypatch, capsys))


@pytest.mark.parametrize("case", ALONE.values(), ids=ALONE)
def test_bad_input_ends_a_process_of_its_own_alike(case: Case, desk: Path) -> None:
    judge(case, run_alone(case, desk))


@pytest.mark.parametrize("case", ALONE.values(), ids=ALONE)
def test_an_argument_that_is_no_text_is_refused(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table cannot hold it, being text."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left, contextlib.redirect_stderr(io.StringIO()) as said:
        run_main(importlib.import_module(case.module).main, [*case.arguments, "--out", "caf\udce9"])
    assert left.value.code == 2 and list(tmp_path.iterdir()) == []
    assert said.getvalue().endswith(
        r": error: 'caf\udce9' is no UTF-8, which no file here could hold; use another name" + "\n"
    )


def test_page_quotes_the_table(root: Path) -> None:
    page = (root / "docs/bad-input.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| .+ \| `([^`]+)` \|$", page, re.MULTILINE)
    assert len(quoted) == 12 and set(quoted) <= {case.says for case in CASES}


def test_readme_quotes_what_is_said(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    table = readme.partition("## Troubleshooting")[2].partition("\n## ")[0]
    quoted = [
        text
        for row in table.splitlines()
        for text in re.findall("`([^`]*…[^`]*)`", row.split(" | ")[0])
    ]
    said = "\n".join(path.read_text(encoding="utf-8") for path in source_files(root))
    assert len(quoted) == 6
    for text in quoted:
        assert all(part.strip() in said for part in text.split("…")), text
