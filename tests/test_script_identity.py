"""Ranking again with a model, data or files that have changed: known before a model is loaded, and said as it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fluent_mlama import script
from fluent_mlama.console import UserError
from fluent_mlama.records.benchmark import write_benchmark
from fluent_mlama.records.results import read_run
from tests.fault_world import flip_bit
from tests.stand_in import city_benchmark
from tests.tiny import byte_level_tokenizer, tiny_model

DUMP = "cs_P19_template_gt"
Rank = Callable[..., str]


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with a tiny model, ten facts, and what ranking them left."""
    folder = tmp_path_factory.mktemp("identity")
    tokenizer = byte_level_tokenizer()
    tiny_model("llama", len(tokenizer)).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    write_benchmark(city_benchmark(10), folder / "fixed_data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert script.main(["-l", "cs", "--model", "model", "--device", "cpu"]) == 0
    return folder


@pytest.fixture
def world(ranked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(shutil.copytree(ranked, tmp_path / "world"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def rank(world: Path, capsys: pytest.CaptureFixture[str]) -> Rank:
    def run(*words: str) -> str:
        """Rank; what was said on standard error."""
        capsys.readouterr()
        assert script.main(["-l", "cs", "--model", "model", "--device", "cpu", *words]) == 0
        return capsys.readouterr().err

    return run


@pytest.fixture
def no_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(script, "load", refuse)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.usefixtures("no_loading")
def test_a_changed_byte_is_another_model_before_it_is_loaded(
    name: str, world: Path, rank: Rank
) -> None:
    assert rank().startswith("nothing to do, already ranked: cs P19")
    was = read_run(world / f"stats/{DUMP}.run.json").revision
    flip_bit(world / "model" / name)
    with pytest.raises(
        UserError,
        match=f"another content or revision of the model: {was}, not local-.*choose another folder.*or --overwrite",
    ):
        rank()


def test_changed_weights_have_another_signature(world: Path, rank: Rank) -> None:
    record = read_run(world / f"stats/{DUMP}.run.json")
    tiny_model("llama", len(byte_level_tokenizer()), seed=1).save_pretrained(world / "model")
    rank("--out", "stats/other")
    other = read_run(world / f"stats/other/{DUMP}.run.json")
    assert record.signature.startswith("model@local-") and record.signature != other.signature
    assert (world / f"stats/{DUMP}.tsv").read_bytes() != (
        world / f"stats/other/{DUMP}.tsv"
    ).read_bytes()


@pytest.mark.usefixtures("no_loading")
def test_a_copy_of_the_model_is_the_same_model(world: Path, rank: Rank) -> None:
    (world / "elsewhere").mkdir()
    (world / "model").rename(world / "elsewhere" / "model")
    assert rank("--model", "elsewhere/model").startswith("nothing to do")
    (world / "renamed").symlink_to(world / "elsewhere" / "model")
    assert rank("--model", "renamed").startswith("nothing to do")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (
            lambda: cut(Path(f"stats/{DUMP}.scores.parquet")),
            f"stats/{DUMP}.scores.parquet was cut off, damaged or changed",
        ),
        (
            lambda: flip_bit(Path(f"stats/{DUMP}.scores.parquet")),
            f"stats/{DUMP}.scores.parquet was cut off, damaged or changed",
        ),
        (
            lambda: Path(f"stats/{DUMP}.scores.parquet").unlink(),
            f"stats/{DUMP}.scores.parquet is gone",
        ),
        (lambda: Path(f"stats/{DUMP}.tsv").unlink(), f"stats/{DUMP}.tsv is gone"),
        (lambda: Path(f"stats_wide/{DUMP}.tsv").unlink(), f"stats_wide/{DUMP}.tsv is gone"),
        (
            lambda: Path(f"stats_wide/{DUMP}.run.json").unlink(),
            f"stats_wide/{DUMP}.run.json is gone",
        ),
    ],
)
def test_what_is_gone_or_damaged_is_made_again_with_the_true_reason(
    damage: Callable[[], object], reason: str, world: Path, rank: Rank
) -> None:
    before = {path: path.read_bytes() for path in world.glob("stats*/*") if path.is_file()}
    damage()
    assert f"cs P19: stats/{DUMP}.tsv is made again: {reason}" in rank()
    assert {path: path.read_bytes() for path in world.glob("stats*/*") if path.is_file()} == before


@pytest.mark.parametrize("folder", ["stats", "stats_wide"])
@pytest.mark.usefixtures("no_loading")
def test_a_dump_that_is_not_as_it_was_written_is_named_and_kept(
    folder: str, world: Path, rank: Rank
) -> None:
    dump = world / folder / f"{DUMP}.tsv"
    dump.write_bytes(dump.read_bytes().replace(b"Praze.", b"Praha."))
    assert "or its wide twin was cut off, damaged or changed since it was written" in rank()
    cut(world / f"stats/{DUMP}.scores.parquet")
    with pytest.raises(
        UserError,
        match="would be made again .*scores.parquet was cut off.*move it away or give --overwrite",
    ):
        rank()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--neutral-prompt", "x"), "made with another neutral prompt (None, not 'x')"),
        (("--dtype", "float32"), ""),  # what auto became: known once the model is loaded
    ],
)
def test_other_words_on_the_command_line(words: tuple[str, ...], reason: str, rank: Rank) -> None:
    said = rank(*words)
    assert reason in said and ("is made again" in said) == bool(reason)


@pytest.mark.usefixtures("no_loading")
def test_a_model_that_is_gone_cannot_be_compared_and_that_is_said(world: Path, rank: Rank) -> None:
    shutil.rmtree(world / "model")
    assert "whether the model is still the one that ranked them could not be checked" in rank()


def test_options_that_change_the_candidates_stand_in_the_signature(rank: Rank, world: Path) -> None:
    rank("--protocol", "corrected", "--forms", "all", "--out", "stats/c")
    signature = read_run(world / f"stats/c/{DUMP}.run.json").signature
    assert (
        "|corrected|rules:2+all-forms|pool:50|sample:sha256-by-subject,seed:0,valid:" in signature
    )
    rank("--drop-empty-objects", "--out", "stats/p")
    assert (
        "|paper|rules:1+drop-empty-objects|"
        in read_run(world / f"stats/p/{DUMP}.run.json").signature
    )
