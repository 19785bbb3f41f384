"""Graphs: right numbers behind the marks, the same bytes twice, any number of languages; tables
that a real LaTeX sets."""

from __future__ import annotations

import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from small_dumps import write_small_dumps

from fluent_mlama import stats
from fluent_mlama.console import UserError
from fluent_mlama.reporting import graphs
from fluent_mlama.reporting.graphs import GRAPHS
from fluent_mlama.reporting.latex import Column, booktabs, settings_for, write_document, write_table
from fluent_mlama.reporting.loading import DumpFolder
from fluent_mlama.reporting.measures import by_relation, recall_at
from fluent_mlama.reporting.plotting import COLOURS, look, panels, style_of
from fluent_mlama.reporting.qe_table import gains, read_quality_gains, retrieval_gains
from fluent_mlama.reporting.selection import R15, R16, SLAVIC, select

HERE = Path(__file__).parent / "data"


def draw(folder: Path, out: Path, *options: str) -> None:
    assert stats.main(["graphs", "--stats", str(folder), "--graphs", str(out), *options]) == 0


def test_every_graph_as_pdf_and_png_the_same_twice(tmp_path: Path) -> None:
    folder = write_small_dumps(tmp_path / "dumps", ("ru", "cs", "fi"), ("P19", "P36", "P740"))
    quality = tmp_path / "qe.tsv"
    rows = [
        f"{x}\tgt\t{r}\t{i / 10}"
        for i, (x, r) in enumerate(
            (x, r) for x in ("ru", "cs", "fi") for r in ("P19", "P36", "P740")
        )
    ]
    quality.write_text(
        "lang\tverbalisation\trelation\tqe_delta\n" + "\n".join(rows) + "\n", encoding="utf-8"
    )
    for out in ("one", "two"):
        draw(folder, tmp_path / out, "--qe", str(quality))
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / out).iterdir()}
        for out in ("one", "two")
    )
    assert set(first) == {f"{name}.{kind}" for name in (*GRAPHS, "qe") for kind in ("pdf", "png")}
    assert first == second
    assert all(
        b"/CreationDate" not in data for name, data in first.items() if name.endswith(".pdf")
    )
    assert b"signature" in first["general.png"]


@pytest.mark.parametrize("count", [1, 2, 5, 9, 20])
def test_panels_for_any_number_of_languages(count: int) -> None:
    with look():
        figure, axes = panels([f"x{i}" for i in range(count)])
        assert [axis.get_title() for axis in axes] == [f"x{i}" for i in range(count)]
        assert sum(axis.get_visible() for axis in figure.axes) == count


def test_one_look_for_each_verbalisation() -> None:
    names = [f"v{i}" for i in range(len(COLOURS))]
    styles = [style_of(v, names) for v in names]
    assert (
        len({style["color"] for style in styles})
        == len({style["marker"] for style in styles})
        == len(COLOURS)
    )


def test_unknown_graph_and_missing_quality(tmp_path: Path) -> None:
    folder = write_small_dumps(tmp_path / "dumps")
    with pytest.raises(UserError, match="unknown graph 'pie'"):
        draw(folder, tmp_path / "out", "--only", "pie")
    with pytest.raises(UserError, match="no file"):
        draw(folder, tmp_path / "out", "--only", "qe", "--qe", str(tmp_path / "none.tsv"))
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def narrow(published: Path) -> DumpFolder:
    return DumpFolder(published / "fluent_mlama" / "stats.zip")


def test_recall_lines_are_the_papers_figure_3(narrow: DumpFolder) -> None:
    selection = select(narrow, SLAVIC, R16)
    with look():
        figure = graphs.recall_lines([selection])
    line = {axis.get_title(): [line.get_ydata() for line in axis.lines] for axis in figure.axes}
    assert [round(float(y[0]), 6) for y in line["ru"]] == [0.519626, 0.587887, 0.551515]
    assert [round(float(y[4]), 6) for y in line["hr"]] == [0.880222, 0.890944, 0.866128]


