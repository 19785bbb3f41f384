"""A dump or scores file that is not the one its run record tells of: said by stats.py, in every signature, and in the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluent_mlama import stats
from fluent_mlama.console import UserError
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.results import run_path, scores_path
from fluent_mlama.reporting.loading import DumpFolder
from tests.fault_world import flip_bit, read_only
from tests.stand_in import StandInScorer, city_benchmark

NAME = "cs_P19_template_gt.tsv"


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    for relation in ("P19", "P36"):
        Processor(
            city_benchmark(relation=relation), Settings(model="stand-in", out=tmp_path / "stats")
        ).rank(StandInScorer())
    return tmp_path / "stats"


def change(dumps: Path) -> None:
    """A person sets one flag right."""
    lines = (dumps / NAME).read_text(encoding="utf-8").split("\n")
    cells = lines[1].split("\t")
    cells[-1] = {"0": "1", "1": "0"}[cells[-1]]
    (dumps / NAME).write_text("\n".join([lines[0], "\t".join(cells), *lines[2:]]), encoding="utf-8")


def general(dumps: Path) -> str:
    tables = dumps.parent / "tables"
    assert stats.main(["general", "--stats", str(dumps), "--tables", str(tables)]) == 0
    return (tables / "general_table.tex").read_text(encoding="utf-8")


def test_stats_names_a_changed_dump_and_its_tables_carry_the_name(
    dumps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = general(dumps)
    assert "changed by hand" not in before + capsys.readouterr().err
    change(dumps)
    after = general(dumps)
    remark = f"{dumps / NAME} was cut off, damaged or changed since it was written (not the hash in its run record)\n"
    assert capsys.readouterr().err.count(remark) == 1
    signature = next(line for line in before.splitlines() if line.startswith("% signature"))
    assert f"{signature}|changed by hand: {NAME}\n" in after


def test_a_dump_whose_record_has_no_hash_or_that_has_no_record_is_not_accused(dumps: Path) -> None:
    change(dumps)
    record = run_path(dumps / NAME)
    text = record.read_text(encoding="utf-8")
    folder = DumpFolder(dumps)
    assert folder.is_changed(NAME) and not folder.is_changed("cs_P36_template_gt.tsv")
    record.write_text(
        text.replace('"dump_sha256": "', '"dump_sha256": "", "was": "'), encoding="utf-8"
    )
    assert not DumpFolder(dumps).is_changed(NAME)
    record.unlink()
    assert not DumpFolder(dumps).is_changed(NAME)


def test_the_report_names_it(dumps: Path) -> None:
    change(dumps)
    page = dumps.parent / "report.html"
    assert (
        stats.main(["report", "--stats", str(dumps), "--resamples", "200", "--out", str(page)]) == 0
    )
    assert f"no longer tell what made them: {NAME}." in page.read_text(encoding="utf-8")


def test_rerank_names_changed_dumps_and_damaged_scores(
    dumps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rerank(name: str) -> str:
        words = ["rerank", "--scores", str(dumps), "--out", str(dumps.parent / name / "stats")]
        assert stats.main(words) == 0
        return capsys.readouterr().err

    assert "damaged or changed" not in rerank("one")
    change(dumps)
    assert f"{dumps / NAME} was cut off, damaged or changed since it was written" in rerank("two")
    scores = scores_path(dumps / "cs_P36_template_gt.tsv")
    scores.write_bytes(scores.read_bytes())
    assert str(scores) not in rerank("three")
    flip_bit(scores)
    with pytest.raises(
        UserError, match="scores.parquet was cut off, damaged or changed since it was written"
    ):
        rerank("four")
    page = dumps.parent / "report.html"
    with pytest.raises(
        UserError, match="scores.parquet was cut off, damaged or changed since it was written"
    ):
        stats.main(["report", "--stats", str(dumps), "--resamples", "200", "--out", str(page)])


def test_a_folder_for_tables_that_may_not_be_written(dumps: Path) -> None:
    shut = dumps.parent / "shut"
    shut.mkdir()
    with read_only(shut), pytest.raises(PermissionError) as refusal:
        stats.main(["general", "--stats", str(dumps), "--tables", str(shut / "tables")])
    assert refusal.value.filename is not None  # told in one line by run_main
    assert list(shut.iterdir()) == []
