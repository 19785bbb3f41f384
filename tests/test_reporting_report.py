"""The HTML report: self-contained, inert labels, every fact, and the same in a real browser.

The browser tests need Debian's Chromium (apt-get install chromium fonts-noto-cjk) and skip without
it.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.headless import CHROMIUM, Visit, browser, visit
from benchmarks.synthetic_dumps import LABELS, synthetic_dump, write_scores_beside
from fluent_mlama import stats
from fluent_mlama.files import open_source
from fluent_mlama.records.results import write_dump
from fluent_mlama.reporting.loading import DumpFolder
from fluent_mlama.reporting.report_facts import (
    CANDIDATES_SHOWN,
    best_candidates,
    collect_facts,
    object_span,
    pack,
)

FACTS = {("ru", "P19"): 900, ("ru", "P36"): 600, ("cs", "P19"): 900}
TWO_WAYS = ("template", "gt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,400 facts; Czech lacks chatgpt; cs P19 has a scores file."""
    folder = tmp_path_factory.mktemp("report") / "stats"
    for seed, ((lang, relation), facts) in enumerate(FACTS.items()):
        dump = (
            synthetic_dump(lang, relation, facts, seed, TWO_WAYS)
            if lang == "cs"
            else synthetic_dump(lang, relation, facts, seed)
        )
        write_dump(dump, folder)
    write_scores_beside(synthetic_dump("cs", "P19", 900, 2, TWO_WAYS), folder)
    return folder


@pytest.fixture(scope="module")
def report(folder: Path) -> Path:
    """The report on those dumps."""
    path = folder.parent / "report.html"
    title = "Report </title><script>window.broken = 1</script>"
    assert (
        stats.main(
            [
                "report",
                "--stats",
                str(folder),
                "--out",
                str(path),
                "--resamples",
                "200",
                "--title",
                title,
            ]
        )
        == 0
    )
    return path


class TestObjectSpan:
    @pytest.mark.parametrize(
        ("sentence", "prompt", "form", "marked"),
        [
            ("Praha je v Praze.", "Praha je v ", "Praze", "Praze"),
            ("V Praze je Praha.", "V ", "Praze", "Praze"),
            (
                "Praze, v Praze.",
                "cut otherwise",
                "Praze",
                "Praze",
            ),  # the last one where the prompt does not lead to it
            ("Nowhere.", "Nowhere", "Praha", ""),
            ("Empty.", "Empty", "", ""),
            ("🚗 drives to 🏙🏙.", "🚗 drives to ", "🏙🏙", "🏙🏙"),
        ],
    )
    def test_it_marks_the_object(self, sentence: str, prompt: str, form: str, marked: str):
        start, end = object_span(sentence, prompt, form)
        assert sentence.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le") == marked

    def test_the_last_occurrence_is_taken_where_the_prompt_does_not_lead_to_it(self):
        assert object_span("Praze, v Praze.", "cut otherwise", "Praze") == (9, 14)


class TestPayload:
    def test_every_fact_is_there_with_its_ways(self, folder: Path):
        dumps = DumpFolder(folder)
        payload = collect_facts(dumps.tables(), open_source(folder))
        assert payload["tables"] == [
            ["cs", "P19", 0, 900],
            ["ru", "P19", 900, 1800],
            ["ru", "P36", 1800, 2400],
        ]
        assert {len(column) for column in payload["columns"].values()} == {2400}
        assert {len(values) for way in payload["ways"].values() for values in way.values()} == {
            2400
        }
        assert payload["ways"]["chatgpt"]["rank"][0] is None
        russian = dumps.table("ru", "P36")
        assert (
            payload["ways"]["chatgpt"]["rank"][1800:]
            == russian.rank["chatgpt"].astype(int).tolist()
        )
        unpacked = json.loads(gzip.decompress(base64.b64decode(pack(payload))))
        assert unpacked == payload

    def test_candidates_come_from_the_scores_file_best_first(self, folder: Path):
        table = DumpFolder(folder).table("cs", "P19")
        best = best_candidates(table, open_source(folder))
        assert len(best) == 2 * 900
        for candidates in best.values():
            scores = candidates[1::3]
            assert len(scores) == CANDIDATES_SHOWN
            assert scores == sorted(scores, reverse=True)

    def test_a_zip_gives_the_same_payload(self, folder: Path, tmp_path: Path):
        packed = tmp_path / "stats.zip"
        with zipfile.ZipFile(packed, "w") as archive:
            for path in folder.iterdir():
                archive.write(path, path.name)
        sides = [
            collect_facts(DumpFolder(path).tables(), open_source(path)) for path in (folder, packed)
        ]
        assert sides[0] == sides[1]


class TestFile:
    def test_it_is_one_file_that_asks_for_nothing(self, report: Path):
        page = report.read_text(encoding="utf-8")
        assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", page)
        assert "default-src 'none'" in page
        assert "http" not in re.sub(
            r'<script type="application/octet-stream".*?</script>', "", page, flags=re.DOTALL
        ).replace("http-equiv", "")

    def test_labels_and_title_are_escaped(self, report: Path):
        page = report.read_text(encoding="utf-8")
        assert "<script>window.broken" not in page
        assert "&lt;script&gt;window.broken = 1&lt;/script&gt;" in page

    def test_the_same_dumps_give_the_same_bytes(self, folder: Path, report: Path, tmp_path: Path):
        again = tmp_path / "again.html"
        title = "Report </title><script>window.broken = 1</script>"
        stats.main(
            [
                "report",
                "--stats",
                str(folder),
                "--out",
                str(again),
                "--resamples",
                "200",
                "--title",
                title,
            ]
        )
        assert again.read_bytes() == report.read_bytes()

    def test_summary_values_are_the_means_over_relations(self, folder: Path, report: Path):
        tables = DumpFolder(folder).tables(["ru"])
        expected = sum((table.rank["chatgpt"] <= 1).mean() for table in tables) / len(tables)
        assert f"{expected:.3f}" in report.read_text(encoding="utf-8")

    def test_one_verbalisation_alone_makes_a_report_without_differences(
        self, folder: Path, tmp_path: Path
    ):
        out = tmp_path / "one.html"
        arguments = ["report", "--stats", str(folder), "--out", str(out), "--resamples", "200"]
        assert stats.main([*arguments, "--langs", "cs", "--verbalisations", "gt"]) == 0
        page = out.read_text(encoding="utf-8")
        assert 'id="differences"' not in page
        assert 'id="summary"' in page


