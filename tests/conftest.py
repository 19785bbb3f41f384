"""Shared fixtures: where the published data lies, and how its absence is told.

One setting, FLUENT_DATA (default ``../shared/data`` beside the repository). The data has no licence, so it is never
copied into the repository. The fixture ``published`` is the only way to it: a test that takes it, itself or through
another fixture, is marked ``data``, and skips with a reason where there is none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fluent_mlama.console import UserError

if TYPE_CHECKING:
    from fluent_mlama.scoring.causal import CausalScorer

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("FLUENT_CHECK", "always")  # a fault made in a test must be seen by the check

ROOT = Path(__file__).resolve().parent.parent
_DATA = Path(os.environ.get("FLUENT_DATA") or ROOT.parent / "shared" / "data").resolve()


@pytest.hookimpl(tryfirst=True)  # before -m chooses among the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "published" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.data)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if (
        item.get_closest_marker("data") and not _DATA.is_dir()
    ):  # here, so that the summary counts them in one line
        pytest.skip(f"needs the published data; none at {_DATA} (set FLUENT_DATA)")


@pytest.fixture(scope="session")
def published() -> Path:
    """Folder of the published data."""
    return _DATA


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def smollm2() -> CausalScorer:
    """The embedded model as a scorer, loaded once (mark the test with ``@pytest.mark.model``)."""
    from fluent_mlama.scoring.causal import load_scorer
    from fluent_mlama.scoring.embedded import embedded_gguf

    try:
        embedded_gguf()
    except UserError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    return load_scorer("smollm2", device="cpu")
