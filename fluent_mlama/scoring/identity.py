"""Which model a name stands for, known before it is loaded (no torch here).

=================  ================================================================================================
a local folder     ``local-`` and 16 hex digits of the sha256 over names and whole contents of its files
a GGUF file        the same, of the file and of the tokenizer files beside it
``smollm2``        the package and its version, while the package's file is the one that the version was published with
a name on the hub  the commit that the revision (or the main branch) stands for now
=================  ================================================================================================

A changed byte is another model: every file of the folder counts, but for those in ``_HARMLESS``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from fluent_mlama.console import UserError
from fluent_mlama.files import parse_json
from fluent_mlama.scoring.embedded import EMBEDDED_NAME, embedded_model_folder, embedded_revision
from fluent_mlama.scoring.file_hashes import file_hashes

_HARMLESS = (
    *(".*", "*.md", "LICENSE*", "NOTICE*", "*.pdf", "*.png", "*.jpg", "*.log"),  # for people
    *("chat_template*",),  # no prompt here is a chat
    *("*.h5", "*.msgpack", "*.onnx", "*.ot", "*.tflite", "*.gguf"),  # other programs' weights
    *(
        "optimizer*",
        "scheduler*",
        "rng_state*",
        "scaler.pt",
        "trainer_state.json",
        "training_args.bin",
        "*_results.json",
    ),  # training
)
"""Files of a model's folder that nothing here reads. ``generation_config.json`` is none of them: answers that a model writes
(translations, ``cpopqa ask``) depend on it."""
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_PREFERRED = ("model.safetensors", "model.safetensors.index.json")
"""Beside one of these no pickle is read; beside other safetensors (``consolidated.safetensors``) they are the weights."""
_BESIDE_GGUF = (
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "*.model",
    "generation_config.json",
)
"""What transformers looks for beside a GGUF file, although that holds a tokenizer of its own."""
_ADAPTER = "adapter_config.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where the files are: ``location`` for from_pretrained, and the name of the GGUF file there, if it is one."""

    location: str
    gguf_file: str | None
    local: bool

    def arguments(self, revision: str | None, trust_remote_code: bool) -> dict[str, Any]:
        """The keyword arguments of from_pretrained that say what to load."""
        arguments: dict[str, Any] = {"trust_remote_code": trust_remote_code}
        if self.gguf_file:
            arguments["gguf_file"] = self.gguf_file
        if revision and not self.local:
            arguments["revision"] = revision
        return arguments


def locate(name: str) -> ModelSource:
    """Where the model of this name lies. ``UserError``: a path at which no model is."""
    if name == EMBEDDED_NAME:
        return ModelSource(str(embedded_model_folder()), None, True)
    path = Path(name).expanduser()
    if path.suffix.lower() == ".gguf":
        if not path.is_file():
            raise UserError(f"model file {name} not found; give the path of a GGUF file")
        return ModelSource(str(path.parent), path.name, True)
    if path.is_dir():
        if (path / _ADAPTER).is_file():
            raise _adapter_error(name, path / _ADAPTER, beside=(path / "config.json").is_file())
        if not (path / "config.json").is_file():
            raise UserError(
                f"model folder {name} has no config.json; give the folder that save_pretrained wrote"
            )
        return ModelSource(str(path), None, True)
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise UserError(
            f"model folder {name} not found; give an existing folder, a hub name, or smollm2"
        )
    return ModelSource(name, None, False)


def refuse_hub_adapter(name: str, revision: str | None) -> None:
    """``UserError`` where a repository on the hub is an adapter, or holds one beside its model."""
    found = _from_hub(name, _ADAPTER, revision)
    if found is not None:
        raise _adapter_error(
            name, found, beside=_from_hub(name, "config.json", revision) is not None
        )


def _from_hub(name: str, file: str, revision: str | None) -> Path | None:
    """A file of a repository, None where it has none or cannot be read: reading the config tells which."""
    from huggingface_hub import hf_hub_download

    with contextlib.suppress(Exception):
        return Path(hf_hub_download(name, file, revision=revision))
    return None


