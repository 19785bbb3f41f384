"""docs/ as a site: built from nothing without a warning; every page and every module is in it; docstrings come out as written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_architecture import source_files


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-q",
        "-W",
        "--keep-going",
        "docs",
        str(folder),
    ]
    built = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    return folder


def test_every_page_can_be_reached_from_the_first(site: Path, root: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    pages = sorted(
        path.relative_to(root / "docs").with_suffix("") for path in (root / "docs").glob("*.md")
    )
    assert [
        str(page) for page in pages if f'href="{page}.html"' not in first and page.name != "index"
    ] == []


def test_the_reference_holds_every_module(site: Path, root: Path) -> None:
    reference = "".join(
        path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html")
    )
    modules = [
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for path in source_files(root)
    ]
    listed = [
        name
        for name in modules
        if name.split(".")[0] not in {"docs", "probes"} and not name.endswith("__main__")
    ]
    listed = [name for name in listed if name != "fluent_mlama"]
    assert len(listed) > 150
    assert [name for name in listed if f'id="module-{name}"' not in reference] == []


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert 'src="http' not in text and 'rel="stylesheet" href="http' not in text, path.name


def test_plain_docstrings_keep_their_meaning(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "docs"))
    from plain_docstrings import to_restructured

    docstring = [
        "Bad files are ``UserError``s; |t*| is a number, `x` is code.", "",
        "name: what it is,", "and more of it.", "first, second: two at once.", "",
        "    python script.py --help",
    ]  # fmt: skip
    assert to_restructured(docstring) == [
        "Bad files are ``UserError``\\ s; \\|t\\*\\| is a number, ``x`` is code.", "",
        "``name``", "    what it is,", "    and more of it.", "``first, second``", "    two at once.", "",
        "::", "", "        python script.py --help", "",
    ]  # fmt: skip