@pytest.fixture(
    scope="module", params=[(1280, "light"), (400, "dark")], ids=["1280-light", "400-dark"]
)
def seen(request: pytest.FixtureRequest, report: Path) -> Iterator[Visit]:
    """The report open in Chromium, wide and light, then narrow and dark."""
    width, scheme = request.param
    with browser() as running, visit(running, report, width, scheme=scheme) as found:
        yield found


@pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"needs {CHROMIUM}: apt-get install chromium fonts-noto-cjk"
)
class TestInTheBrowser:
    @pytest.fixture(autouse=True)
    def fresh(self, seen: Visit) -> Iterator[None]:
        """Every test starts from the whole list, and leaves a clean console and no request
        behind."""
        seen.page.keyboard.press("Escape")
        seen.page.evaluate("document.getElementById('filters').reset()")
        self.set(seen, "search", "")
        yield
        assert seen.messages == []
        assert seen.fetched == []
        assert seen.page.evaluate("window.broken") is None

    @staticmethod
    def set(seen: Visit, control: str, value: str) -> str:
        """Set a filter and return what the page says it found."""
        if control == "search":
            seen.page.fill("#search", value)
            seen.page.dispatch_event("#search", "input")
        else:
            seen.page.select_option(f"#{control}", value)
        seen.page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        return seen.page.inner_text("#count")

    def test_the_list_holds_all_facts_and_draws_only_those_in_view(self, seen: Visit):
        assert seen.page.inner_text("#count") == "2,400 of 2,400 facts"
        assert seen.page.get_attribute("#grid", "aria-rowcount") == "2401"
        assert 5 <= seen.page.locator(".row.item").count() <= 40

    def test_nothing_sticks_out_of_the_window(self, seen: Visit):
        width = seen.page.viewport_size["width"]  # type: ignore[index]
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width

    def test_search_ignores_case_and_accents_and_wants_all_words(self, seen: Visit):
        expected = sum(
            label == "Nový Bor"
            for facts in FACTS.values()
            for label in (LABELS[i % 97] if i % 97 < 8 else "" for i in range(facts))
        )
        subjects = sum(
            (i // 50) % 8 == 7 and i % 50 == 0 and i % 97 != 7
            for facts in FACTS.values()
            for i in range(facts)
        )
        assert self.set(seen, "search", "bor NOVY") == f"{expected + subjects} of 2,400 facts"
        assert self.set(seen, "search", "bor nothing") == "0 of 2,400 facts"

    def test_filters_by_language_relation_and_outcome(self, seen: Visit, folder: Path):
        assert self.set(seen, "language", "ru") == "1,500 of 2,400 facts"
        assert self.set(seen, "relation", "P36") == "600 of 2,400 facts"
        rank = DumpFolder(folder).table("ru", "P36").rank
        lost = int(((rank["template"] <= 1) & (rank["gt"] > 1)).sum())
        assert self.set(seen, "outcome", "0>1") == f"{lost} of 2,400 facts"

    def test_orders_by_worst_rank(self, seen: Visit, folder: Path):
        self.set(seen, "order", "worst:1")
        worst = max(int(table.rank["gt"].max()) for table in DumpFolder(folder).tables())
        assert seen.page.locator(".row.item").first.locator(".rank").nth(1).inner_text() == str(
            worst
        )

    def test_keys_move_open_and_close(self, seen: Visit):
        seen.page.focus("#grid")
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            seen.page.keyboard.press(key)
        assert seen.page.get_attribute("#grid", "aria-activedescendant") == "fact-2"
        assert seen.page.inner_text("#detail h3") == 'subject 2 of P19 → "Quoted" & co.'
        seen.page.keyboard.press("End")
        assert seen.page.get_attribute("#grid", "aria-activedescendant") == "fact-2399"
        assert seen.page.locator("#fact-2399").is_visible()
        seen.page.keyboard.press("Escape")
        assert not seen.page.locator("#detail").is_visible()

    def test_a_fact_shows_its_object_marked_its_ranks_and_its_best_candidates(self, seen: Visit):
        self.set(seen, "language", "cs")
        seen.page.locator(".row.item").nth(5).click()
        detail = seen.page.locator("#detail")
        assert detail.locator("mark").all_inner_texts() == [LABELS[5]] * 2
        assert detail.locator("h4").all_inner_texts()[2].startswith("chatgpt")
        assert detail.locator("table").last.locator("tbody tr").count() == CANDIDATES_SHOWN

    def test_markup_in_labels_is_text(self, seen: Visit):
        self.set(seen, "search", "<script>")
        seen.page.locator(".row.item").first.click()
        assert "<script>window.broken = 1</script>" in seen.page.inner_text("#detail")
        assert seen.page.locator("#facts img, #facts script").count() == 0

    def test_every_figure_is_drawn(self, seen: Visit):
        plots = seen.page.locator("img.plot")
        assert plots.count() == 4
        assert all(plots.evaluate_all("all => all.map((one) => one.naturalWidth > 100)"))
