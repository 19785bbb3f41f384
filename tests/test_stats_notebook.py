"""statistics.ipynb runs top to bottom, with and without the published dumps; what is shipped of the paper is what we make of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fluent_mlama import stats


def execute(root: Path, work: Path, monkeypatch: pytest.MonkeyPatch, data: str) -> str:
    """Run a copy of the notebook in a copy of the little it needs; returns all text that it printed."""
    import nbformat  # here, as it takes seconds
    from nbclient import NotebookClient

    monkeypatch.setenv("FLUENT_DATA", data)
    monkeypatch.setenv("PYTHONPATH", str(root))
    for name in (
        "tables/paper",
        "graphs/paper",
        "tests/data",
        "stats/starter/paper",
        "stats_wide/starter/paper",
    ):
        shutil.copytree(root / name, work / name, ignore=shutil.ignore_patterns("*.parquet"))
    notebook = nbformat.read(root / "statistics.ipynb", as_version=4)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(work)}}
    ).execute()
    outputs = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    assert not [output for output in outputs if output.output_type == "error"]
    texts = [
        output.get("text") or output.get("data", {}).get("text/markdown", "") for output in outputs
    ]
    return "\n".join(str(text) for text in texts)


def test_notebook_on_shipped_figures(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = execute(root, tmp_path, monkeypatch, str(tmp_path / "nowhere"))
    assert r"\textbf{0.586}" in text
    assert "No published dumps here" in text
    ours = text.partition("Dumps of cs, da, es, hr, id, ru, uk, vi, zh")[2]
    assert (
        "template & phrasebook" in ours
        and "Audit of rank dumps" in ours
        and "template → phrasebook" in ours
    )
    assert "Not from these dumps" not in ours


def test_notebook_on_published_dumps(
    root: Path, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = execute(root, tmp_path, monkeypatch, str(published.resolve()))
    general = (published / "fluent_mlama/tables/general_table.tex").read_text(encoding="utf-8")
    assert general in text
    assert "0.608*" in text  # r of Table 5, from the gains that were read off Figure 2
    assert "Facts about women (P19 P20, pooled)" in text
    assert "**Equal prompts, unequal ranks** in 22 of 73 dumps" in text
    assert "Not from these dumps" not in text.partition("Dumps of")[0]


def test_notebook_is_shipped_executed(root: Path) -> None:
    text = (root / "statistics.ipynb").read_text(encoding="utf-8")
    code = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert code and all(cell["execution_count"] == number for number, cell in enumerate(code, 1))
    assert "/tmp/" not in text


def test_shipped_tables_of_the_paper_are_up_to_date(
    root: Path, published: Path, tmp_path: Path
) -> None:
    statistics = stats.Statistics(
        published / "fluent_mlama/stats.zip", tables=tmp_path, exclude_short="gt"
    )
    for made in (statistics.general_table(), statistics.inflection_table()):
        assert made.read_bytes() == (root / "tables" / "paper" / made.name).read_bytes()
    for name in ("general", "rank_boxplot"):
        assert all(
            (root / "graphs" / "paper" / f"{name}.{kind}").stat().st_size > 10_000
            for kind in ("pdf", "png")
        )
