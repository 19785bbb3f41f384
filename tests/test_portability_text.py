"""The same bytes in every code page, names that Windows takes, and records that tell of no home folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fluent_mlama.files import is_file_name
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.settings import Settings, without_home
from fluent_mlama.records.benchmark import write_benchmark
from fluent_mlama.records.results import read_run
from fluent_mlama.scoring.models import load_model
from tests.fault_world import ROOT, outputs, start_script
from tests.small_dumps import write_small_dumps
from tests.stand_in import StandInScorer, small_benchmark
from tests.tiny import byte_level_tokenizer, tiny_model
from tests.translating_world import PEOPLE, translate, write_mlama

OLD_WORLDS = {
    "cp1252": {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    "C": {
        "LC_ALL": "C",
        "LANG": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii:strict",
    },
}
WARN = {"PYTHONWARNDEFAULTENCODING": "1", "PYTHONWARNINGS": "default::EncodingWarning"}


def run(world: dict[str, str], *command: str) -> tuple[str, str]:
    """Standard output and error of a command of ours that must succeed, as UTF-8; no file of ours may be opened without an encoding."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | world | WARN,
        capture_output=True,
        timeout=300,
        check=False,
    )
    out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    assert done.returncode == 0, err[-2000:]
    ours = [
        line
        for line in err.splitlines()
        if "EncodingWarning" in line and line.startswith(str(ROOT)) and "/.venv/" not in line
    ]
    assert ours == []
    return out, err


def test_script_writes_and_says_the_same_in_every_code_page(tmp_path: Path) -> None:
    rows = (
        "北京|姚明出生于|北京|Пекин",
        "Москва|Юрий родился в |Москве|Moskva",
        "دمشق|ولد في |دمشق|Ḥalab",
    )
    write_benchmark(small_benchmark(*rows), tmp_path / "data")
    said, made = [], []
    for name in ("usual", *OLD_WORLDS):
        process = start_script(
            tmp_path / "data",
            tmp_path / name / "stats",
            environment=OLD_WORLDS.get(name, {}) | WARN,
        )
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        assert "EncodingWarning: 'encoding' argument not specified" not in "".join(
            line for line in err.splitlines() if ".venv" not in line
        )
        said.append(out.replace(str(tmp_path / name), ""))
        made.append(outputs(tmp_path / name))
    assert said[1:] == said[:1] * 2 and made[1:] == made[:1] * 2
    assert "Москве" in (tmp_path / "usual" / "stats" / "cs_P19_template_gt.tsv").read_text(
        encoding="utf-8"
    )


def test_datamodifier_and_stats_do_too(tmp_path: Path) -> None:
    write_mlama(tmp_path / "mlama")
    cities = ("Paris", "Berlin", "Rome", "London", "Moscow", "Prague")
    sentences = [
        f"{who} was born in {city} ." for who, city in zip(PEOPLE, cities * 2, strict=True)
    ]
    text = "".join(f"{sentence}\t{translate(sentence)}\n" for sentence in sentences)
    (tmp_path / "переводы.tsv").write_text(text, encoding="utf-8")
    write_small_dumps(tmp_path / "dumps")
    said, made = [], []
    for name in ("usual", *OLD_WORLDS):
        out = tmp_path / name
        words = [
            "-l",
            "ru",
            "--mlama",
            str(tmp_path / "mlama"),
            "--translator",
            f"own=file:{tmp_path / 'переводы.tsv'}",
        ]
        words += [
            "--aliases",
            "none",
            "--out",
            str(out),
            "--store",
            str(tmp_path / f"{name}.sqlite"),
            "--show",
            "3",
        ]
        shown, _ = run(OLD_WORLDS.get(name, {}), "datamodifier.py", *words)
        run(
            OLD_WORLDS.get(name, {}),
            "stats.py",
            "general",
            "--stats",
            str(tmp_path / "dumps"),
            "--tables",
            str(out / "tables"),
        )
        said.append(shown)
        made.append(outputs(out))
    assert said[1:] == said[:1] * 2 and "⟦" in said[0] and "появился на свет" in said[0]
    assert made[1:] == made[:1] * 2 and len(made[0]) == 2


def test_a_mistake_in_another_script_is_one_line_everywhere(tmp_path: Path) -> None:
    command = [sys.executable, "script.py", "-l", "cs", "--data", str(tmp_path / "нет")]
    for world in OLD_WORLDS.values():
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | world, capture_output=True, timeout=120, check=False
        )
        assert (
            done.returncode == 2
            and done.stderr.count(b"\n") == 1
            and b"no such folder or zip file" in done.stderr
        )
        assert b"Traceback" not in done.stderr


def test_every_tracked_name_is_one_that_windows_takes() -> None:
    listed = (
        subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
        .stdout.decode("utf-8")
        .split("\0")
    )
    names = [name for name in listed if name]
    assert len(names) > 300
    assert [
        name
        for name in names
        if not all(is_file_name(part.lstrip(".")) for part in name.split("/"))
    ] == []
    folded = [name.casefold() for name in names]
    assert (
        sorted(name for name in names if folded.count(name.casefold()) > 1) == []
    )  # two files that are one on macOS and Windows


def test_no_record_tells_whose_home_it_was_made_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "alice"))
    model = str(tmp_path / "alice" / "models" / "llama")
    assert without_home(model) == "~/models/llama"
    for name in (
        "smollm2",
        "meta-llama/Llama-2-7b-chat-hf",
        "models/x",
        str(tmp_path / "bob"),
        "",
        "~/models/llama",
    ):
        assert without_home(name) == name
    settings = Settings(model=model, out=tmp_path / "alice" / "stats")
    Processor(small_benchmark("Praha|v |Praze|Prague", "Brno|v |Brně|"), settings).rank(
        StandInScorer("llama")
    )
    record = read_run(tmp_path / "alice" / "stats" / "cs_P19_template_gt.run.json")
    assert record.extras["asked"]["model"] == "~/models/llama"
    assert "alice" not in json.dumps(record.extras) + record.signature
    assert (
        Processor(small_benchmark("Praha|v |Praze|Prague", "Brno|v |Brně|"), settings).state()
        == "finished"
    )


def test_a_model_folder_is_called_by_its_last_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, tokenizer = tmp_path / "alice" / "my-llama", byte_level_tokenizer()
    tiny_model("llama", len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    loaded = load_model(str(folder), device="cpu")
    assert loaded.name == "my-llama" and loaded.revision.startswith("local-")
    monkeypatch.chdir(folder)
    assert load_model(".", device="cpu").name == "my-llama"


def test_tracked_run_records_hold_no_absolute_path() -> None:
    listed = (
        subprocess.run(
            ["git", "ls-files", "-z", "*.json"], cwd=ROOT, capture_output=True, check=True
        )
        .stdout.decode("utf-8")
        .split("\0")
    )
    for name in (name for name in listed if name.endswith(".run.json")):
        values = list(_texts(json.loads((ROOT / name).read_text(encoding="utf-8"))))
        assert [value for value in values if value.startswith(("/", "~", "C:\\"))] == [], name


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