def _adapter_error(name: str, config: Path, *, beside: bool) -> UserError:
    try:
        base = str(parse_json(config.read_bytes(), _ADAPTER)["base_model_name_or_path"])
    except (ValueError, KeyError, TypeError):
        base = "BASE"
    merge = (
        f"merge it with peft: PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained({base!r}), {name!r}).merge_and_unload()"
        ".save_pretrained(FOLDER), save the tokenizer there too and give FOLDER"
    )
    if beside:
        alone = f"or, for the model without it, move {_ADAPTER} away"
        return UserError(
            f"model {name} has an adapter beside it ({_ADAPTER}), which would be left out: {merge}, {alone}"
        )
    return UserError(f"model {name} is an adapter of {base} ({_ADAPTER}), not a model: {merge}")


def shown_name(name: str) -> str:
    """How outputs name the model: a folder or file of this machine by its last part (the identity tells what was in it)."""
    path = Path(name).expanduser()
    if name == EMBEDDED_NAME or not path.exists():
        return name
    return path.name if path.name.strip(".") else path.resolve().name


def model_identity(name: str, revision: str | None = None) -> str:
    """Short text that is equal for two models only if they give the same numbers; the first look reads all of a local model.

    name: hub id, folder, ``.gguf`` file or ``smollm2``. revision: of a hub model.
    ``UserError``: nothing there, or the hub knows no such model, cannot be reached, or gives no access.
    """
    if name == EMBEDDED_NAME:
        return embedded_revision()
    source = locate(name)
    if not source.local:
        return _commit(name, revision)
    return f"local-{_digest(Path(source.location), _files(source))[:_DIGITS]}"


def _files(source: ModelSource) -> list[Path]:
    """The files that decide what the model says, sorted by name."""
    folder = Path(source.location)
    present = sorted(file for file in folder.iterdir() if file.is_file())
    if source.gguf_file:
        return [
            file
            for file in present
            if file.name == source.gguf_file or _is_like(file, _BESIDE_GGUF)
        ]
    files = [file for file in present if not _is_like(file, _HARMLESS)]
    if any(file.name in _PREFERRED for file in files) and not _names_its_weights(folder):
        files = [file for file in files if not _is_like(file, _PICKLES)]
    return sorted(
        {
            *files,
            *(
                folder / part
                for index in files
                for part in _parts(index)
                if (folder / part).is_file()
            ),
        }
    )


def _is_like(file: Path, patterns: Iterable[str]) -> bool:
    return any(fnmatch(file.name, pattern) for pattern in patterns)


def _names_its_weights(folder: Path) -> bool:
    """Whether the config chooses the file of weights, which may then be any."""
    return b'"transformers_weights"' in (folder / "config.json").read_bytes()


def _parts(file: Path) -> set[str]:
    """The files that an index of weights names, which may lie in sub-folders."""
    if not file.name.endswith(".index.json"):
        return set()
    try:
        return {
            str(part) for part in parse_json(file.read_bytes(), file.name)["weight_map"].values()
        }
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ):  # the loader tells what is wrong with it
        return set()


def _digest(folder: Path, files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file, sha in zip(files, file_hashes(files), strict=True):
        digest.update(f"{Path(os.path.relpath(file, folder)).as_posix()}\0{sha}\n".encode())
    return digest.hexdigest()


def _commit(name: str, revision: str | None) -> str:
    """The commit that the hub (or, where it cannot be reached, the local cache) has for this revision."""
    if revision and _COMMIT.fullmatch(revision):
        return revision
    from huggingface_hub import hf_hub_download

    from fluent_mlama.scoring.failures import loading_error

    try:
        config = Path(hf_hub_download(name, "config.json", revision=revision))
    except (
        Exception
    ) as error:  # of the hub, of the network, of the cache: each has exceptions of its own
        raise loading_error(name, revision, error) from error
    return config.parent.name  # …/snapshots/<commit>/config.json
