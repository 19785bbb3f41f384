"""script.py: models that cannot be loaded. The loader itself runs here."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from tests.bad_inputs.case import Break, Case
from tests.bad_inputs.spoiling import both, folder, put, remove

LOADING = "loading … …"
RANK = "script.py -l ru -r P36 --out stats/new"
MODEL = f"{RANK} --model ./model"
WEIGHTS = "model/model.safetensors"
MASKED = {
    "architectures": ["BertForMaskedLM"],
    "model_type": "bert",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
}
TRANSLATING = {
    "architectures": ["MarianMTModel"],
    "model_type": "marian",
    "d_model": 8,
    "is_encoder_decoder": True,
}


def _tokenizer(desk: Path) -> None:
    from tests.tiny import byte_level_tokenizer

    byte_level_tokenizer().save_pretrained(desk / "model")


def _config(values: object) -> Break:
    return put("model/config.json", json.dumps(values))


def _safetensors(header: object, body: bytes = b"") -> bytes:
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + body


def loading(what: str, command: str, says: str, spoil: Break = lambda desk: None) -> Case:
    """A case whose model is really loaded."""
    return Case(what, command, says, spoil, notes=(LOADING,), loads=True)


CASES = [
    loading(
        "a model folder that is not there",
        f"{RANK} --model ./no-model",
        "model folder ./no-model not found; give an existing folder, a hub name, or smollm2",
    ),
    loading(
        "a GGUF file that is not there",
        f"{RANK} --model no.gguf",
        "model file no.gguf not found; give the path of a GGUF file",
    ),
    loading(
        "a GGUF file that is none",
        f"{RANK} --model model/x.gguf",
        "model model/x.gguf cannot be loaded: error: unpack_from requires a buffer of at least 24 bytes for "
        "unpacking 20 bytes at offset 4 (actual buffer size is 5)",
        put("model/x.gguf", "GGUF?"),
    ),
    loading(
        "a name that no hub can have",
        f"{RANK} --model 'what is this'",
        "model 'what is this' is no folder, GGUF file or hub name such as meta-llama/Llama-2-7b-chat-hf; or "
        "try --model smollm2, which needs no download",
    ),
    loading(
        "a hub model without a network",
        f"{RANK} --model nobody/no-such-model",
        "model nobody/no-such-model is not in the local cache and the hub cannot be reached (no network, or "
        "HF_HUB_OFFLINE=1); connect once to download it, give a local folder, or try --model smollm2, which "
        "needs no download",
    ),
    loading(
        "a model folder without config.json",
        MODEL,
        "model folder ./model has no config.json; give the folder that save_pretrained wrote",
        remove("model/config.json"),
    ),
    loading(
        "a config.json that is not JSON",
        MODEL,
        "model ./model: config.json is not JSON; get the model again, or try --model smollm2, which needs no download",
        put("model/config.json", '{"model_type": "llama", '),
    ),
    loading(
        "a config.json without a kind of model",
        MODEL,
        "model ./model: transformers knows no model of this kind (model_type in config.json); choose "
        "another, or try --model smollm2, which needs no download",
        both(_tokenizer, _config({"hidden_size": 8})),
    ),
    loading(
        "a config.json of an unknown kind of model",
        MODEL,
        "model ./model: transformers knows no model of this kind (model_type in config.json); choose "
        "another, or try --model smollm2, which needs no download",
        both(_tokenizer, _config({"model_type": "oracle"})),
    ),
    loading(
        "a masked model",
        MODEL,
        "./model is a masked model, and protocol paper sums what follows a prompt; give --protocol corrected",
        _config(MASKED),
    ),
    loading(
        "a translation model",
        MODEL,
        "model ./model is a sequence-to-sequence model (marian); choose a causal one, or try --model smollm2, which needs no download",
        _config(TRANSLATING),
    ),
    loading(
        "a model folder without a tokenizer",
        MODEL,
        "model folder ./model has no tokenizer; copy tokenizer.json and tokenizer_config.json of the model into it",
    ),
    loading(
        "a tokenizer that is not JSON",
        MODEL,
        "the tokenizer of model ./model cannot be read: JSONDecodeError: Expecting property name enclosed in "
        "double quotes: line 1 column 2 (char 1)",
        both(_tokenizer, put("model/tokenizer.json", "{")),
    ),
    loading(
        "a model folder without weights",
        MODEL,
        "model ./model has no safetensors weights (other kinds can run code when loaded); convert it, "
        "set FLUENT_ALLOW_PICKLE=1 if you trust its maker, or try "
        "--model smollm2, which needs no download",
        _tokenizer,
    ),
    loading(
        "weights as a pickle only",
        MODEL,
        "model ./model has no safetensors weights (other kinds can run code when loaded); convert it, "
        "set FLUENT_ALLOW_PICKLE=1 if you trust its maker, or try "
        "--model smollm2, which needs no download",
        both(_tokenizer, put("model/pytorch_model.bin", b"\x80\x02}q\x00.")),
    ),
    loading(
        "weights that are cut off",
        MODEL,
        "model ./model: a file of weights is damaged (Error while deserializing header: invalid header "
        "length); get the model again, or try --model smollm2, which needs no download",
        both(_tokenizer, put(WEIGHTS, _safetensors({"w": {}})[:12])),
    ),
    loading(
        "weights that are text",
        MODEL,
        "model ./model: a file of weights is damaged (Error while deserializing header: header too large); "
        "get the model again, or try --model smollm2, which needs no download",
        both(_tokenizer, put(WEIGHTS, "these are no weights, but a page that says so")),
    ),
    loading(
        "weights of another model",
        MODEL,
        "model ./model: its files hold no weights for 12 of its parts (lm_head.weight …), which would be "
        "random numbers; get the model again, or try --model smollm2, which needs no download",
        both(_tokenizer, put(WEIGHTS, _safetensors({}))),
    ),
    loading(
        "an empty file of weights",
        MODEL,
        "model ./model: a file of weights is damaged (Error while deserializing header: header too small); "
        "get the model again, or try --model smollm2, which needs no download",
        both(_tokenizer, put(WEIGHTS, b"")),
    ),
    loading(
        "a folder where the weights should be",
        MODEL,
        "model ./model has no safetensors weights (other kinds can run code when loaded); convert it, "
        "set FLUENT_ALLOW_PICKLE=1 if you trust its maker, or try "
        "--model smollm2, which needs no download",
        both(_tokenizer, folder(WEIGHTS)),
    ),
    loading(
        "a device that there is not",
        f"{MODEL} --device tpu",
        "--device tpu: choose auto, cpu, cuda, cuda:N or mps",
    ),
    loading("a GPU that there is not", f"{MODEL} --device cuda:99", "--device cuda:99: …"),
    Case(
        "an unknown number type",
        f"{MODEL} --dtype int4",
        'Invalid value "int4" for --dtype. Choose from: "auto", "float32", "bfloat16", "float16" (see script.py --help)',
    ),
    loading(
        "a quantisation whose package is not there",
        f"{MODEL} --quantization 4bit",
        "--quantization needs bitsandbytes; run: pip install bitsandbytes (or leave --quantization out)",
        both(_tokenizer, put(WEIGHTS, _safetensors({}))),
    ),
    loading(
        "an unknown scoring path",
        f"{MODEL} --scoring-method fastest",
        "--path fastest: choose auto, tree, shared-prefix, padded, plain",
        _tokenizer,
    ),
]
