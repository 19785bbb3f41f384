"""Shared fixtures: where the published data lies, and how its absence is told.

One setting, FLUENT_DATA (default ``../shared/data`` beside the repository). The data has no licence, so it is
never copied into the repository; tests that need it skip elsewhere, and fail in CI, where it must be there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fluent.console import UserError

if TYPE_CHECKING:
    from fluent.scoring.causal import CausalScorer

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("FLUENT_DATA", ROOT.parent / "shared" / "data"))

_data_tests = {"run": 0, "skipped": 0}


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("data") is None or DATA.is_dir():
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"published data not found at {DATA}; set FLUENT_DATA", pytrace=False)
    pytest.skip(f"needs the published data; none at {DATA} (set FLUENT_DATA)")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "data" not in report.keywords:
        return
    if report.skipped:
        _data_tests["skipped"] += 1
    elif report.when == "call":
        _data_tests["run"] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"tests on published data: {_data_tests['run']} run, {_data_tests['skipped']} skipped")


@pytest.fixture(scope="session")
def published() -> Path:
    """Folder of the published data (mark the test with ``@pytest.mark.data``)."""
    return DATA


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def smollm2() -> CausalScorer:
    """The embedded model as a scorer, loaded once (mark the test with ``@pytest.mark.model``)."""
    from fluent.scoring.causal import load_scorer
    from fluent.scoring.embedded import embedded_gguf

    try:
        embedded_gguf()
    except UserError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    return load_scorer("smollm2", device="cpu")
