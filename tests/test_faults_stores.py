"""Damaged stores, caches and results of every step: what can be made anew is made anew, anything else is named in one line."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from fluent_mlama.console import UserError
from fluent_mlama.cpopqa.answers import Store as Answers
from fluent_mlama.mlama.query import Options, query
from fluent_mlama.reader import MLama
from fluent_mlama.records.results import file_sha256, run_path
from fluent_mlama.runner.run import run_job
from fluent_mlama.scoring import embedded
from fluent_mlama.translating.backend import Answer
from fluent_mlama.translating.store import Key, ask
from fluent_mlama.translating.store import Store as Translations
from fluent_mlama.translating.wikidata import Names, Wikidata
from fluent_mlama.zhoblimp.scores import Pairs, Place, digest, kept
from tests.fault_world import flip_bit, small_disk
from tests.mlama_world import FACTS, tiny_masked, write_toy
from tests.test_translating_store import ITEMS, Parrot
from tests.test_zhoblimp_evaluate import ROWS, CharacterScorer


@pytest.fixture
def translations(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    with Translations(path) as store:
        list(ask(Parrot(), ITEMS[:5], store))
    return path


DAMAGE: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_bytes(
        b"not a store at all, but long enough to be looked at" * 9
    ),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "broken pages": lambda path: path.write_bytes(
        path.read_bytes()[:4096] + b"\xff" * (path.stat().st_size - 4096)
    ),
    "another table": lambda path: sqlite3.connect(path).executescript(
        "DROP TABLE answers; CREATE TABLE answers (x TEXT);"
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_store_is_named_and_left_as_it_is(damage: str, translations: Path) -> None:
    for rest in translations.parent.glob("store.sqlite-*"):
        rest.unlink()
    DAMAGE[damage](translations)
    before = translations.read_bytes()
    with (
        pytest.raises(UserError, match=r"store .*store\.sqlite (is damaged|cannot be used)"),
        Translations(translations) as store,
    ):
        list(ask(Parrot(), ITEMS[:5], store))
    assert translations.read_bytes()[:4096] == before[:4096]


def test_a_store_on_a_full_disk_is_named_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "disk" / "store.sqlite"
    kept: list[Key] = []
    with small_disk(path.parent, "160k") as resize:
        with (
            pytest.raises(
                UserError, match=r"store .*store\.sqlite cannot be used \(.*full.*\): free space"
            ),
            Translations(path) as store,
        ):
            for number in range(100):
                key = ("parrot", "1", "en", "ru", "plain", f"{number} {'x' * 4000}")
                store.keep(key, Answer("y" * 4000))
                kept.append(key)
        resize("8m")
        with Translations(path) as store:
            assert kept and all(store.get(key) == Answer("y" * 4000) for key in kept)


def test_an_empty_store_is_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").touch()
    with Translations(tmp_path / "store.sqlite") as store:
        assert len(list(ask(Parrot(), ITEMS[:3], store))) == 3


def test_names_that_cannot_be_read_back_are_named(tmp_path: Path) -> None:
    path = tmp_path / "names.sqlite"
    Wikidata(path).close()
    with sqlite3.connect(path) as connection:
        rows = [
            ("Q1", "ru", '["a"]'),
            ("Q1", "mul", "[]"),
            ("Q2", "ru", '["b'),
            ("Q2", "mul", "[]"),
        ]
        connection.executemany("INSERT INTO terms VALUES (?, ?, 'x', ?)", rows)
    with pytest.raises(UserError, match=r'names\.sqlite is damaged \(aliases \["b\): move it away'):
        Wikidata(path).names(["Q1", "Q2"], "ru")
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM terms WHERE uri = 'Q2'")
    assert Wikidata(path).names(["Q1"], "ru") == {"Q1": Names("x", ("a",))}


def test_a_damaged_copy_of_the_embedded_model_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def convert(source: Path, folder: Path) -> None:
        made.append(folder)
        folder.mkdir(parents=True)
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            (folder / name).write_text("{}", encoding="utf-8")
        save_file({"weight": np.ones(4096, dtype=np.float32)}, folder / "model.safetensors")
        embedded.write_hashes(folder)

    monkeypatch.setenv("FLUENT_CACHE", str(tmp_path))
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(embedded, "embedded_gguf", lambda: tmp_path / "model.gguf")
    monkeypatch.setattr(embedded, "convert_gguf", convert)
    folder = embedded.embedded_model_folder()
    assert embedded.embedded_model_folder() == folder and len(made) == 1
    weights = folder / "model.safetensors"
    damages: list[Callable[[], object]] = [
        lambda: weights.write_bytes(weights.read_bytes()[:-100]), lambda: weights.write_bytes(b""), weights.unlink,
        lambda: (folder / "config.json").write_text("{", encoding="utf-8"), (folder / "tokenizer.json").unlink,
        lambda: (folder / "config.json").write_text('{"rope_theta": 1}', encoding="utf-8"), lambda: flip_bit(weights),
        (folder / "hashes.json").unlink, lambda: shutil.rmtree(folder),
    ]  # fmt: skip
    for number, damage in enumerate(damages, start=2):
        damage()
        assert embedded.embedded_model_folder() == folder and len(made) == number
        assert embedded.is_whole(folder)


def test_damaged_answers_of_the_mlama_probe_are_asked_again_or_named(tmp_path: Path) -> None:
    data, options, scorer = (
        MLama(write_toy(tmp_path / "toy")),
        Options("tiny", "tyq", tmp_path / "out"),
        tiny_masked(),
    )
    files = query(data, options, scorer=scorer)
    assert len(files) == len(FACTS)
    whole = {path: path.read_bytes() for path in files}
    flip_bit(files[0])
    files[1].write_bytes(b"")
    files[2].unlink()
    run_path(files[3]).unlink()
    assert query(data, options, scorer=scorer) == files
    assert {path: path.read_bytes() for path in files} == whole
    run_path(files[0]).write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="P36.run.json is not JSON"):
        query(data, options, scorer=scorer)


@pytest.mark.parametrize("damage", ["scores", "cut scores", "record", "list", "no record"])
def test_damaged_scores_of_minimal_pairs_are_made_anew(damage: str, tmp_path: Path) -> None:
    place = Place(tmp_path, "main")
    settings = {"model": "toy", "pairs_sha256": digest(ROWS)}
    run_job(Pairs(ROWS, place, "toy", settings), CharacterScorer())
    before = kept(settings, place)
    assert before is not None and not place.packs.exists()
    {
        "scores": lambda: flip_bit(place.scores),
        "cut scores": lambda: place.scores.write_bytes(place.scores.read_bytes()[:50]),
        "record": lambda: place.run.write_text("{", encoding="utf-8"),
        "list": lambda: place.run.write_text("[]", encoding="utf-8"),
        "no record": place.run.unlink,
    }[damage]()
    assert kept(settings, place) is None
    run_job(Pairs(ROWS, place, "toy", settings), CharacterScorer())
    again = kept(settings, place)
    assert again is not None and again.frame.equals(before.frame)


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    (tmp_path / "items.jsonl").write_text("{}\n", encoding="utf-8")
    store = Answers(tmp_path, "toy")
    assert store.begin({"model": "m"}) == {}
    store.add({"id": str(number), "text": f"1. one\u2028 2. two {number}"} for number in range(3))
    return store


def test_half_an_answer_at_the_end_is_asked_again(answers: Answers) -> None:
    whole = answers.begin({"model": "m"})
    assert list(whole) == ["0", "1", "2"] and "\u2028" in whole["0"]["text"]
    data = answers.lines.read_bytes()
    for cut in (1, 5, 20):
        answers.lines.write_bytes(data[:-cut])
        assert list(answers.begin({"model": "m"})) == ["0", "1"]
        assert answers.lines.read_bytes() == b"".join(data.splitlines(keepends=True)[:2])


@pytest.mark.parametrize("line", [b"{not json\n", b"\xff\xfe\n", b'{"text": "no id"}\n', b"[]\n"])
def test_a_damaged_answer_in_the_middle_is_named(line: bytes, answers: Answers) -> None:
    first, *rest = answers.lines.read_bytes().splitlines(keepends=True)
    damaged = b"".join([first, line, *rest])
    answers.lines.write_bytes(damaged)
    with pytest.raises(UserError, match=r"toy\.jsonl: line 2 is no answer"):
        answers.begin({"model": "m"})
    assert answers.lines.read_bytes() == damaged


@pytest.mark.parametrize("text", ["", "{", "[1]"])
def test_answers_without_a_record_of_what_made_them_are_not_gone_on_with(
    text: str, answers: Answers
) -> None:
    answers.run.write_text(text, encoding="utf-8")
    before = file_sha256(answers.lines)
    with pytest.raises(UserError, match=r"toy\.run\.json is missing or damaged"):
        answers.begin({"model": "m"})
    assert (
        file_sha256(answers.lines) == before
        and json.loads(answers.lines.read_bytes().split(b"\n")[0])["id"] == "0"
    )
