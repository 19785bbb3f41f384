"""Facts become benchmark files: the class step by step, the command, a kill in the middle, bad
input.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from fluent_mlama.console import UserError
from fluent_mlama.datamodifier import DataModifier, main
from fluent_mlama.files import open_source, read_table
from fluent_mlama.records.benchmark import is_usable, read_benchmark
from fluent_mlama.records.few_shot import read_few_shot
from fluent_mlama.translating.file import FileTranslator
from fluent_mlama.translating.wikidata import Names
from tests.translating_world import (
    PEOPLE,
    Service,
    fact_line,
    google_page,
    openai_json,
    translate,
    write_mlama,
)

FACTS = len(PEOPLE)


@pytest.fixture
def mlama(tmp_path: Path) -> Path:
    return write_mlama(tmp_path / "mlama")


@pytest.fixture
def translations(tmp_path: Path) -> Path:
    """A translation of every fact but the last two: one is blank, one is missing."""
    sentences = [
        f"{who} was born in {city} ."
        for who, city in zip(
            PEOPLE, ["Paris", "Berlin", "Rome", "London", "Moscow", "Prague"] * 2, strict=True
        )
    ]
    lines = [f"{sentence}\t{translate(sentence)}" for sentence in sentences[:-2]] + [
        f"{sentences[-2]}\t \u200b"
    ]
    path = tmp_path / "translations.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(words: str) -> None:
    assert main(words.split()) == 0


def read(path: Path) -> pd.DataFrame:
    return read_table(path.read_bytes(), str(path))


# the class


def test_facts_of_both_languages_in_the_order_of_mlama(mlama: Path) -> None:
    table = DataModifier(mlama, "ru", "P19").table
    assert table["en_sub_label"].tolist() == list(PEOPLE)
    first = table.iloc[0].to_dict()
    assert (first["sub_uri"], first["obj_uri"], first["sub_label"], first["obj_label"]) == (
        "Q100001",
        "Q90",
        "Ада Эш",
        "Париж",
    )
    assert (first["en_template"], first["template"]) == (
        "Ada Ash was born in Paris .",
        "Ада Эш родился в Париж.",
    )
    assert (first["template_prompt"], first["template_tail"], first["template_status"]) == (
        "Ада Эш родился в ",
        ".",
        "ok",
    )


def test_step_by_step_to_a_saved_file(mlama: Path, translations: Path, tmp_path: Path) -> None:
    modifier = DataModifier(mlama, "ru", "P19")
    counts = modifier.add_translations("mine", FileTranslator(translations))
    assert dict(counts) == {"ok": 10, "empty": 1, "cleaned": 1, "leading-blank": 1, "missing": 1}
    split = modifier.add_prompt_obj_split()["mine"]
    assert split["ok"] == 10
    path = modifier.save(tmp_path / "out", "trial")
    assert path.name == "ru_P19_trial.tsv"
    benchmark = read_benchmark(open_source(tmp_path / "out"), "ru", "P19")
    assert benchmark.verbalisations == ("template", "mine")
    cells = benchmark.table.iloc[3]
    assert cells["mine_translation"] == "Ди Догвуд появился на свет в Лондоне."
    assert (cells["mine_prompt"], cells["mine_infl_object"], cells["mine_tail"]) == (
        "Ди Догвуд появился на свет в ",
        "Лондоне",
        ".",
    )
    assert is_usable(cells["mine_status"])
    last = benchmark.table.iloc[-1]
    assert (last["mine_prompt"], last["mine_infl_object"], last["mine_status"]) == (
        "ERROR",
        "ERROR",
        "missing",
    )
    usable = benchmark.table[benchmark.table["mine_infl_object"] != "ERROR"]
    assert (
        usable["mine_prompt"] + usable["mine_infl_object"] + usable["mine_tail"]
    ).tolist() == usable["mine_translation"].tolist()


def test_any_number_of_verbalisations(mlama: Path, translations: Path) -> None:
    modifier = DataModifier(mlama, "ru", "P19")
    for name in ("one", "two", "three"):
        modifier.add_translations(name, FileTranslator(translations))
    modifier.add_prompt_obj_split()
    assert modifier.benchmark("x").verbalisations == ("template", "one", "two", "three")
    with pytest.raises(UserError, match="'template' cannot name a verbalisation"):
        modifier.add_translations("template", FileTranslator(translations))


def test_a_sentence_mended_by_hand_is_used(mlama: Path, translations: Path) -> None:
    modifier = DataModifier(mlama, "ru", "P19")
    modifier.add_translations("mine", FileTranslator(translations))
    modifier.mend("mine", 11, "Лу Ларч появилась на свет в Праге.")
    modifier.add_prompt_obj_split()
    row = modifier.table.iloc[11]
    assert (row["mine_infl_object"], row["mine_status"].split(";")[:2]) == (
        "Праге",
        ["ok", "by-hand"],
    )


def test_template_words_behind_the_object_are_kept_as_tail(tmp_path: Path) -> None:
    folder = write_mlama(tmp_path / "m")
    (folder / "ru" / "templates.jsonl").write_text(
        json.dumps({"relation": "P19", "template": "В [Y] родился [X]."}, ensure_ascii=False)
        + "\n",
        encoding="utf-8",
    )
    row = DataModifier(folder, "ru", "P19").table.iloc[0]
    assert (row["template"], row["template_prompt"], row["template_tail"]) == (
        "В Париж родился Ада Эш.",
        "В ",
        " родился Ада Эш.",
    )
    assert row["template_status"] == "ok;not-final"


def test_chinese_labels_and_aliases_are_simplified(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    for lang, template, labels in (
        ("en", "[X] was born in [Y] .", ("Wu Meng", "Hohhot")),
        ("zh", "[X]出生于[Y]。", ("吳猛烈", "呼和浩特市區")),
    ):
        (folder / lang).mkdir(parents=True)
        (folder / lang / "templates.jsonl").write_text(
            json.dumps({"relation": "P19", "template": template}) + "\n", encoding="utf-8"
        )
        (folder / lang / "P19.jsonl").write_text(
            fact_line(1, "Q1", labels[0], "Q2", labels[1]) + "\n", encoding="utf-8"
        )
    modifier = DataModifier(folder, "zh", "P19")
    modifier.add_aliases(Source({"Q2": Names("呼和浩特", ("臺灣",))}))
    row = modifier.table.iloc[0]
    assert (row["sub_label"], row["obj_label"], row["template"]) == (
        "吴猛烈",
        "呼和浩特市区",
        "吴猛烈出生于呼和浩特市区。",
    )
    assert (row["template_prompt"], row["aliases"], row["en_wikidata_label"]) == (
        "吴猛烈出生于",
        "呼和浩特|||台湾",
        "",
    )


class Source:
    """Names from a dictionary."""

    def __init__(self, own: dict[str, Names], english: dict[str, Names] | None = None) -> None:
        self._own, self._english = own, english or {}

    def names(self, uris: list[str], language: str) -> dict[str, Names]:
        return self._english if language == "en" else self._own


def test_aliases_keep_the_english_label_apart(mlama: Path) -> None:
    modifier = DataModifier(mlama, "ru", "P19")
    own = {
        "Q90": Names("Париж", ("Лютеция", "a|||b", "")),
        "Q64": Names("город Берлин"),
        "Q220": Names("Рим"),
    }
    assert modifier.add_aliases(Source(own, {"Q90": Names("Paris")})) == 4
    assert modifier.table["aliases"].tolist()[:3] == ["Лютеция|||a b", "город Берлин", ""]
    assert modifier.table["en_wikidata_label"].tolist()[:2] == ["Paris", ""]


def test_few_shots_are_drawn_with_a_seed_and_held_out(
    mlama: Path, translations: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "prompts"

    def draw(place: Path, seed: int) -> DataModifier:
        modifier = DataModifier(mlama, "ru", "P19")
        modifier.add_translations("mine", FileTranslator(translations))
        modifier.add_few_shot_prompt(place, seed=seed)
        modifier.add_prompt_obj_split()
        return modifier

    modifier = draw(folder, 0)
    few_shot = read_few_shot(open_source(folder), "ru", "P19")
    assert len(few_shot.shots) == FACTS // 4
    assert few_shot == modifier.few_shot == draw(tmp_path / "again", 0).few_shot
    assert few_shot != draw(tmp_path / "other", 1).few_shot
    saved = modifier.benchmark("x").table
    assert len(saved) == FACTS - len(few_shot.shots)
    assert not set(saved["en_template"]) & {shot.source for shot in few_shot.shots}
    assert all(shot.translation == translate(shot.source) for shot in few_shot.shots)
    mended = (folder / "ru_P19.txt").read_text(encoding="utf-8").replace("появился", "появилась")
    (folder / "ru_P19.txt").write_text(mended, encoding="utf-8")
    assert all("появилась" in shot.translation for shot in draw(folder, 5).few_shot.shots)  # type: ignore[union-attr]
    assert (folder / "ru_P19.txt").read_text(encoding="utf-8") == mended


def test_steps_out_of_order_are_told(mlama: Path, translations: Path, tmp_path: Path) -> None:
    modifier = DataModifier(mlama, "ru", "P19")
    with pytest.raises(UserError, match="no few-shot text .*ru_P19.txt, and no translations yet"):
        modifier.add_few_shot_prompt(tmp_path)
    modifier.add_translations("mine", FileTranslator(translations))
    with pytest.raises(UserError, match="not cut yet: call add_prompt_obj_split"):
        modifier.save(tmp_path)


# the command


def test_the_command_writes_shows_and_counts(
    mlama: Path, translations: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        f"-l ru -r P19 --mlama {mlama} --translator file:{translations} --out {tmp_path}/out"
        f" --variant nogpt --aliases none --store {tmp_path}/s.sqlite --show 2"
    )
    shown = capsys.readouterr()
    assert "   0 file       Ада Эш появился на свет в ⟦Париже⟧." in shown.out
    assert len(shown.out.splitlines()) == 2
    assert "ru_P19_nogpt.tsv: file: 10 of 12 sentences can be used (" in shown.err
    assert "missing 1" in shown.err
    assert len(read(tmp_path / "out" / "ru_P19_nogpt.tsv")) == FACTS


def test_the_command_shows_which_rows_failed_and_why(
    mlama: Path, translations: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {}
    words = f"-l ru -r P19 --mlama {mlama} --translator file:{translations} --out {tmp_path}/out"
    words += f" --aliases none --store {tmp_path}/s.sqlite"
    for which in ("failed", "unsure", "all"):
        run(f"{words} --show {which}")
        shown[which] = capsys.readouterr().out.splitlines()
    assert len(shown["all"]) == FACTS and shown["unsure"] == []
    assert len(shown["failed"]) == 2 and set(shown["failed"]) < set(shown["all"])
    assert any(
        "[missing: the back end has no translation of this sentence]" in line
        for line in shown["failed"]
    )
    assert main([*words.split(), "--show", "none"]) == 2
    assert "--show: 'none' is not a whole number from 0" in capsys.readouterr().err


@pytest.mark.parametrize("mend", [True, False])
@pytest.mark.parametrize(
    "written",
    [
        "&laquo;Париже&raquo;",
        "&#171;Париже&#187;",
        "&#xAB;Париже&#xbb;",
        "&amp;laquo;Париже&amp;#187;",
        "\u200f«Париже\u200f»\ufeff",
    ],
)
def test_an_object_among_entities_and_invisible_marks_is_cut_clean(
    mlama: Path, tmp_path: Path, mend: bool, written: str
) -> None:
    path = tmp_path / "marked.tsv"
    modifier = DataModifier(mlama, "ru", "P19")
    english = modifier.table["en_template"][0]
    path.write_text(f"{english}\tАда Эш родилась в {written}.\n", encoding="utf-8")
    modifier.add_translations("mine", FileTranslator(path), mend=mend)
    modifier.add_prompt_obj_split()
    cells = modifier.table.loc[0]
    assert (cells["mine_prompt"], cells["mine_infl_object"], cells["mine_tail"]) == (
        "Ада Эш родилась в «",
        "Париже",
        "».",
    )
    assert cells["mine_status"] == "ok;cleaned;inflected"


def test_all_missing_workbooks_are_written_at_once(mlama: Path, tmp_path: Path) -> None:
    for lang in ("en", "ru"):
        templates = mlama / lang / "templates.jsonl"
        templates.write_text(
            templates.read_text(encoding="utf-8")
            + templates.read_text(encoding="utf-8").replace("P19", "P20"),
            encoding="utf-8",
        )
        (mlama / lang / "P20.jsonl").write_bytes((mlama / lang / "P19.jsonl").read_bytes())
    with pytest.raises(
        UserError, match=r"2 English workbook\(s\) written into .*src \(ru_P19.xlsx, ru_P20.xlsx\)"
    ):
        run(
            f"-l ru --mlama {mlama} --translator document:{tmp_path}/gt"
            f" --out {tmp_path}/out --store {tmp_path}/s"
        )
    assert sorted(path.name for path in (tmp_path / "gt" / "src").iterdir()) == [
        "ru_P19.xlsx",
        "ru_P20.xlsx",
    ]


def test_two_translators_and_the_same_file_each_time(
    mlama: Path, translations: Path, tmp_path: Path
) -> None:
    files = []
    for out in ("a", "b"):
        run(
            f"-l ru --mlama {mlama} --translator file:{translations}"
            f" --translator twin=file:{translations} --out {tmp_path}/{out} --aliases none"
            f" --store {tmp_path}/{out}.sqlite"
        )
        files.append((tmp_path / out / "ru_P19.tsv").read_bytes())
    assert files[0] == files[1]


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(threaded=True) as server:
        yield server


def good_page(request: Request, _: int = 0) -> Response:
    return google_page(translate(request.args["q"]))


def wikidata_answer(request: Request, _: int) -> Response:
    entities = {
        uri: {
            "id": uri,
            "labels": {"en": {"language": "en", "value": uri}},
            "aliases": {"ru": [{"language": "ru", "value": f"имя {uri}"}]},
            "claims": {"P21": [{"mainsnak": {"datavalue": {"value": {"id": "Q6581072"}}}}]},
        }
        for uri in request.args["ids"].split("|")
    }
    return Response(json.dumps({"entities": entities}), content_type="application/json")


def good_chat(request: Request, _: int = 0) -> Response:
    query = json.loads(request.get_data())["messages"][-1]["content"]
    return openai_json(translate(query.split("\n")[0].removeprefix("Source sentence: ")))


GOOD = {"google": good_page, "openai": good_chat, "wikidata": wikidata_answer}
PATHS = {"google": "/{}/m", "openai": "/{}/v1/chat/completions", "wikidata": "/{}/w"}


def services(
    server: HTTPServer, name: str, **answers: Callable[[Request, int], Response]
) -> dict[str, Service]:
    return {
        who: Service(server, path.format(name), answers.get(who, GOOD[who]))
        for who, path in PATHS.items()
    }


def command(tmp_path: Path, mlama: Path, made: dict[str, Service], name: str) -> list[str]:
    words = (
        f"-l ru -r P19 --mlama {mlama} --translator google --translator openai"
        f" --out {tmp_path}/{name} --variant trial --store {tmp_path}/{name}.sqlite"
        f" --per-second 1000 --workers 2 --gender {tmp_path}/{name}/gender.tsv"
    )
    for who, service in made.items():
        words += f" --base-url {who}={service.url.removesuffix('/chat/completions')}"
    return words.split()


@pytest.mark.parametrize(
    ("hanging", "served", "most_asked_again"),
    [
        ("google", 1, {"google": FACTS - 1}),
        ("google", 11, {"google": 1}),
        (
            "openai",
            6,
            {"google": 0, "openai": FACTS - 6 + 2},
        ),  # two workers: an answer each may have been under way
        ("wikidata", 0, {"google": 0, "openai": 0}),
        ("wikidata", 1, {"google": 0, "openai": 0, "wikidata": 2}),
    ],
)
def test_killed_in_the_middle_the_same_command_ends_with_the_same_files(
    server: HTTPServer,
    mlama: Path,
    tmp_path: Path,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    hanging: str,
    served: int,
    most_asked_again: dict[str, int],
) -> None:
    """kill -9 while a request is under way; the next run asks for what is missing only."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    reached, never = threading.Event(), threading.Event()

    def hang_when_reached(request: Request, number: int) -> Response:
        if number > served:
            reached.set()
            never.wait(20)
        return GOOD[hanging](request, number)

    made = services(server, "killed", **{hanging: hang_when_reached})
    words = command(tmp_path, mlama, made, "killed")
    process = subprocess.Popen(
        [sys.executable, "datamodifier.py", *words], cwd=root, stderr=subprocess.DEVNULL
    )
    assert reached.wait(90)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    never.set()
    asked_before = {who: len(service.requests) for who, service in made.items()}
    main(words)
    asked_again = {who: len(service.requests) - asked_before[who] for who, service in made.items()}
    assert all(asked_again[who] <= most for who, most in most_asked_again.items())
    if hanging == "google":
        assert asked_again["google"] == FACTS - served
    main(command(tmp_path, mlama, services(server, "calm"), "calm"))
    for name in ("ru_P19_trial.tsv", "gender.tsv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "calm" / name).read_bytes()
    table = read(tmp_path / "calm" / "ru_P19_trial.tsv")
    assert (
        table["gt_infl_object"].tolist()[:2]
        == table["chatgpt_infl_object"].tolist()[:2]
        == ["Париже", "Берлине"]
    )
    assert table["aliases"].tolist()[0] == "имя Q90"


def test_quota_in_the_middle_keeps_what_was_finished(
    server: HTTPServer, mlama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    broken = {"now": True}

    def answer(request: Request, number: int) -> Response:
        if broken["now"] and number > 3:
            return Response(
                '{"error": {"code": "insufficient_quota", "message": "x"}}',
                status=429,
                content_type="application/json",
            )
        return good_chat(request)

    service = Service(server, "/v1/chat/completions", answer)
    words = (
        f"-l ru -r P19 --mlama {mlama} --translator openai --aliases none --workers 1"
        f" --base-url openai={server.url_for('/v1')} --per-second 1000"
    )
    a, b = (f"{words} --out {tmp_path}/{name} --store {tmp_path}/{name}.sqlite" for name in "ab")
    with pytest.raises(UserError, match="the quota is used up"):
        run(a)
    broken["now"] = False
    before = len(service.requests)
    run(a)
    assert len(service.requests) - before == FACTS - 3
    run(b)
    assert (tmp_path / "a/ru_P19.tsv").read_bytes() == (tmp_path / "b/ru_P19.tsv").read_bytes()


def test_openai_learns_from_examples_drawn_from_the_first_translator(
    server: HTTPServer,
    mlama: Path,
    translations: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    service = Service(server, "/v1/chat/completions", good_chat)
    run(
        f"-l ru --mlama {mlama} --translator gt=file:{translations} --translator openai"
        f" --aliases none --few-shot {tmp_path}/prompts --out {tmp_path}/out"
        f" --store {tmp_path}/s.sqlite --base-url openai={server.url_for('/v1')}"
    )
    shots = read_few_shot(open_source(tmp_path / "prompts"), "ru", "P19").shots
    assert len(shots) == 3
    assert all(
        shot.translation in json.loads(body)["messages"][0]["content"]
        for shot in shots
        for body in service.bodies
    )
    saved = read(tmp_path / "out" / "ru_P19.tsv")
    assert len(saved) == FACTS - 3
    assert {"gt_infl_object", "chatgpt_infl_object"} <= set(saved.columns)


def test_a_wikidata_out_of_reach_stops_no_sentence(
    mlama: Path,
    translations: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    server: HTTPServer,
) -> None:
    url = Service(server, "/w", lambda request, number: Response("no", status=403)).url
    run(
        f"-l ru --mlama {mlama} --translator file:{translations} --out {tmp_path}"
        f" --store {tmp_path}/s.sqlite --base-url wikidata={url}"
    )
    assert "no aliases from ru P19 on: Wikidata refuses this client" in capsys.readouterr().err
    assert set(read(tmp_path / "ru_P19.tsv")["aliases"]) == {""}
