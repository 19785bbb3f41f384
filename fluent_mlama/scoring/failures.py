"""Why a model cannot be loaded, or its weights not be trusted, and what to do about it.

transformers turns most failures of the hub into an OSError with a page of text; the reason is in
the chain of causes. ``check_weights`` and ``rowless_tokens`` see whether what was loaded is what
the files hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from huggingface_hub import errors as hub
from requests import exceptions as requests_errors

from fluent_mlama.console import UserError, note

INSTEAD = "or try --model smollm2, which needs no download"
_NO_NETWORK = (
    hub.OfflineModeIsEnabled,
    hub.LocalEntryNotFoundError,
    requests_errors.ConnectionError,
    requests_errors.Timeout,
    ConnectionError,
    TimeoutError,
)
_NO_NETWORK_NAMES = {"ConnectError", "ConnectTimeout", "ReadTimeout", "NetworkError", "ProxyError"}
_MEMORY_TEXTS = (
    "out of memory",
    "not enough memory",
    "can't allocate memory",
    "cannot allocate memory",
    "bad allocation",
)


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes and contexts, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def status_code(error: BaseException) -> int | None:
    """HTTP status of a hub error, if it carries a response."""
    return getattr(getattr(error, "response", None), "status_code", None)


def is_out_of_memory(error: BaseException) -> bool:
    """Out of memory on any device: torch's own error, Python's, or an allocator's RuntimeError."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(
        text in str(error).lower() for text in _MEMORY_TEXTS
    )


def loading_error(name: str, revision: str | None, error: BaseException) -> UserError:
    """The one-line ``UserError`` for an exception met while loading model ``name``."""
    if isinstance(error, UserError):
        return error
    links = list(chain(error))
    for link in links:
        if isinstance(link, hub.GatedRepoError) or (
            isinstance(link, hub.HfHubHTTPError) and status_code(link) == 403
        ):
            return UserError(
                f"model {name} is gated: ask for access at https://huggingface.co/{name},"
                f" then run `hf auth login` or set HF_TOKEN; {INSTEAD}"
            )
        if isinstance(link, hub.RevisionNotFoundError):
            return UserError(
                f"model {name} has no revision {revision!r}; leave --revision out or name a branch, tag or commit of it"
            )
        if isinstance(link, hub.RepositoryNotFoundError):
            return UserError(
                f"model {name} not found on the hub (or it is private: run `hf auth login` or set HF_TOKEN); check the spelling, {INSTEAD}"
            )
        if isinstance(link, hub.HfHubHTTPError) and status_code(link) == 401:
            return UserError(
                f"the hub refused the login for model {name}: run `hf auth login` or correct HF_TOKEN; {INSTEAD}"
            )
        if isinstance(link, hub.HFValidationError):
            return UserError(
                f"model {name!r} is no folder, GGUF file or hub name such as meta-llama/Llama-2-7b-chat-hf; {INSTEAD}"
            )
    if any(is_out_of_memory(link) for link in links):
        return memory_error(name)
    text = str(error)
    if (
        any(
            isinstance(link, _NO_NETWORK) or type(link).__name__ in _NO_NETWORK_NAMES
            for link in links
        )
        or "couldn't connect to" in text
    ):
        return UserError(
            f"model {name} is not in the local cache and the hub cannot be reached (no network, or HF_HUB_OFFLINE=1);"
            f" connect once to download it, give a local folder, {INSTEAD}"
        )
    if "safetensors" in text and (
        "does not appear to have" in text or "no file named" in text.lower()
    ):
        return UserError(
            f"model {name} has no safetensors weights (other kinds can run code when loaded); convert it,"
            f" set FLUENT_ALLOW_PICKLE=1 if you trust its maker, {INSTEAD}"
        )
    if "trust_remote_code" in text:
        return UserError(
            f"model {name} brings its own code; read it, then pass --trust-remote-code if you trust it, {INSTEAD}"
        )
    if any(type(link).__name__ == "SafetensorError" for link in links):
        return UserError(
            f"model {name}: a file of weights is damaged ({text[:200]}); get the model again, {INSTEAD}"
        )
    if "not a valid JSON file" in text or "while decoding a JSON" in text:
        return UserError(f"model {name}: config.json is not JSON; get the model again, {INSTEAD}")
    if "model type" in text and "does not recognize" in text or "Unrecognized model" in text:
        return UserError(
            f"model {name}: transformers knows no model of this kind (model_type in config.json); choose another, {INSTEAD}"
        )
    return UserError(f"model {name} cannot be loaded: {type(error).__name__}: {text[:300]}")


