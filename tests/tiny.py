"""Tiny random models of many architectures and tiny tokenizers, for tests of the engine without any download."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.contract import Request, Tokenisation
from fluent_mlama.scoring.models import LoadedModel
from tests.long_tail import LONG_TAIL

_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_GROUPED = {
    **_SMALL,
    "intermediate_size": 48,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "head_dim": 8,
}

ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", _GROUPED),
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}),
    "gpt_neox": ("GPTNeoX", {**_SMALL, "intermediate_size": 48, "max_position_embeddings": 128}),
    "qwen2": ("Qwen2", _GROUPED),
    "gemma2": ("Gemma2", {**_GROUPED, "sliding_window": 64}),
    "gemma2-short-window": ("Gemma2", {**_GROUPED, "sliding_window": 4}),
    "mistral-short-window": ("Mistral", {**_GROUPED, "sliding_window": 4}),
    "mistral": ("Mistral", {**_GROUPED, "sliding_window": 64}),
    "cohere": ("Cohere", {**_GROUPED, "logit_scale": 0.25}),
    "opt": (
        "OPT",
        {**_SMALL, "ffn_dim": 48, "max_position_embeddings": 128, "word_embed_proj_dim": 32},
    ),
    "bloom": ("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "mamba": ("Mamba", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}),
    "mamba2": (
        "Mamba2",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "state_size": 8,
            "num_heads": 4,
            "head_dim": 16,
            "n_groups": 1,
        },
    ),
    "falcon-alibi": ("Falcon", {**_SMALL, "alibi": True, "new_decoder_architecture": False}),
}


_FOUR = {**_GROUPED, "num_hidden_layers": 4}
_NO_HEAD_DIM = {name: size for name, size in _FOUR.items() if name != "head_dim"}
_LLAMA4 = {
    **_FOUR,
    "intermediate_size_mlp": 48,
    "num_local_experts": 2,
    "no_rope_layers": [1, 1, 1, 0],
    "attn_scale": 2.0,
}


def _rope(kind: str, **settings: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **settings}}


_LONG_ROPE = _rope(
    "longrope",
    original_max_position_embeddings=64,
    short_factor=[1.0] * 4,
    long_factor=[4.0] * 4,
    factor=16.0,
)

LIMITED: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt_neo": ("GPTNeo", {"hidden_size": 32, "num_layers": 4, "num_heads": 4, "attention_types": [[["global", "local"], 2]],
        "window_size": 8, "max_position_embeddings": 512}),
    "gpt_neo-late": ("GPTNeo", {"hidden_size": 32, "num_layers": 4, "num_heads": 4, "attention_types": [[["global"], 3], [["local"], 1]],
        "window_size": 200, "max_position_embeddings": 512}),
    "long-rope": ("Llama", {**_GROUPED, "max_position_embeddings": 512, **_LONG_ROPE}),
    "phi3-long-rope": ("Phi3", {**_NO_HEAD_DIM, "max_position_embeddings": 512, "original_max_position_embeddings": 64, **_LONG_ROPE}),
    "llama4-temperature": ("Llama4Text", {**_LLAMA4, "max_position_embeddings": 512, "attention_chunk_size": 512, "floor_scale": 16}),
    "llama4-temperature-of-packs": ("Llama4Text", {**_LLAMA4, "max_position_embeddings": 512, "attention_chunk_size": 512,
        "floor_scale": 700}),
    "llama4-chunks": ("Llama4Text", {**_LLAMA4, "max_position_embeddings": 512, "attention_chunk_size": 64, "floor_scale": 8192}),
    "qwen2-late-window": ("Qwen2", {**_NO_HEAD_DIM, "max_position_embeddings": 512, "use_sliding_window": True, "sliding_window": 8,
        "max_window_layers": 3}),
    "cohere2": ("Cohere2", {**_NO_HEAD_DIM, "max_position_embeddings": 512, "sliding_window": 8}),
    "gemma3": ("Gemma3Text", {**_GROUPED, "max_position_embeddings": 512, "num_hidden_layers": 6, "sliding_window": 8}),
}  # fmt: skip
"""Models whose arithmetic changes with length, position in the pack, or from layer to layer, with small limits."""


def tiny_model(architecture: str, vocabulary: int, seed: int = 0) -> Any:
    """A random causal model whose weights are large enough for its scores to differ."""
    torch.manual_seed(seed)
    name, sizes = (ARCHITECTURES | LIMITED | LONG_TAIL)[architecture]
    special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    config = getattr(transformers, f"{name}Config")(vocab_size=vocabulary, **special, **sizes)
    names = (f"{name}ForCausalLM", f"{name}LMHeadModel", f"{name.removesuffix('Text')}ForCausalLM")
    model = next(getattr(transformers, name) for name in names if hasattr(transformers, name))(
        config
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.25)
    return model


def byte_level_tokenizer(
    *, bos: bool = True, words: tuple[str, ...] = ()
) -> PreTrainedTokenizerFast:
    """Byte-level BPE like GPT-2's, with merges that spell ``words`` (a leading blank is part of a word)."""
    return _bpe(
        words,
        bos,
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        None,
        decoders.ByteLevel(),
        sorted(pre_tokenizers.ByteLevel.alphabet()),
    )


