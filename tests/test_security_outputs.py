"""Labels and names that try to be more than text: what is built from them stays inert, and TSV keeps them to the letter."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from fluent_mlama import stats
from fluent_mlama.files import is_file_name, open_source
from fluent_mlama.fluency.gender import paper_layout as gender_paper_layout
from fluent_mlama.records.benchmark import make_benchmark, read_benchmark, write_benchmark
from fluent_mlama.records.results import Dump, read_dump, write_dump
from fluent_mlama.reporting.infl_table import paper_layout as infl_paper_layout
from fluent_mlama.reporting.table_io import write_tables
from tests.small_dumps import small_dump

HOSTILE = (
    "=cmd()|' /C calc'!A0", "@SUM(1+1)", "+1", "-1", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script><!--",
    r"\input{/etc/passwd}", r"\write18{touch owned}", "../../x", "50 % & $x_{1}^2$ #1 ~ {", r"$\frac{$", "{{ 7 * 7 }}",
    "'; DROP TABLE names; --",
    "a\tb", "a\nb", '"', "\u202egnp.exe",
)  # fmt: skip
WAYS = ("template", r"\input{/etc/passwd}", r"=cmd() <b>x|y:z 50 % & $\frac{$ #")


def hostile_dump(lang: str, relation: str) -> Dump:
    """A dump whose labels and verbalisations are hostile; only its file name is not (a stranger may name columns as they like)."""
    made = small_dump(
        lang, relation, ("template", "w1", "w2"), facts=len(HOSTILE), protocol="paper"
    )
    table = made.table.copy()
    for shift, column in enumerate(
        ("sub_label", "en_sub_label", "obj_label", "en_obj_label", "template")
    ):
        table[column] = [
            f"{HOSTILE[(row + shift) % len(HOSTILE)]} {row}" for row in range(len(table))
        ]
    table["en_template"] = [
        f"{sub} % \\input{{x}} {obj}"
        for sub, obj in zip(table["en_sub_label"], table["en_obj_label"], strict=True)
    ]
    for v, name in zip(("w1", "w2"), WAYS[1:], strict=True):
        table.columns = [
            re.sub(f"^{v}_", lambda _, name=name: f"{name}_", column) for column in table.columns
        ]  # type: ignore[misc]
    return Dump(lang, relation, WAYS, "paper", table, f"{lang}_{relation}_x.tsv")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "stats"
    for lang in ("ru", "cs"):
        for relation in ("P19", "P36"):
            write_dump(hostile_dump(lang, relation), folder)
    return folder


@pytest.fixture(scope="module")
def made(dumps: Path) -> Path:
    """What stats.py makes of them."""
    out = dumps.parent
    shared = ["--stats", str(dumps), "--langs", "ru,cs", "--relations", "P19,P36"]
    for command, style in (("general", "clean"), ("relations", "paper"), ("qe", "paper")):
        assert stats.main([command, *shared, "--style", style, "--tables", str(out / style)]) == 0
    assert (
        stats.main(
            [
                "compare",
                *shared,
                "--resamples",
                "200",
                "--tables",
                str(out / "clean"),
                "--graphs",
                str(out / "graphs"),
            ]
        )
        == 0
    )
    assert stats.main(["audit", *shared, "--tables", str(out / "clean")]) == 0
    assert (
        stats.main(["graphs", *shared, "--only", "general", "--graphs", str(out / "graphs")]) == 0
    )
    assert (
        stats.main(["report", *shared, "--resamples", "200", "--out", str(out / "report.html")])
        == 0
    )
    return out


COMMANDS = re.compile(
    r"\\(input|write18|include|openin|catcode|def|csname|frac)\b|(?<!\\)\$\\?frac|(?<!\\)#"
)


def test_latex_holds_no_command_of_a_label(made: Path) -> None:
    tables = sorted(made.rglob("*.tex"))
    assert len(tables) >= 5
    for path in tables:
        for line in path.read_text(encoding="utf-8").splitlines():
            assert line.startswith("%") or not COMMANDS.search(line), f"{path.name}: {line}"
    text = (made / "paper" / "qe.tex").read_text(encoding="utf-8")
    assert r"\textbackslash{}input\{/etc/passwd\}" in text and r"50 \% \& \$" in text


def test_other_published_layouts_escape_their_names() -> None:
    names = list(WAYS[1:])
    frame = pd.DataFrame({"ru": [1.0] * len(names)}, index=names)
    counts = pd.DataFrame(
        [
            {"group": "female", "lang": "ru", "verbalisation": v, "r1": 0.5, "feminine_share": 0.5}
            for v in names
        ]
    )
    for text in (
        infl_paper_layout(frame),
        infl_paper_layout(frame, frame),
        gender_paper_layout(counts),
    ):
        assert r"\textbackslash{}input\{/etc/passwd\}" in text and not COMMANDS.search(text)


def test_tables_of_the_probes_are_inert_in_latex_and_exact_as_tsv(tmp_path: Path) -> None:
    write_tables(tmp_path, {"one": pd.DataFrame({"uid": HOSTILE, "value": 0.5})}, "model|x % y")
    assert not COMMANDS.search((tmp_path / "one.tex").read_text(encoding="utf-8").split("\n", 1)[1])
    assert pd.read_csv(tmp_path / "one.tsv", sep="\t", dtype=str, keep_default_na=False)[
        "uid"
    ].tolist() == list(HOSTILE)


def test_pdflatex_sets_the_tables_and_shows_the_names(made: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex (Debian: texlive-latex-extra lmodern texlive-lang-cyrillic)")
    tables = (
        "clean/general_table.tex",
        "clean/compare.tex",
        "paper/qe.tex",
    )  # the published relation table sets 18_{4} outside maths
    body = "\n\n".join((made / name).read_text(encoding="utf-8") for name in tables)
    page = made / "page.tex"
    page.write_text(
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{amsmath,booktabs,makecell,multirow}\\begin{document}\n"
        f"{body}\n\\end{{document}}\n", encoding="utf-8",
    )  # fmt: skip
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-recorder", page.name]
    done = subprocess.run(
        command,
        cwd=made,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-600:]
    opened = (made / "page.fls").read_text(encoding="utf-8", errors="replace")
    assert "passwd" not in opened and not (made / "owned").exists()


class Elements(HTMLParser):
    """Start tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_report_holds_no_element_of_a_label(made: Path, root: Path) -> None:
    template = (root / "fluent_mlama" / "reporting" / "templates" / "report.html").read_text(
        encoding="utf-8"
    )
    elements = Elements((made / "report.html").read_text(encoding="utf-8")).found
    assert sum(tag == "script" for tag, _ in elements) == template.count("<script") > 0
    assert not {"iframe", "object", "embed"} & {tag for tag, _ in elements}
    images = [attributes for tag, attributes in elements if tag == "img"]
    figures = "data:image/svg+xml;base64,"  # inside an img, SVG runs no script and fetches nothing
    assert images and all(
        set(one) == {"class", "src", "alt"} and (one["src"] or "").startswith(figures)
        for one in images
    )
    for _, attributes in elements:
        assert not any(name.startswith("on") for name in attributes)
        assert not any(
            (attributes.get(name) or "#").startswith(("http", "javascript", "//"))
            for name in ("src", "href")
        )


def test_tsv_keeps_every_label_to_the_letter(dumps: Path, tmp_path: Path) -> None:
    wanted = hostile_dump("ru", "P19")
    back = read_dump(open_source(dumps), "ru_P19_x.tsv")
    assert back.verbalisations == WAYS
    for column in ("sub_label", "obj_label", "en_template"):
        assert back.table[column].tolist() == wanted.table[column].tolist()
    rows = pd.DataFrame({
        "sub_uri": [f"Q{n}" for n in range(len(HOSTILE))], "sub_label": HOSTILE, "obj_uri": "Q1", "obj_label": HOSTILE, "template": HOSTILE,
        "template_prompt": HOSTILE, "aliases": "",
    })  # fmt: skip
    write_benchmark(make_benchmark("ru", "P19", "own", rows), tmp_path)
    assert read_benchmark(open_source(tmp_path), "ru", "P19").table["obj_label"].tolist() == list(
        HOSTILE
    )


def test_every_written_name_is_one_that_windows_takes(made: Path) -> None:
    written = [path for path in made.rglob("*") if path.is_file()]
    assert len(written) >= 12
    assert [path.name for path in written if not is_file_name(path.name)] == []
