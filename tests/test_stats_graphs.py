"""Graphs: right numbers behind the marks, the same bytes twice, any number of languages; tables that a real LaTeX sets."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from small_dumps import write_small_dumps

import stats
from fluent.console import UserError
from fluent.reporting import figures_ranks, figures_relations
from fluent.reporting.graphs import GRAPHS
from fluent.reporting.latex import write_document
from fluent.reporting.loading import DumpFolder
from fluent.reporting.measures import by_relation, recall_at
from fluent.reporting.plotting import COLOURS, look, panels, style_of
from fluent.reporting.quality import gains, read_quality_gains, retrieval_gains
from fluent.reporting.selection import R15, R16, SLAVIC, select

HERE = Path(__file__).parent / "data"


def draw(folder: Path, out: Path, *options: str) -> None:
    assert stats.main(["graphs", "--stats", str(folder), "--graphs", str(out), *options]) == 0


def test_every_graph_as_pdf_and_png_the_same_twice(tmp_path: Path) -> None:
    folder = write_small_dumps(tmp_path / "dumps", ("ru", "cs", "fi"), ("P19", "P36", "P740"))
    quality = tmp_path / "qe.tsv"
    rows = [f"{x}\tgt\t{r}\t{i / 10}" for i, (x, r) in enumerate((x, r) for x in ("ru", "cs", "fi") for r in ("P19", "P36", "P740"))]
    quality.write_text("lang\tverbalisation\trelation\tqe_delta\n" + "\n".join(rows) + "\n", encoding="utf-8")
    for out in ("one", "two"):
        draw(folder, tmp_path / out, "--qe", str(quality))
    first, second = ({path.name: path.read_bytes() for path in (tmp_path / out).iterdir()} for out in ("one", "two"))
    assert set(first) == {f"{name}.{kind}" for name in (*GRAPHS, "qe") for kind in ("pdf", "png")}
    assert first == second
    assert all(b"/CreationDate" not in data for name, data in first.items() if name.endswith(".pdf"))
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
    assert len({style["color"] for style in styles}) == len({style["marker"] for style in styles}) == len(COLOURS)


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
        figure = figures_ranks.recall_lines([selection])
    line = {axis.get_title(): [line.get_ydata() for line in axis.lines] for axis in figure.axes}
    assert [round(float(y[0]), 6) for y in line["ru"]] == [0.519626, 0.587887, 0.551515]
    assert [round(float(y[4]), 6) for y in line["hr"]] == [0.880222, 0.890944, 0.866128]


def test_boxes_are_the_papers_figure_4(narrow: DumpFolder) -> None:
    with look():
        figure = figures_ranks.rank_boxes([select(narrow, SLAVIC, R15)])
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["ru (N = 6365)", "cs (N = 3832)", "uk (N = 4067)", "hr (N = 1897)"]
    tops = [[float(np.max(box.get_path().vertices[:, 1])) for box in axis.patches] for axis in figure.axes]
    assert tops == [[6, 4, 5], [4, 2, 3], [5.5, 4, 5], [2, 2, 2]]
    means = [float(line.get_ydata()[0]) for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert [round(mean, 6) for mean in means] == [5.084839, 4.147211, 4.807227]


def test_scatter_and_heat_map_hold_the_gains(narrow: DumpFolder) -> None:
    selection = select(narrow, SLAVIC, R15)
    both = gains(retrieval_gains(selection), read_quality_gains(HERE / "qe_gains.tsv"))
    with look():
        scatter = figures_relations.quality_scatter([("Slavic", both)])
        heat = figures_relations.heat_map([selection])
    assert sum(len(points.get_offsets()) for points in scatter.axes[0].collections) == 2 * 4 * 15
    recall = by_relation(selection, recall_at(1))
    shown = heat.axes[1].images[0].get_array()
    expected = (recall.xs("gt", axis=1, level=1) - recall.xs("template", axis=1, level=1)).to_numpy().T
    assert np.allclose(shown, expected)


def latex() -> str:
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("needs pdflatex (Debian: texlive-latex-extra lmodern texlive-lang-cyrillic)")
    return program


def set_document(folder: Path) -> str:
    done = subprocess.run(
        [latex(), "-interaction=nonstopmode", "-halt-on-error", "all_tables.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-2000:]
    log = (folder / "all_tables.log").read_text(encoding="utf-8", errors="replace")
    assert "Overfull" not in log
    assert "Missing character" not in log
    return log


def test_all_writes_everything_and_latex_sets_it(tmp_path: Path) -> None:
    folder = write_small_dumps(tmp_path / "dumps", ("ru", "cs"), ("P19", "P36"), verbalisations=("template", "gt", "50%_a&b"))
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
    assert "Output written" in set_document(out)


def test_latex_sets_every_table_of_the_published_dumps(published: Path, tmp_path: Path) -> None:
    latex()
    folder = published / "fluent_mlama"
    statistics = stats.Statistics(folder / "stats.zip", folder / "stats_wide.zip", tables=tmp_path)
    written = [statistics.general_table(), statistics.wide_table(), statistics.additional_languages_table(), statistics.inflection_table()]
    written += [statistics.relation_table(), statistics.quality_table(qe=HERE / "qe_gains.tsv")]
    write_document(tmp_path, written)
    assert "Output written" in set_document(tmp_path)