def sentencepiece_like_tokenizer(
    *, bos: bool = True, words: tuple[str, ...] = ()
) -> PreTrainedTokenizerFast:
    """Metaspace BPE like Llama-2's: every text gets a ▁ in front, blanks become ▁, unknown characters are bytes."""
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    alphabet = [f"<0x{byte:02X}>" for byte in range(256)] + [
        "▁",
        *sorted(set("".join(words).replace(" ", ""))),
    ]
    tokenizer = _bpe(
        tuple(word.replace(" ", "▁") for word in words),
        bos,
        None,
        normalizer,
        decoders.Metaspace(),
        alphabet,
    )
    return tokenizer


def _bpe(
    words: tuple[str, ...], bos: bool, pre: Any, normalizer: Any, decoder: Any, alphabet: list[str]
) -> PreTrainedTokenizerFast:
    vocabulary = {token: number for number, token in enumerate(["<s>", "</s>", *alphabet])}
    merges: list[tuple[str, str]] = []
    for word in words:
        symbols = list(pre.pre_tokenize_str(word)[0][0]) if pre is not None else list(word)
        left = symbols[0]
        for right in symbols[1:]:
            if (left, right) not in merges:
                merges.append((left, right))
            left += right
            vocabulary.setdefault(left, len(vocabulary))
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=normalizer is not None))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoder
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>" if bos else None,
        eos_token="</s>",
        pad_token="</s>",
        add_bos_token=bos,
    )


def tiny_scorer(
    architecture: str,
    tokenizer: Any,
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    **options: Any,
) -> CausalScorer:
    """A scorer over a tiny random model; ``options`` go to ``CausalScorer``."""
    model = tiny_model(architecture, len(tokenizer), seed).to(dtype)
    name = str(dtype).removeprefix("torch.")
    return CausalScorer(
        LoadedModel(architecture, "random", model, tokenizer, torch.device("cpu"), name), **options
    )


def plain_scores(
    scorer: CausalScorer, requests: list[Request], tokenisation: Tokenisation
) -> list[list[list[float]]]:
    """Token log-probabilities by one forward a candidate, fp32, no cache: the reference, written without the engine's parts."""
    result = []
    for tokens in scorer.tokeniser.tokenise(requests, tokenisation):
        scored = []
        for candidate in tokens.candidates:
            ids = candidate.sequence
            with torch.inference_mode():
                logprobs = (
                    scorer.loaded.model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
                )
            scored.append(
                [logprobs[i - 1, ids[i]].item() for i in range(candidate.start, len(ids))]
            )
        result.append(scored)
    return result
