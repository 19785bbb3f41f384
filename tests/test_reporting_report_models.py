"""The HTML report with several models side by side: every fact once, sentences told once, and the
same in a real browser."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.headless import CHROMIUM, Visit, browser, visit
from benchmarks.synthetic_dumps import synthetic_dump, write_scores_beside
from fluent_mlama import stats
from fluent_mlama.files import open_source
from fluent_mlama.records.results import write_dump
from fluent_mlama.reporting.comparison import open_folders
from fluent_mlama.reporting.loading import DumpFolder
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.paired import Settings
from fluent_mlama.reporting.plotting import look
from fluent_mlama.reporting.report import open_sides, run_marks
from fluent_mlama.reporting.report_facts import collect_facts, join_facts

WAYS = ("template", "gt")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Model A: ru and cs, 120 facts each, cs with scores. Model B: 100 of the Czech ones, other
    ranks, one sentence worded otherwise."""
    root = tmp_path_factory.mktemp("models")
    for seed, lang in enumerate(("ru", "cs")):
        write_dump(synthetic_dump(lang, "P19", 120, seed, WAYS), root / "A")
    write_scores_beside(synthetic_dump("cs", "P19", 120, 1, WAYS), root / "A")
    other = synthetic_dump("cs", "P19", 120, 9, WAYS)
    table = other.table.iloc[20:].copy()
    table.loc[30, ["gt_translation", "gt_prompt"]] = [
        "Otherwise put, it is object 30!",
        "Otherwise put, it is ",
    ]
    write_dump(dataclasses.replace(other, table=table), root / "B")
    return [root / "A", root / "B"]


@pytest.fixture(scope="module")
def report(folders: list[Path]) -> Path:
    path = folders[0].parent / "report.html"
    assert (
        stats.main(
            [
                "report",
                "--stats",
                ",".join(map(str, folders)),
                "--out",
                str(path),
                "--resamples",
                "200",
            ]
        )
        == 0
    )
    return path


