"""Adding one of each from outside the package: a row in a table and a function, used through the real command lines.

A back end is added by an entry point (``test_translating_local.py``).
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fluent_mlama import script, stats
from fluent_mlama.exporting.command import FORMATS, ExportOptions
from fluent_mlama.linking import KINDS, Kind
from fluent_mlama.options import File
from fluent_mlama.outcomes import Measure, Outcomes, outcome_rows, write_outcomes
from fluent_mlama.reporting.loading import open_dumps
from fluent_mlama.reporting.options import StatsOptions

STARTER = Path(__file__).parent.parent / "stats" / "starter" / "corrected"


def count_facts(*, options: StatsOptions = StatsOptions()) -> None:
    """Facts of each language, as a table of its own.

    stats.py facts --stats stats/starter/corrected
    """
    for table in open_dumps(options.dumps).tables(options.langs, options.relations):
        print(f"{table.lang} {table.relation} {len(table)}")


def export_prompts(*, what: ExportOptions = ExportOptions(), out: File) -> None:
    """The templates' prompts, one per line."""
    lines = [
        prompt for benchmark in what.benchmarks() for prompt in benchmark.table["template_prompt"]
    ]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that only a user has."""
    module = ModuleType("my_additions")
    module.count_facts, module.export_prompts = count_facts, export_prompts  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_additions", module)
    return "my_additions"


def test_a_statistics_command(
    mine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(stats.COMMANDS, "facts", (f"{mine}:count_facts", "facts per file"))
    assert stats.main(["facts", "--stats", str(STARTER), "-l", "ru", "-r", "P36"]) == 0
    assert capsys.readouterr().out == "ru P36 32\n"
    assert stats.main(["facts", "--help"]) == 0 and stats.main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert "Facts of each language" in printed and "facts per file" in printed


def test_an_export_format(mine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(FORMATS, "prompts", (f"{mine}:export_prompts", "prompts, one per line"))
    out = tmp_path / "prompts.txt"
    words = ["export", "prompts", "--data", "starter", "-l", "ru", "-r", "P36", "--out", str(out)]
    assert script.main(words) == 0
    assert len(out.read_text(encoding="utf-8").splitlines()) == 32


def test_a_linking_function(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(KINDS, "first", Kind(lambda e, _: e.total / np.sqrt(e.tokens)))
    words = ["rerank", "--scores", str(STARTER), "-l", "ru", "-r", "P36"]
    assert stats.main([*words, "--linking", "first", "--out", str(tmp_path / "out")]) == 0
    assert "+first|" in capsys.readouterr().out


def test_an_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(0)
    rows = [
        ("", "colours", f"i{item}", f"o{item % 40}", "", condition, None, None, generator.random())
        for item in range(80)
        for condition in ("plain", "polite")
    ]
    table = outcome_rows(rows, ["warmth"])
    measures = (Measure("warmth", "warmth", scale="number"),)
    made = Outcomes("politeness", table, measures, ("asker",), "subject", "mine@1")
    write_outcomes(tmp_path / "run", made)
    where = ["--stats", str(tmp_path / "run"), "--tables", str(tmp_path / "tables")]
    assert stats.main(["compare", *where, "--baseline", "plain", "--resamples", "200"]) == 0
    printed = capsys.readouterr().out
    assert "politeness: 80 items" in printed and "new askers of the same subjects" in printed
    assert stats.main(["audit", *where]) == 0
    assert stats.main(["export", *where, "--out", str(tmp_path / "exported")]) == 0
