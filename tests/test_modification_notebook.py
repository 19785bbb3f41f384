"""modification.ipynb runs from top to bottom offline, and what is committed of it is tidy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fluent_mlama.files import open_source
from fluent_mlama.records.benchmark import is_usable, read_benchmark
from fluent_mlama.records.few_shot import read_few_shot

if TYPE_CHECKING:
    from nbformat import NotebookNode  # elsewhere where it is used, as it takes seconds


@pytest.fixture(scope="module")
def notebook(root: Path) -> NotebookNode:
    import nbformat

    return nbformat.read(root / "modification.ipynb", as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_committed_outputs_are_whole_and_tidy(root: Path, notebook: NotebookNode) -> None:
    import nbformat

    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [
        output for cell in cells for output in cell.outputs if output.output_type == "error"
    ]
    assert sum(bool(cell.outputs) for cell in cells) >= len(cells) - 2
    assert all(not cell.metadata for cell in notebook.cells)
    text = (root / "modification.ipynb").read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|work)/|Traceback|Warning", text)


def test_it_runs_offline_from_top_to_bottom(
    root: Path, notebook: NotebookNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat
    from nbclient import NotebookClient

    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")  # whoever asks a service gets nothing
    fresh = nbformat.from_dict(json.loads(json.dumps(notebook)))
    choice = code_cells(fresh)[0]
    assert 'OUT = Path("fixed_data")' in choice.source
    choice.source += (
        f"\nOUT, PROMPTS = Path({str(tmp_path / 'out')!r}), Path({str(tmp_path / 'prompts')!r})"
    )
    NotebookClient(
        fresh, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(root)}}
    ).execute()
    benchmark = read_benchmark(open_source(tmp_path / "out"), "ru", "P1376")
    assert benchmark.verbalisations == ("template", "phrasebook", "careless")
    assert all(map(is_usable, benchmark.table["careless_status"]))
    assert (
        benchmark.table["careless_infl_object"].tolist()
        == benchmark.table["phrasebook_infl_object"].tolist()
    )
    shots = read_few_shot(open_source(tmp_path / "prompts"), "ru", "P1376").shots
    assert len(shots) == 3
    assert not {shot.source for shot in shots} & set(benchmark.table["en_template"])
