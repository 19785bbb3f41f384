"""Sizes of tiny models of many more architectures, with windows and layer patterns small enough to matter."""

from __future__ import annotations

from typing import Any

_PLAIN = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
    "intermediate_size": 48,
}
_GROUPED = {**_PLAIN, "num_key_value_heads": 2}
_WIDE = {**_GROUPED, "head_dim": 8}
_FOUR = {**_GROUPED, "num_hidden_layers": 4}
_EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "num_local_experts": 4,
}
_MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1}
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512}


def _rope(kind: str, **settings: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **settings}}


LONG_TAIL: dict[str, tuple[str, dict[str, Any]]] = {
    "dynamic-rope": ("Llama", {**_WIDE, "max_position_embeddings": 256, **_rope("dynamic", factor=2.0)}),
    "yarn": ("Llama", {**_WIDE, **_rope("yarn", factor=4.0, original_max_position_embeddings=64)}),
    "linear-rope": ("Llama", {**_WIDE, **_rope("linear", factor=4.0)}),
    "llama3-rope": (
        "Llama",
        {**_WIDE, **_rope("llama3", factor=4.0, original_max_position_embeddings=64, low_freq_factor=1.0, high_freq_factor=4.0)},
    ),
    "phi3-window": ("Phi3", {**_GROUPED, "sliding_window": 8}),
    "qwen3": ("Qwen3", {**_FOUR, "head_dim": 8, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2}),
    "gptj": ("GPTJ", {**_GPT, "rotary_dim": 8}),
    "codegen": ("CodeGen", {**_GPT, "rotary_dim": 8}),
    "mpt": ("Mpt", {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 512}),
    "falcon": ("Falcon", {**_PLAIN, "alibi": False, "new_decoder_architecture": False}),
    "xglm": ("XGLM", {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 48, "max_position_embeddings": 512}),
    "biogpt": ("BioGpt", _PLAIN),
    "gpt-oss": ("GptOss", {**_WIDE, "sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "mixtral": ("Mixtral", {**_WIDE, "num_local_experts": 4, "sliding_window": 8}),
    "qwen2-moe": ("Qwen2Moe", {**_FOUR, **_EXPERTS, "decoder_sparse_step": 2, "shared_expert_intermediate_size": 24}),
    "qwen3-moe": ("Qwen3Moe", {**_FOUR, **_EXPERTS, "head_dim": 8, "mlp_only_layers": [0, 1, 2]}),
    "phimoe": ("Phimoe", {**_GROUPED, **_EXPERTS, "sliding_window": 8}),
    "olmo": ("Olmo", _GROUPED),
    "olmo3": ("Olmo3", {**_FOUR, "sliding_window": 8}),
    "olmoe": ("Olmoe", {**_GROUPED, **_EXPERTS}),
    "granite": ("Granite", {**_GROUPED, "logits_scaling": 4.0, "attention_multiplier": 0.3}),
    "granite-moe": ("GraniteMoe", {**_GROUPED, **_EXPERTS}),
    "stablelm": ("StableLm", _GROUPED),
    "starcoder2": ("Starcoder2", {**_GROUPED, "sliding_window": 8}),
    "phi": ("Phi", _GROUPED),
    "persimmon": ("Persimmon", _PLAIN),
    "nemotron": ("Nemotron", _WIDE),
    "smollm3": ("SmolLM3", {**_FOUR, "no_rope_layers": [1, 1, 1, 0]}),
    "exaone4": ("Exaone4", {**_FOUR, "sliding_window": 8, "sliding_window_pattern": 4}),
    "jamba": (
        "Jamba",
        {**_FOUR, "attn_layer_period": 4, "attn_layer_offset": 2, "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 2,
         "mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False},
    ),
    "bamba": ("Bamba", {**_FOUR, **_MAMBA, "attn_layer_indices": [2]}),
    "falcon-h1": ("FalconH1", {**_GROUPED, **_MAMBA, "mamba_d_ssm": 32, "mamba_d_head": 8}),
    "recurrent-gemma": (
        "RecurrentGemma",
        {**_WIDE, "num_hidden_layers": 3, "attention_window_size": 8, "lru_width": 32,
         "block_types": ["recurrent", "recurrent", "attention"]},
    ),
}  # fmt: skip