def test_boxes_are_the_papers_figure_4(narrow: DumpFolder) -> None:
    with look():
        figure = graphs.rank_boxes([select(narrow, SLAVIC, R15)])
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["ru (N = 6365)", "cs (N = 3832)", "uk (N = 4067)", "hr (N = 1897)"]
    tops = [
        [float(np.max(box.get_path().vertices[:, 1])) for box in axis.patches]
        for axis in figure.axes
    ]
    assert tops == [[6, 4, 5], [4, 2, 3], [5.5, 4, 5], [2, 2, 2]]
    means = [
        float(line.get_ydata()[0]) for line in figure.axes[0].lines if line.get_marker() == "D"
    ]
    assert [round(mean, 6) for mean in means] == [5.084839, 4.147211, 4.807227]


def test_scatter_and_heat_map_hold_the_gains(narrow: DumpFolder) -> None:
    selection = select(narrow, SLAVIC, R15)
    both = gains(retrieval_gains(selection), read_quality_gains(HERE / "qe_gains.tsv"))
    with look():
        scatter = graphs.quality_scatter([("Slavic", both)])
        heat = graphs.heat_map([selection])
    assert sum(len(points.get_offsets()) for points in scatter.axes[0].collections) == 2 * 4 * 15
    recall = by_relation(selection, recall_at(1))
    shown = heat.axes[1].images[0].get_array()
    expected = (
        (recall.xs("gt", axis=1, level=1) - recall.xs("template", axis=1, level=1)).to_numpy().T
    )
    assert np.allclose(shown, expected)


EUROPEAN_AND_CHINESE = (
    "template",
    "gt",
    "перевод_ґђ",
    "翻译",
    "50%_a&b",
    "[Đž]--«ß»“ț”…\u200b№",
    "x''~^{#$}",
)
READ_BACK = {
    "pdflatex": ("перевод_ґђ", "翻译", "50%_a&b", "ž]--«ß»“", "x’’~^{#$}"),
    "lualatex": ("Αθήνα", "phố_ưđ", "서울", "東京都", "Երևան", "café"),
}
"""What pdftotext finds in the order of writing."""
OTHER_SCRIPTS = (
    "template",
    "Αθήνα",
    "phố_ưđ",
    "मानचित्र",
    "القاهرة",
    "ירושלים",
    "서울",
    "東京都",
    "ไทย",
    "Երևան",
    "cafe\u0301",
)


