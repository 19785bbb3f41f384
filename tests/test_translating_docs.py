"""docs/translating.md tells of every status, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fluent_mlama.translating.backend import back_ends
from fluent_mlama.translating.checks import FLAGS, REASONS


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "translating.md").read_text(encoding="utf-8")


def test_every_back_end_and_status_is_told_with_its_meaning(page: str) -> None:
    assert [name for name in back_ends() if f"`{name}`" not in page] == []
    for word, meaning in (REASONS | FLAGS).items():
        assert f"| `{word}` | {meaning} |" in page


def test_the_example_of_a_back_end_runs(
    page: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = "\n".join(blocks)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/translating.md", "exec"), {"__name__": "example"})
    table = (tmp_path / "fixed_data" / "ru_P19_shout.tsv").read_text(encoding="utf-8").splitlines()
    assert "КОНРАД АДЕНАУЭР — КЁЛЬН." in table[1]
    assert (tmp_path / "mine.sqlite").is_file()
