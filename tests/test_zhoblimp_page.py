"""The page's files and drafts without a browser, then the page itself in headless Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.scoring.embedded import embedded_gguf
from fluent_mlama.zhoblimp.generate import CONTENT
from fluent_mlama.zhoblimp.page.app import GUIDE
from fluent_mlama.zhoblimp.page.projects import NEW, ChangedElsewhere, Projects
from fluent_mlama.zhoblimp.page.workbench import Draft, Workbench, differences, generate
from fluent_mlama.zhoblimp.paradigm import parse_phrases

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SERVER = """
import sys
from pathlib import Path
from fluent_mlama.zhoblimp.measures import make_result
from fluent_mlama.zhoblimp.page.app import serve_page
import pandas as pd
def score(rows):
    names = ["uid", "phenomenon", "number", "good", "bad"]
    texts = pd.DataFrame([[getattr(row, name) for name in names] for row in rows], columns=names)
    for side in ("good", "bad"):
        texts[f"{side}_ids"] = [list(map(ord, text)) for text in texts[side]]
        texts[f"{side}_logprobs"] = [[-1.0] * len(text) for text in texts[side]]
    return make_result("one-per-character", texts)
serve_page(Path(sys.argv[1]), int(sys.argv[2]), score)
"""


def bench(tmp_path: Path) -> Workbench:
    projects = Projects(tmp_path / "projects")
    projects.create("zh", CONTENT / "zh")
    made = Workbench(projects)
    made.open_project("zh")
    return made


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a b", "é", "a\n", "-x", "x" * 101])
def test_names_lead_nowhere(tmp_path: Path, name: str) -> None:
    made = bench(tmp_path)
    with pytest.raises(UserError, match="is not a name"):
        made.projects.create(name)
    with pytest.raises(UserError, match="is not a name"):
        made.projects.write("zh", name, "x", NEW)
    made.draft.uid = name
    with pytest.raises(UserError, match=r"is not a name|'uid' is missing"):
        made.save_paradigm()


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    made = bench(tmp_path)
    (tmp_path / "secret.tsv").write_text("expression\nx\n", encoding="utf-8")
    (tmp_path / "projects" / "zh" / "link.tsv").symlink_to(tmp_path / "secret.tsv")
    with pytest.raises(UserError, match="leads outside"):
        made.open_words("link.tsv")


def test_two_tabs_do_not_lose_each_others_work(tmp_path: Path) -> None:
    one = bench(tmp_path)
    two = Workbench(one.projects)
    two.open_project("zh")
    for tab in (one, two):
        tab.open_paradigm("bei_before_verb_fluent.json")
    one.draft.phenomenon = "first"
    one.save_paradigm()
    two.draft.phenomenon = "second"
    with pytest.raises(ChangedElsewhere, match="was changed elsewhere"):
        two.save_paradigm()
    with pytest.raises(ChangedElsewhere):
        two.delete_paradigm()
    two.save_paradigm(overwrite=True)
    two.draft.uid = "negation_of_you"
    with pytest.raises(ChangedElsewhere, match="exists already"):
        two.save_paradigm()
    one.words.text += "新词\tNN\n"
    one.save_document(one.words)
    two.words.text += "别的\tNN\n"
    with pytest.raises(ChangedElsewhere):
        two.save_document(two.words)
    two.save_document(two.words, name="mine")
    assert two.projects.vocabularies("zh") == ["mine.tsv", "vocabulary.tsv"]


def test_deleting_keeps_the_files(tmp_path: Path) -> None:
    made = bench(tmp_path)
    made.open_paradigm("bei_before_verb_fluent.json")
    made.delete_paradigm()
    assert "bei_before_verb_fluent.json" not in made.projects.paradigms("zh")
    assert len(list((tmp_path / "projects" / "zh" / ".deleted").iterdir())) == 1
    made.projects.copy("zh", "copy")
    made.projects.delete("zh")
    assert made.projects.names() == ["copy"] and (tmp_path / "projects" / ".deleted").is_dir()


def test_remarks_say_what_a_rule_means(tmp_path: Path) -> None:
    made = bench(tmp_path)
    made.draft = Draft(
        good=["pos:VE", "把", "phrase:Name", ""],
        bad=["pos:XX", "pos:VE", "pos:NN mPos:9 mPro:gender", "kind:x"],
    )
    assert made.remark(0, "good").text == "6 words" and made.remark(2, "good").text.startswith(
        "phrase Name"
    )
    assert made.remark(1, "bad").text == "6 words · word moved from row 0"
    expected = [
        "no word of vocabulary.tsv meets pos:XX",
        "position 9 is out of range",
        "unknown column 'kind'",
    ]
    for index, text in zip((0, 2, 3), expected, strict=True):
        assert made.remark(index, "bad").is_error and text in made.remark(index, "bad").text
    made.draft.good[0] = "pos:NN mPos:0 mPro:gender"
    assert "agrees with itself" in made.remark(0, "good").text
    assert (
        "cycle" in made.edit_phrases('{"A": [[{"type": "Phrase", "rule": {"name": "A"}}]]}')
        and "Name" in made.phrases
    )
    assert (
        "row 2 has 3 cells" in made.edit_words("expression\tpos\na\tb\tc\n")
        and len(made.vocabulary.entries) > 250
    )


def test_rows_are_added_moved_deleted_and_taken_back(tmp_path: Path) -> None:
    made = bench(tmp_path)
    made.draft = Draft(good=["a", "b"], bad=["c", "d"])
    made.add_row(0)
    made.move_row(2, -1)
    assert made.draft.good == ["a", "b", ""] and made.draft.bad == ["c", "d", ""]
    made.delete_row(0)
    assert made.draft.good == ["b", ""]
    for _ in range(3):
        made.undo()
    assert made.draft.good == ["a", "b"]
    with pytest.raises(UserError, match="no change of rows"):
        made.undo()


def test_agreements_follow_the_rows_they_point_at(tmp_path: Path) -> None:
    made = bench(tmp_path)
    made.draft = Draft(
        good=["a", "pos:M mPos:2 mPro:classifier", "pos:NN"],
        bad=["a", "pos:M mmPos:2 mmPro:classifier gPos:0 gPro:pos", "pos:NN"],
    )
    made.add_row(0)
    assert made.draft.good == ["a", "", "pos:M mPos:3 mPro:classifier", "pos:NN"]
    made.move_row(3, -1)
    assert made.draft.bad == ["a", "", "pos:NN", "pos:M mmPos:2 mmPro:classifier gPos:0 gPro:pos"]
    made.draft.good[0] = "pos:NN mPos:7 mPro:gender"
    made.add_row(3)
    assert made.draft.good[0] == "pos:NN mPos:7 mPro:gender"  # a row that is still to be written
    made.delete_row(4)
    made.delete_row(0)
    assert made.draft.bad[-1] == "pos:M mmPos:1 mmPro:classifier gPos:? gPro:pos"
    assert "goodPosition:? is not a number" in made.remark(2, "bad").text


def test_differences_are_marked_by_characters_or_words() -> None:
    assert differences("我把书看完了。", "我看完了书。", False)[1][0] == ("我", False)
    assert differences("Она спала тут.", "Она спал тут.", True) == (
        [("Она", False), (" ", False), ("спала", True), (" ", False), ("тут.", False)],
        [("Она", False), (" ", False), ("спал", True), (" ", False), ("тут.", False)],
    )


def test_the_helps_examples_work(tmp_path: Path) -> None:
    made = bench(tmp_path)
    examples = re.findall(
        r"\*\*(?:Passive|Classifier|Gender)[^|]*\| row \|.*?\n\n", GUIDE, re.DOTALL
    )
    assert len(examples) == 3
    for example in examples:
        cells = [
            [part.strip(" `") for part in line.split("|")[2:4]]
            for line in example.splitlines()
            if re.match(r"\| \d", line)
        ]
        draft = Draft(good=[good for good, _ in cells], bad=[bad for _, bad in cells], strict=False)
        assert len(generate(draft, made.vocabulary, made.phrases, 10, 0, 100).pairs) == 10


def test_the_helps_phrases_are_phrases() -> None:
    written = re.findall(r"`(\{.*?\})`", GUIDE, re.DOTALL)
    assert len(written) == 1 and list(parse_phrases(written[0])) == ["Worker", "Name"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if not shutil.which(CHROMIUM):
        if os.environ.get("CI") == "true":
            pytest.fail(
                "chromium is not installed (apt-get install chromium fonts-noto-cjk)", pytrace=False
            )
        pytest.skip("needs Debian's chromium")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture()
def address(tmp_path: Path, root: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", SERVER, str(tmp_path / "projects"), str(port)]
    surroundings = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }  # NiceGUI acts differently in a test
    server = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, env=surroundings)
    url = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(url, timeout=1)
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.25)
        yield url
    finally:
        server.terminate()
        server.wait(20)


class Tab:
    """A browser tab that notes what its console says and what it asks the network for."""

    def __init__(self, browser: Any, url: str, width: int = 1280) -> None:
        self.page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda message: self.note(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        self.page.set_default_timeout(180_000)
        self.page.goto(url)
        self.button("New project").wait_for()

    def note(self, text: str) -> None:
        if not text.startswith(
            "Slow network is detected"
        ):  # Chromium's word on a busy machine, about fonts
            self.complaints.append(text)

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def field(self, label: str) -> Any:
        return self.page.get_by_label(label, exact=True)

    def focused(self, label: str) -> None:
        self.page.wait_for_function(
            "label => document.activeElement.ariaLabel === label", arg=label
        )

    def sees(self, text: str) -> None:
        try:
            self.page.get_by_text(text).first.wait_for()
        except Exception:
            pytest.fail(
                f"'{text}' is not on the page, which says:\n{self.page.inner_text('body')}\n"
                f"console: {self.complaints}"
            )

    def open_paradigm(self, file: str) -> None:
        self.field("Paradigm").first.click()
        self.page.get_by_role("option", name=file).click()
        self.page.wait_for_function(
            "uid => document.querySelector('input[aria-label=UID]').value === uid",
            arg=file.split("_fluent")[0],
        )


def test_a_paradigm_from_nothing_by_keyboard_alone(
    browser: Any, address: str, tmp_path: Path
) -> None:
    tab = Tab(browser, address)
    press, write = tab.page.keyboard.press, tab.page.keyboard.type
    tab.button("New project").focus()
    press("Enter")
    tab.focused("Name")
    write("mine")
    press("Enter")
    tab.button("Save paradigm").wait_for()
    tab.field("UID").focus()
    write("classifier_try")
    press("Tab")
    write("classifier")
    rules = [("这里有", "这里有"), ("pos:CD", "pos:CD"), ("pos:M mPos:3 mPro:classifier", "pos:M subcat:unlike mmPos:3 mmPro:classifier"),
             ("pos:NN subcat:tool", "pos:NN subcat:tool"), ("。", "。")]  # fmt: skip
    for index, (good, bad) in enumerate(rules):
        if index:
            tab.page.get_by_role("button", name=f"add a row below row {index - 1}").focus()
            press("Enter")
            tab.focused(f"good {index}")
        else:
            tab.field("good 0").focus()
        write(good)
        press("Tab")
        write(bad)
    tab.sees("· same word as in the good sentence")
    tab.button("Generate sentences").focus()
    press("Enter")
    tab.sees("10 pairs in")
    assert (
        tab.page.locator("table.pairs tbody tr").count() == 10
        and tab.page.locator("table.pairs mark").count() >= 20
    )
    with tab.page.expect_download() as download:
        tab.button("Download JSONL").press("Enter")
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 10 and json.loads(lines[0])["UID"] == "classifier_try"
    tab.button("Score these pairs").press("Enter")
    tab.sees("Accuracy of one-per-character: lp 0.000; mean 0.000")
    tab.button("Save paradigm").press("Enter")
    tab.sees("classifier_try.json saved")
    stored = json.loads(
        (tmp_path / "projects" / "mine" / "paradigms" / "classifier_try.json").read_text(
            encoding="utf-8"
        )
    )
    assert stored["good_rule"] == [good for good, _ in rules] and stored["strict_MP"] is True
    assert not tab.page.get_by_text("was changed since these pairs were made").is_visible()
    tab.field("good 0").fill("那里有")
    tab.sees("The paradigm was changed since these pairs were made")
    assert tab.complaints == [] and tab.hosts == {address.split("/")[2]}


def test_mistakes_are_told_and_two_tabs_meet(browser: Any, address: str, tmp_path: Path) -> None:
    Projects(tmp_path / "projects").create("zh", CONTENT / "zh")
    one, two = Tab(browser, address), Tab(browser, address, width=420)
    for tab in (one, two):
        tab.open_paradigm("bei_before_verb_fluent.json")
    assert two.page.evaluate("document.documentElement.scrollWidth") <= 420
    one.field("good 0").fill("kind:x")
    one.sees("unknown column 'kind'")
    one.button("Generate sentences").click()
    one.sees("good_rule row 0: unknown column 'kind'")
    one.field("good 0").fill("那")
    one.field("UID").fill("../../evil")
    one.button("Save paradigm").click()
    one.sees("is not a name")
    one.field("UID").fill("bei_before_verb")
    one.button("Save paradigm").click()
    one.sees("bei_before_verb_fluent.json saved")
    two.field("Phenomenon").fill("other")
    two.button("Save paradigm").click()
    two.sees("was changed elsewhere since you loaded it")
    two.button("Load that version").click()
    two.page.wait_for_function("document.querySelector('[aria-label=\"good 0\"]').value === '那'")
    two.field("Phenomenon").fill("unsaved")
    two.sees("unsaved: paradigm")
    two.button("New paradigm").click()
    two.sees("There is unsaved work. Leave it?")
    two.button("Go back").click()
    two.page.wait_for_function(
        "document.querySelector('[aria-label=Phenomenon]').value === 'unsaved'"
    )
    for tab in (one, two):
        assert tab.complaints == []
    one.page.get_by_role("tab", name="Phrases").click()
    one.field("Phrases (JSON)").fill('{"A": [[{"type": "Phrase", "rule": {"name": "A"}}]]}')
    one.sees("cycle in phrases: A -> A")
    one.page.get_by_role("tab", name="Vocabulary").click()
    one.field("Search words and properties").fill("冰箱")
    one.sees("1-1 of 1")
    one.page.get_by_text("Add a word").click()
    one.field("expression").fill("桃子")
    one.field("pos").fill("NN")
    one.button("Add this word").click()
    one.sees("unsaved: vocabulary, phrases")
    one.field("New property").fill("taste")
    one.button("Add this property").click()
    one.field("taste").wait_for()
    one.field("expression").fill("柠檬")
    one.field("taste").fill("sour")
    one.button("Add this word").click()
    one.page.wait_for_function(
        "[...document.querySelectorAll('textarea')].some(area => area.value.endsWith('\\tsour\\n'))"
    )
    one.button("Save vocabulary").click()
    one.sees("vocabulary.tsv saved")
    one.page.get_by_text("unsaved: phrases", exact=True).wait_for()
    stored = (
        (tmp_path / "projects" / "zh" / "vocabulary.tsv").read_text(encoding="utf-8").splitlines()
    )
    assert stored[0].endswith("\tstem\ttaste") and stored[-2:] == [
        "桃子\tNN",
        "柠檬" + "\t" * 11 + "sour",
    ]
    assert not list(tmp_path.rglob("*evil*")) and one.complaints == []


def test_another_name_for_the_address_is_refused(address: str) -> None:
    request = urllib.request.Request(address, headers={"Host": "attacker.example"})
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request, timeout=10)
    assert refusal.value.code == 400


@pytest.mark.slow
@pytest.mark.model
def test_the_real_command_scores_pairs_with_the_embedded_model(
    browser: Any, tmp_path: Path, root: Path
) -> None:
    try:
        embedded_gguf()  # the server loads it; here it need not be loaded
    except UserError as missing:
        pytest.skip(str(missing))
    Projects(tmp_path / "projects").create("zh", CONTENT / "zh")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    surroundings = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    command = [
        sys.executable,
        "-m",
        "fluent_mlama.zhoblimp",
        "serve",
        "--projects",
        str(tmp_path / "projects"),
        "--port",
        str(port),
    ]
    server = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, env=surroundings)
    try:
        assert (
            server.stdout is not None
            and f"http://127.0.0.1:{port}".encode() in server.stdout.readline()
        )
        time.sleep(3)
        tab = Tab(browser, f"http://127.0.0.1:{port}/")
        tab.open_paradigm("negation_of_you_fluent.json")
        tab.button("Generate sentences").click()
        tab.button("Score these pairs").click()
        tab.page.get_by_text("Accuracy of smollm2: lp").wait_for(timeout=300_000)
        assert tab.complaints == []
    finally:
        server.terminate()
        server.wait(20)