@pytest.mark.parametrize("style", ["clean", "paper"])
@pytest.mark.parametrize(
    ("program", "names"), [("pdflatex", EUROPEAN_AND_CHINESE), ("lualatex", OTHER_SCRIPTS)]
)
def test_the_named_program_sets_tables_with_labels_of_all_scripts(
    program: str,
    names: tuple[str, ...],
    style: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    needs_program(program)
    folder = write_small_dumps(
        tmp_path / "dumps", ("ru", "zh"), ("P19", "P36"), verbalisations=names
    )
    out = tmp_path / "out"
    monkeypatch.setattr("fluent_mlama.reporting.graphs.write_graphs", lambda *_: None)
    arguments = [
        "--stats",
        str(folder),
        "--tables",
        str(out),
        "--langs",
        "ru,zh",
        "--relations",
        "P19,P36",
    ]
    assert stats.main(["all", *arguments, "--style", style]) == 0
    assert f"all_tables.tex: {program} all_tables.tex in that folder" in capsys.readouterr().err
    set_document(out, program)
    seen = subprocess.run(
        ["pdftotext", "-raw", "all_tables.pdf", "-"],
        cwd=out,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    for name in READ_BACK[program]:
        assert name in unicodedata.normalize("NFC", seen), name


def test_pdflatex_sets_every_character_that_it_is_chosen_for(tmp_path: Path) -> None:
    needs_program("pdflatex")
    every = [chr(code) for code in range(0xA1, 0x2200)] + [
        chr(code) for code in range(0x3000, 0x9FFF, 37)
    ]
    settable = "".join(
        character for character in every if settings_for({character})[0] == "pdflatex"
    )
    assert len(settable) > 550 and {"ł", "ő", "ž", "ț", "Ж", "ґ", "ҡ", "—", "№"} <= set(settable)
    (tmp_path / "every.tex").write_text(" ".join(settable), encoding="utf-8")
    assert write_document(tmp_path, [tmp_path / "every.tex"])[1] == "pdflatex"
    set_document(tmp_path, overfull=True)


def test_nothing_in_a_table_is_lost_on_its_page(tmp_path: Path) -> None:
    labels = [
        "القاهرة (Cairo) 12",
        "ירושלים-X",
        "😀 👩\u200d👧",
        "ⵜⵉⴼ",
        "\ufffd\ue000\U0010ffff",
        "STRAẞE",
        *(f"row {row}" for row in range(90)),
    ]
    columns = [Column("label", "l"), *(Column("wide " * 9) for _ in range(4)), Column("last")]
    table = write_table(
        tmp_path, "t", booktabs(columns, [[label, *"1234", "end"] for label in labels]), labels[:5]
    )
    assert write_document(tmp_path, [table])[1] == "lualatex"
    set_document(tmp_path, "lualatex")
    seen = subprocess.run(
        ["pdftotext", "-raw", "all_tables.pdf", "-"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    assert seen.count("(Cairo) 12") == 2  # in the cell as in the remark: not ")oriaC("
    for text in ("U+1F600 U+1F469U+1F467", "U+2D5CU+2D49U+2D3C", "U+FFFDU+E000U+10FFFF", "STRAẞE"):
        assert text in seen, text
    bounds = subprocess.run(
        ["pdftotext", "-bbox", "all_tables.pdf", "-"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    width, height = (
        float(size) for size in re.findall(r'<page width="([\d.]+)" height="([\d.]+)"', bounds)[0]
    )
    words = re.findall(r'xMax="([\d.]+)" yMax="([\d.]+)">([^<]+)</word>', bounds)
    assert [word for _, _, word in words].count("end") == len(labels)
    assert all(float(right) < width and float(bottom) < height for right, bottom, _ in words)


def needs_program(program: str) -> None:
    """Skip where LaTeX or one of the fonts is not installed; ``.ci/run`` names Debian's
    packages."""
    files = {
        "pdflatex": ("CJKutf8.sty", "t2acmr.fd", "c70gbsn.fd"),
        "lualatex": ("fontspec.sty", "babel-hindi.tex"),
    }[program]
    if shutil.which(program) is None or shutil.which("pdftotext") is None:
        pytest.skip(f"needs {program} and pdftotext (Debian's packages are in .ci/run)")
    for name in files:
        if subprocess.run(["kpsewhich", name], capture_output=True).returncode:
            pytest.skip(f"needs LaTeX's {name} (Debian's packages are in .ci/run)")
    if program == "lualatex":
        fonts = subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True).stdout
        if "FreeSerif" not in fonts or "Noto Sans CJK SC" not in fonts:
            pytest.skip(
                "needs the fonts FreeSerif and Noto Sans CJK (Debian: fonts-freefont-otf "
                "fonts-noto-cjk)"
            )


def set_document(folder: Path, program: str = "pdflatex", overfull: bool = False) -> str:
    needs_program(program)
    done = subprocess.run(
        [program, "-interaction=nonstopmode", "-halt-on-error", "all_tables.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-2000:]
    log = (folder / "all_tables.log").read_text(encoding="utf-8", errors="replace")
    assert overfull or "Overfull" not in log
    assert "Missing character" not in log
    return log


def test_all_writes_everything(tmp_path: Path) -> None:
    folder = write_small_dumps(
        tmp_path / "dumps",
        ("ru", "cs"),
        ("P19", "P36"),
        verbalisations=("template", "gt", "50%_a&b"),
    )
    out = tmp_path / "out"
    arguments = ["--stats", str(folder), "--tables", str(out), "--graphs", str(out)]
    assert stats.main(["all", *arguments]) == 0
    names = {path.name for path in out.iterdir()}
    assert {
        "general_table.tex",
        "infl_delta_table.tex",
        "relation_table_all.tex",
        "qe.tex",
        "audit.md",
        "heatmap.pdf",
        "all_tables.tex",
    } <= names
    assert "general_table_additional_langs.tex" not in names


def test_latex_sets_every_table_of_the_published_dumps(published: Path, tmp_path: Path) -> None:
    needs_program("pdflatex")
    folder = published / "fluent_mlama"
    statistics = stats.Statistics(folder / "stats.zip", folder / "stats_wide.zip", tables=tmp_path)
    written = [
        statistics.general_table(),
        statistics.wide_table(),
        statistics.additional_languages_table(),
        statistics.inflection_table(),
    ]
    written += [statistics.relation_table(), statistics.quality_table(qe=HERE / "qe_gains.tsv")]
    write_document(tmp_path, written)
    assert "Output written" in set_document(tmp_path)
