"""One loader for every kind of model (causal, masked, translation): hub id, local folder, GGUF file, and the embedded ``smollm2``.

Safetensors only and no remote code unless asked (FLUENT_ALLOW_PICKLE=1, --trust-remote-code). A login token comes from the
environment (HF_TOKEN) or the hub's own login, never from an argument. What goes wrong is told in one line
that says which of the possible reasons it was.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NoReturn

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BitsAndBytesConfig,
)
from transformers.models.auto import modeling_auto
from transformers.utils import logging as transformers_logging

from fluent_mlama.console import UserError, is_switched_on
from fluent_mlama.scoring.devices import check_memory, choose_device, choose_dtype, dtype_name
from fluent_mlama.scoring.failures import INSTEAD, check_weights, loading_error, rowless_tokens
from fluent_mlama.scoring.identity import (
    ModelSource,
    locate,
    model_identity,
    refuse_hub_adapter,
    shown_name,
)

Kind = Literal["causal", "masked", "translation"]
_AUTOMATIC: Mapping[Kind, Any] = {
    "causal": AutoModelForCausalLM,
    "masked": AutoModelForMaskedLM,
    "translation": AutoModelForSeq2SeqLM,
}
DEFAULT_MODEL = "meta-llama/Llama-2-7b-chat-hf"
_TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt"),
    *("spiece.model", "sentencepiece.bpe.model"),
)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in evaluation mode with its tokenizer and what identifies it.

    name: as asked for; the last part of a local path. revision: its identity (``identity.py``). rowless: tokens of the
    tokenizer that the model has no embedding for.
    """

    name: str
    revision: str
    model: Any
    tokenizer: Any
    device: torch.device
    dtype: str
    rowless: frozenset[int] = frozenset()


def load_model(
    name: str,
    *,
    kind: Kind = "causal",
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    device_map: str | None = None,
    trust_remote_code: bool = False,
    quantization: str | None = None,
) -> LoadedModel:
    """Load model ``name`` (hub id, folder, ``.gguf`` file, or ``smollm2``) and its tokenizer.

    device: auto, cpu, cuda, cuda:N or mps. dtype: auto (the checkpoint's on a GPU, float32 on a CPU), float32, bfloat16
    or float16. device_map: as in accelerate, e.g. ``auto``. quantization: ``4bit`` or ``8bit`` where bitsandbytes is there.
    Raises UserError with one line for everything the user can mend.
    """
    transformers_logging.disable_progress_bar()
    target = choose_device(device)
    source = locate(name)
    config = _config(name, source, source.arguments(revision, trust_remote_code), revision)
    _check_kind(name, config, kind)
    number_type = choose_dtype(dtype, target, config)
    identity = model_identity(name, getattr(config, "_commit_hash", None) or revision)
    arguments = source.arguments(
        identity, trust_remote_code
    )  # the very commit, should the branch move meanwhile
    tokenizer = _load_tokenizer(name, source, arguments, revision)
    if quantization is None and device_map is None:
        check_memory(name, _weight_bytes(source), config, number_type, target)
    try:
        weights: dict[str, Any] = {
            "dtype": number_type,
            "use_safetensors": None if source.gguf_file or pickles_are_trusted() else True,
        }
        weights |= arguments
        if quantization is not None:
            weights["quantization_config"] = _quantisation(quantization, number_type)
        if device_map is not None or quantization is not None:
            weights["device_map"] = device_map or {"": str(target)}
        automatic = _AUTOMATIC[kind]
        with (
            _quiet(),
            no_pickles(),
        ):  # its table of lacking weights; check_weights says it in a line
            model, told = automatic.from_pretrained(
                source.location, output_loading_info=True, ignore_mismatched_sizes=True, **weights
            )
        check_weights(name, told)
        rowless = rowless_tokens(name, model, tokenizer)
        if "device_map" not in weights:
            model = model.to(target)
    except Exception as error:
        raise loading_error(name, revision, error) from error
    model.eval().requires_grad_(False)
    embeddings = model.get_input_embeddings().weight
    shown = quantization or dtype_name(embeddings.dtype)
    return LoadedModel(
        shown_name(name), identity, model, tokenizer, embeddings.device, shown, rowless
    )


def versions() -> dict[str, str]:
    """Versions of the packages that scores depend on."""
    return {name: metadata.version(name) for name in ("torch", "transformers", "tokenizers")}