def payload_of(report: Path) -> dict[str, dict[str, object]]:
    found = re.search(r'id="facts-data">([^<]*)', report.read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_every_fact_stands_once_with_the_ranks_of_each_model(folders: list[Path], report: Path):
    payload = payload_of(report)
    assert payload["tables"] == [["cs", "P19", 0, 120], ["ru", "P19", 120, 240]]
    assert payload["runs"] == ["A", "B"] and payload["verbalisations"] == [
        "A:template",
        "A:gt",
        "B:template",
        "B:gt",
    ]
    assert {len(column) for column in payload["columns"].values()} == {240}
    mine, other = (
        DumpFolder(folder).table("cs", "P19").rank["gt"].astype(int).tolist() for folder in folders
    )
    assert payload["ways"]["A:gt"]["rank"][:120] == mine
    assert payload["ways"]["B:gt"]["rank"][:120] == [None] * 20 + other
    assert payload["ways"]["B:gt"]["rank"][120:] == [None] * 120


def test_a_sentence_is_carried_once_unless_it_differs(report: Path):
    ways = payload_of(report)["ways"]
    assert ways["B:gt"]["like"] == "A:gt" and "like" not in ways["A:gt"]
    told = {
        place: sentence
        for place, sentence in enumerate(ways["B:gt"]["sentence"])
        if sentence is not None
    }
    assert told == {30: "Otherwise put, it is object 30!"}
    assert set(ways["B:template"]["sentence"]) == {None}


def test_facts_that_only_a_later_model_has_come_behind(folders: list[Path]):
    first, second = (
        collect_facts(DumpFolder(folder).tables(), open_source(folder)) for folder in folders
    )
    joined = join_facts({"B": second, "A": first})
    assert joined["tables"] == [["cs", "P19", 0, 120], ["ru", "P19", 120, 240]]
    assert joined["columns"]["row"][:120] == [*range(20, 120), *range(20)]
    assert joined["ways"]["B:gt"]["sentence"][100:120] == [None] * 20
    assert None not in joined["ways"]["A:gt"]["sentence"][100:]
    assert (
        joined["ways"]["A:gt"]["rank"][:120]
        == first["ways"]["gt"]["rank"][20:120] + first["ways"]["gt"]["rank"][:20]
    )


def test_summary_differences_and_relations_speak_of_each_model(folders: list[Path], report: Path):
    page = report.read_text(encoding="utf-8")
    summary = page[page.index('id="summary"') : page.index('id="differences"')]
    assert re.findall(r'class="way" rowspan="2">(\w)<', summary) == [
        "A",
        "B",
        "A",
        "A",
    ]  # cs of both, ru, all
    for folder in folders:
        ranks = DumpFolder(folder).table("cs", "P19").rank
        assert all(
            f">{ranks[v].mean():.2f}<" in summary or f">{ranks[v].mean():.2f}</strong>" in summary
            for v in WAYS
        )
    assert re.findall(r'class="group" colspan="\d+">([^<]+)<', page) == [
        "A: template → gt", "B: template → gt", "A:template → B:template", "A:gt → B:gt",
    ]  # fmt: skip
    assert re.findall(r'<th scope="col" '
    r'class="number">([AB]:\w+)</th>', page[page.index('id="relations"') :])[:4] == [
        "A:template", "A:gt", "B:template", "B:gt",
    ]  # fmt: skip
    differences = page[page.index('id="differences"') : page.index('id="graphs"')]
    assert (
        "<dt>runs</dt><dd>A, B</dd>" in summary
        and '<th scope="col">run</th>' in summary
        and "of that language and run" in summary
    )
    assert (
        "then each run minus the first" in differences
    )  # two protocols of one model are no models
    assert "model" not in summary + differences
    assert page.count("signature: ") == 0 and page.count('<p class="signature">') == 2


def test_figures_of_all_runs_come_first_and_then_those_of_each(
    folders: list[Path], report: Path
) -> None:
    captions = re.findall(r"<figcaption>([^<]*)", report.read_text(encoding="utf-8"))
    assert [caption.split()[0] for caption in captions] == ["Runs"] * 2 + ["A:"] * 4 + ["B:"] * 4


def test_marks_of_the_runs_are_their_means(folders: list[Path]) -> None:
    sides = open_sides(open_folders(folders), StatsOptions(), Settings(resamples=200))
    with look():
        figure = run_marks(sides, "mean rank")
    assert [axis.get_title() for axis in figure.axes] == list(WAYS)
    for axis, way in zip(figure.axes, WAYS, strict=True):
        assert [tick.get_text() for tick in axis.get_xticklabels()] == ["cs", "ru", "all"]
        marks = [container.lines[0].get_ydata() for container in axis.containers]
        assert [len(values) for values in marks] == [3, 1]
        for folder, values in zip(folders, marks, strict=True):
            assert values[0] == pytest.approx(
                DumpFolder(folder).table("cs", "P19").rank[way].mean()
            )


@pytest.fixture(
    scope="module", params=[(1280, "light"), (400, "dark")], ids=["1280-light", "400-dark"]
)
def seen(request: pytest.FixtureRequest, report: Path) -> Iterator[Visit]:
    width, scheme = request.param
    with browser() as running, visit(running, report, width, scheme=scheme) as found:
        yield found


@pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"needs {CHROMIUM}: apt-get install chromium fonts-noto-cjk"
)
def test_in_the_browser_the_ranks_of_each_model_are_searched_and_shown(
    seen: Visit, folders: list[Path]
):
    page = seen.page
    assert page.inner_text("#count") == "240 of 240 facts"
    assert page.locator("#head .rank").all_text_contents() == [
        "A:template",
        "A:gt",
        "B:template",
        "B:gt",
    ]
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]  # type: ignore[index]
    page.select_option("#ranks", "verbalisation:1")
    assert page.locator("#head .rank").all_text_contents() == ["A", "B"]
    ranks = [DumpFolder(folder).table("cs", "P19").rank["gt"] for folder in folders]
    both = ranks[1].index
    won = int(((ranks[1] <= 1) & (ranks[0].loc[both] > 1)).sum())
    page.select_option("#outcome", "1>0")
    assert page.inner_text("#count") == f"{won} of 240 facts"
    page.select_option("#outcome", "")
    page.fill("#search", "otherwise PUT")
    page.get_by_text(
        "1 of 240 facts", exact=True
    ).wait_for()  # the page forbids eval, which wait_for_function needs
    page.locator(".row.item").first.click()
    detail = page.locator("#detail")
    assert detail.locator("h4").all_inner_texts() == ["template", "gt"]
    assert [text.split()[0] for text in detail.locator("h5").all_inner_texts()] == [
        "A",
        "B",
        "A",
        "B",
    ]
    assert detail.locator("p.sentence").count() == 3  # the template once, gt in both wordings
    assert detail.locator("mark").all_inner_texts()[-1] == "object 30"
    page.select_option("#ranks", "run:0")
    assert page.locator("#head .rank").all_text_contents() == ["template", "gt"]
    assert (seen.messages, seen.fetched) == ([], [])
