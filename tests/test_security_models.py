"""Weights: safetensors alone, unless FLUENT_ALLOW_PICKLE=1; even then a pickle runs nothing. No token in what is said."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from fluent_mlama.console import UserError
from fluent_mlama.scoring.models import load_model
from fluent_mlama.translating.seq2seq import Seq2SeqTranslator
from tests.tiny import byte_level_tokenizer, tiny_model

TOKEN = "hf_neverToBeSeenAnywhere123"


class Bomb:
    """What a malicious checkpoint holds: unpickling it would write a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (self.mark,)  # type: ignore[return-value]


@pytest.fixture
def pickled(tmp_path: Path) -> Path:
    """A model folder whose weights are a pickle."""
    folder, tokenizer = tmp_path / "model", byte_level_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def test_pickled_weights_are_refused_unless_asked_for(
    pickled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (None, "0", ""):
        if value is not None:
            monkeypatch.setenv("FLUENT_ALLOW_PICKLE", value)
        with pytest.raises(
            UserError,
            match=r"model .* has no safetensors weights .other kinds can run code .* FLUENT_ALLOW_PICKLE=1",
        ):
            load_model(str(pickled), device="cpu")
    monkeypatch.setenv("FLUENT_ALLOW_PICKLE", "1")
    loaded = load_model(str(pickled), device="cpu")
    assert torch.equal(
        loaded.model.lm_head.weight,
        torch.load(pickled / "pytorch_model.bin", weights_only=True)["lm_head.weight"],
    )


def test_a_pickle_that_would_run_code_runs_none_even_then(
    pickled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = pickled / "owned"
    for write in (
        lambda file: pickle.dump(Bomb(mark), file),
        lambda file: torch.save({"x": Bomb(mark)}, file),
    ):
        with (pickled / "pytorch_model.bin").open("wb") as file:
            write(file)
        for value in ("0", "1"):
            monkeypatch.setenv("FLUENT_ALLOW_PICKLE", value)
            with pytest.raises(UserError, match="safetensors|cannot be loaded"):
                load_model(str(pickled), device="cpu")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("file", "config", "index"),
    [
        ("adapter_model.bin", {"transformers_weights": "adapter_model.bin"}, None),
        ("weights.bin", {}, "model.safetensors.index.json"),
        (
            "weights.bin",
            {"transformers_weights": "mine.safetensors.index.json"},
            "mine.safetensors.index.json",
        ),
    ],
)
def test_no_config_and_no_index_leads_to_a_pickle(
    pickled: Path,
    file: str,
    config: dict[str, str],
    index: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """transformers alone would unpickle each of these, whatever ``use_safetensors`` says."""
    (pickled / "pytorch_model.bin").rename(pickled / file)
    weights = torch.load(pickled / file, weights_only=True)
    told = json.loads((pickled / "config.json").read_text(encoding="utf-8")) | config
    (pickled / "config.json").write_text(json.dumps(told), encoding="utf-8")
    if index is not None:
        (pickled / index).write_text(
            json.dumps({"metadata": {}, "weight_map": dict.fromkeys(weights, file)}),
            encoding="utf-8",
        )
    load = torch.load
    with pytest.raises(
        UserError,
        match=r"has no safetensors weights .other kinds can run code .* FLUENT_ALLOW_PICKLE=1",
    ):
        load_model(str(pickled), device="cpu")
    assert torch.load is load
    monkeypatch.setenv("FLUENT_ALLOW_PICKLE", "1")
    assert torch.equal(
        load_model(str(pickled), device="cpu").model.lm_head.weight, weights["lm_head.weight"]
    )


def test_translation_models_are_no_exception(pickled: Path) -> None:
    config = json.loads((pickled / "config.json").read_text(encoding="utf-8"))
    config |= {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "d_model": 8,
        "decoder_start_token_id": 1,
    }
    (pickled / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(
        UserError,
        match="has no safetensors weights .other kinds can run code .* FLUENT_ALLOW_PICKLE=1",
    ):
        Seq2SeqTranslator(str(pickled)).check("en", "ru", "P19")


def test_a_model_with_code_of_its_own_is_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    config = {
        "model_type": "strange",
        "auto_map": {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"},
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "code.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'owned')!r}).touch()\n", encoding="utf-8"
    )
    with pytest.raises(UserError, match="cannot be loaded|brings its own code"):
        load_model(str(folder), device="cpu")
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("status", [401, 500])
def test_the_hubs_refusals_never_show_the_token(
    httpserver: HTTPServer, tmp_path: Path, root: Path, status: int
) -> None:
    """A stand-in hub sends the token back in every way that it can; nothing of it is printed or kept."""
    seen: list[str] = []

    def refuse(request: Request) -> Response:
        seen.append(request.headers.get("Authorization", ""))
        headers = {
            "X-Error-Message": f"bad token {seen[-1]}",
            "X-Error-Code": "RepoNotFound" if status == 404 else "GatedRepo",
        }
        return Response(f"you sent {seen[-1]}", status=status, headers=headers)

    httpserver.expect_request(re.compile(".*")).respond_with_handler(refuse)
    code = "import time\nfrom fluent_mlama.console import run_main\nfrom fluent_mlama.scoring.models import load_model\n" \
        "time.sleep = lambda seconds: None  # the hub's client waits before it asks again\n" \
        "run_main(lambda _: load_model('nobody/model', device='cpu') and 0)\n"  # fmt: skip
    environment = os.environ | {
        "HF_TOKEN": TOKEN, "HF_ENDPOINT": httpserver.url_for("").rstrip("/"), "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "hub"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"Bearer {TOKEN}" in seen
    assert TOKEN not in done.stdout + done.stderr
    kept = [
        path
        for path in (tmp_path / "hub").rglob("*")
        if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]
    assert kept == []