def check_model(
    name: str,
    *,
    kind: Kind = "causal",
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> None:
    """Raise now what loading would raise later, as far as name and config tell: nothing there, no access, another kind of model."""
    source = locate(name)
    _check_kind(
        name, _config(name, source, source.arguments(revision, trust_remote_code), revision), kind
    )


def _config(name: str, source: ModelSource, arguments: dict[str, Any], revision: str | None) -> Any:
    if not source.local:
        refuse_hub_adapter(name, revision)
    try:
        return AutoConfig.from_pretrained(source.location, **arguments)
    except Exception as error:
        raise loading_error(name, revision, error) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(before)


def _check_kind(name: str, config: Any, kind: Kind) -> None:
    """Refuse a model of another kind than is needed."""
    translates = bool(getattr(config, "is_encoder_decoder", False))
    if kind == "translation":
        if not translates:
            raise UserError(
                f"model {name} is no translation model ({config.model_type}); choose one such as facebook/nllb-200-distilled-600M"
            )
        return
    if translates:
        raise UserError(
            f"model {name} is a sequence-to-sequence model ({config.model_type}); choose a {kind} one, {INSTEAD}"
        )
    is_masked, is_causal = _kinds(config)
    if kind == "causal" and is_masked and not is_causal:
        raise UserError(
            f"model {name} is a masked language model ({config.model_type}); choose a causal one, {INSTEAD}"
        )
    if kind == "masked" and not is_masked:
        instead = "choose one such as google-bert/bert-base-multilingual-cased"
        raise UserError(
            f"model {name} is not a masked language model ({config.model_type}); {instead}"
        )


def _kinds(config: Any) -> tuple[bool, bool]:
    """Whether this is a masked language model, and whether it names a causal architecture of its own."""
    architectures = set(getattr(config, "architectures", None) or ())
    causal = set(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    masked = set(modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values())
    known_masked = config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return bool(architectures & masked) or (known_masked and not architectures & causal), bool(
        architectures & (causal - masked)
    )


def is_masked(name: str, revision: str | None = None) -> bool:
    """Whether ``name`` is a masked language model rather than a causal one; reads its config alone."""
    source = locate(name)
    masked, causal = _kinds(_config(name, source, source.arguments(revision, False), revision))
    return masked and not causal


def _load_tokenizer(
    name: str, source: ModelSource, arguments: dict[str, Any], revision: str | None
) -> Any:
    folder = Path(source.location)
    if (
        source.local
        and not source.gguf_file
        and not any((folder / file).is_file() for file in _TOKENIZER_FILES)
    ):
        raise UserError(
            f"model folder {name} has no tokenizer; copy tokenizer.json and tokenizer_config.json of the model into it"
        )
    try:
        return AutoTokenizer.from_pretrained(source.location, **arguments)
    except Exception as error:
        translated = loading_error(name, revision, error)
        if "cannot be loaded" in str(translated):
            translated = UserError(
                f"the tokenizer of model {name} cannot be read: {type(error).__name__}: {str(error)[:200]}"
            )
        raise translated from error


def _quantisation(quantization: str, number_type: torch.dtype) -> Any:
    if quantization not in ("4bit", "8bit"):
        raise UserError(f"--quantization {quantization}: choose 4bit or 8bit")
    if importlib.util.find_spec("bitsandbytes") is None:
        raise UserError(
            "--quantization needs bitsandbytes; run: pip install bitsandbytes (or leave --quantization out)"
        )
    if quantization == "4bit":
        return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=number_type)
    return BitsAndBytesConfig(load_in_8bit=True)


def _weight_files(source: ModelSource) -> list[Path]:
    folder = Path(source.location)
    if not source.local:
        return []
    return [folder / source.gguf_file] if source.gguf_file else sorted(folder.glob("*.safetensors"))


def _weight_bytes(source: ModelSource) -> int | None:
    """Bytes of the weights on disk in the checkpoint's own dtype, None where unknown (hub, GGUF)."""
    if source.gguf_file or not source.local:
        return None
    return sum(file.stat().st_size for file in _weight_files(source)) or None


def pickles_are_trusted() -> bool:
    """Whether weights that are no safetensors may be loaded: FLUENT_ALLOW_PICKLE=1."""
    return is_switched_on("FLUENT_ALLOW_PICKLE")


@contextlib.contextmanager
def no_pickles() -> Iterator[None]:
    """Inside, torch's unpickler refuses (``OSError``) where pickles are not trusted: reading one
    can run its maker's code.

    ``use_safetensors=True`` of transformers is not enough: it bears upon which file is looked for,
    and a model's own config (``transformers_weights``) or its index of safetensors may name a
    pickle.
    """
    load = torch.load
    if not pickles_are_trusted():
        torch.load = _refuse
    try:
        yield
    finally:
        torch.load = load


def _refuse(*_: object, **__: object) -> NoReturn:
    raise OSError("no file named *.safetensors: the model names a pickle for its weights")
