"""The command line of stats.py: quick help, one-line errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_dumps import write_small_dumps

from fluent_mlama import stats
from fluent_mlama.console import UserError


def test_help_lists_every_command_without_heavy_imports(root: Path) -> None:
    code = (
        "import sys, stats\nstats.main(['--help'])\n"
        "print([m for m in ('pandas', 'matplotlib', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.rstrip().endswith("[]")
    assert all(f"  {name} " in done.stdout for name in stats.COMMANDS)


def test_unknown_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert stats.main(["tables"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_statistics_reads_once_and_takes_options_for_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fluent_mlama.reporting import loading

    reads: list[str] = []
    original = loading.read_dump
    monkeypatch.setattr(
        loading, "read_dump", lambda source, name: reads.append(name) or original(source, name)
    )
    folder = write_small_dumps(tmp_path / "dumps")
    statistics = stats.Statistics(
        folder,
        tables=tmp_path / "tables",
        graphs=tmp_path / "graphs",
        style="paper",
        langs=("ru", "cs"),
    )
    assert (
        statistics.general_table()
        .read_text(encoding="utf-8")
        .startswith(r"\begin{tabular}{|l|rr|rr|}")
    )
    assert r"\toprule" in statistics.general_table(style="clean", langs=("cs",)).read_text(
        encoding="utf-8"
    )
    statistics.relation_table()
    statistics.draw("general", "heatmap")
    assert statistics.recall(1).shape == statistics.mean_rank().shape == (2, 2)
    assert {finding.check for finding in statistics.audit()} >= {"unequal-ranks", "flags-differ"}
    assert sorted(reads) == sorted(set(reads))
    assert len(reads) == 4
    with pytest.raises(UserError, match="no wide dumps"):
        statistics.wide_table()
    with pytest.raises(TypeError, match="no option language"):
        statistics.general_table(language="ru")


def test_wide_dumps_are_the_twin_folders_unless_others_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow, out = write_small_dumps(tmp_path / "stats/mine"), ["--tables", str(tmp_path / "tables")]
    (tmp_path / "stats_wide").mkdir()
    with pytest.raises(UserError, match="no wide dumps beside .*name their folder with --wide"):
        stats.main(["general-wide", "--stats", str(narrow), *out])
    assert stats.main(["audit", "--stats", str(narrow), *out]) == 0
    assert "because not given: wide dumps" in (tmp_path / "tables/audit.md").read_text(
        encoding="utf-8"
    )
    write_small_dumps(tmp_path / "stats_wide/mine", seed=1)
    for options in ([], ["--wide", str(tmp_path / "stats_wide/mine")]):
        assert stats.main(["general-wide", "--stats", str(narrow), *out, *options]) == 0
    assert stats.main(["audit", "--stats", str(narrow), *out]) == 0
    assert (
        "wide dumps"
        not in (tmp_path / "tables/audit.md")
        .read_text(encoding="utf-8")
        .partition("Not looked at")[2]
    )
    with pytest.raises(UserError, match="no such folder"):
        stats.main(["audit", "--stats", str(narrow), "--wide", str(tmp_path / "none"), *out])