def memory_error(
    name: str, needed: int | None = None, free: int | None = None, device: str = ""
) -> UserError:
    """Too little memory for model ``name`` (sizes in bytes, where known)."""
    sizes = (
        f" (needs about {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free on {device})"
        if needed and free is not None
        else ""
    )
    return UserError(
        f"too little memory for model {name}{sizes}; close other programs, use a smaller --dtype, --quantization 4bit on a GPU,"
        f" --device-map auto, {INSTEAD}"
    )


_HARMLESS = re.compile(
    "|".join(
        (
            # computed from the config, and kept in files that older versions wrote
            r"(^|\.)rotary_emb\.inv_freq$",
            r"(^|\.)position_ids$",
            # sinusoids of M2M-100's and XGLM's kin (learnt positions are called weight)
            r"(^|\.)embed_positions\.weights$",
            r"\.attn\.attention\.(masked_)?bias$",  # GPT-Neo's masks
            # after the last layer, for other tasks: the language model's own head does not read them
            r"(^|\.)pooler\.",
            r"^cls\.seq_relationship\.",
            r"^(sop_)?classifier\.",
            r"^(score|qa_outputs|v_head)\.",
        )
    )
)
"""Weights that may stay unread. All others were meant to change the model's numbers."""


def check_weights(name: str, told: Mapping[str, Any]) -> None:
    """``UserError`` for weights that are missing (hence random), left over, or of another shape.

    told: what from_pretrained says with ``output_loading_info``.
    """
    again = f"get the model again, {INSTEAD}"
    missing = sorted(told["missing_keys"])
    if missing:
        raise UserError(
            f"model {name}: its files hold no weights for {len(missing)} of its parts ({missing[0]} …),"
            f" which would be random numbers; {again}"
        )
    mismatched = sorted(told.get("mismatched_keys") or (), key=str)
    if mismatched:
        part, *shapes = mismatched[0] if isinstance(mismatched[0], tuple) else (mismatched[0],)
        sizes = " and ".join(str(tuple(shape)) for shape in shapes)
        raise UserError(
            f"model {name}: {len(mismatched)} weights in its files have another shape than its config says ({part}: {sizes}); {again}"
        )
    left = sorted(key for key in told.get("unexpected_keys") or () if not _HARMLESS.search(key))
    if left:
        raise UserError(
            f"model {name}: its files hold {len(left)} weights that its config has no place for ({left[0]} …), so its scores would be those"
            f" of another model; correct config.json, or {again}"
        )


def rowless_tokens(name: str, model: Any, tokenizer: Any) -> frozenset[int]:
    """Special tokens without a row in the embedding, with a note: a text may spell them out.

    ``UserError`` where ordinary text can bring one, or the tokenizer itself puts one in front or
    behind.
    """
    rows = model.get_input_embeddings().weight.shape[0]
    names = {number: token for token, number in tokenizer.get_vocab().items() if number >= rows}
    if not names:
        return frozenset()
    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    ordinary = sorted({*names} - special) or sorted(
        {*names}.intersection(tokenizer("")["input_ids"])
    )
    if ordinary:
        raise UserError(
            f"model {name} has {rows} rows of embeddings and its tokenizer {len(ordinary)} tokens beyond them (the first:"
            f" {names[ordinary[0]]!r}, {ordinary[0]}): they belong to two models; get the tokenizer again, or the model that has all rows"
        )
    # A padded place is masked: any token that has a row will do.
    if tokenizer.pad_token_id in names:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    listed = ", ".join(names[number] for number in sorted(names))
    note(
        f"model {name} has no embedding for the special tokens {listed}: a text that holds one cannot be scored"
    )
    return frozenset(names)
