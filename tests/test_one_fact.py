"""From TSV to rank a fact crosses at most fifteen files; docs/architecture.md lists them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

import fluent_mlama
from fluent_mlama.data import BENCHMARK, shipped
from fluent_mlama.files import open_source
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.benchmark import read_benchmark
from fluent_mlama.scoring.causal import load_scorer

PACKAGE = Path(fluent_mlama.__file__).parent
MOST = 15


@pytest.mark.model
def test_one_fact_crosses_the_files_that_the_page_lists(root: Path, tmp_path: Path) -> None:
    scorer = load_scorer("smollm2")  # the check at load is not the fact's way
    crossed: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and PACKAGE in path.parents:
            crossed.add(path.relative_to(PACKAGE).as_posix())

    settings = Settings(model="smollm2", out=tmp_path / "stats", limit=1, protocol="corrected")
    sys.setprofile(watch)
    try:
        source = open_source(shipped("starter", BENCHMARK))
        benchmark = read_benchmark(source, "es", "P36", "phrasebook")
        summary = Processor(benchmark, settings).rank(scorer)
    finally:
        sys.setprofile(None)
    assert summary.rows_scored == 1
    crossed -= {"data/__init__.py"}  # only finds where the starter is
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## One fact, from file to figure")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| `([a-z_/]+\.py)` \|", section, re.MULTILINE))
    assert crossed == listed and len(crossed) <= MOST
