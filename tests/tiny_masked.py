"""Tiny random masked models of many architectures, for tests of the masked engine without any download."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

POSITIONS = 34
_SMALL: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
                          "max_position_embeddings": POSITIONS, "pad_token_id": 0}  # fmt: skip
_XLM = {"emb_dim": 16, "n_layers": 2, "n_heads": 2}

MASKED: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 8},
    "bert": {},
    "big_bird": {"block_size": 2, "num_random_blocks": 1},  # full attention up to 14 tokens, block-sparse beyond
    "camembert": {"pad_token_id": 1},
    "convbert": {"embedding_size": 16, "head_ratio": 1},
    "data2vec-text": {"pad_token_id": 1},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 4, "conv_kernel_size": 3,
                   "conv_act": "gelu"},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
    "electra": {"embedding_size": 8},
    "ernie": {},
    "esm": {"pad_token_id": 1, "mask_token_id": 4, "position_embedding_type": "absolute"},
    "eurobert": {"num_key_value_heads": 1},
    "flaubert": _XLM,
    "eurobert-long-rope": {"num_key_value_heads": 1, "rope_parameters": {
        "rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 16, "factor": 4.0,
        "short_factor": [1.0] * 4, "long_factor": [3.0] * 4}},  # other factors where the longest sequence has over 16 tokens
    "fnet": {},
    "ibert": {"pad_token_id": 1},
    "layoutlm": {},
    "longformer": {"pad_token_id": 1, "attention_window": [4, 8]},
    "luke": {"pad_token_id": 1, "entity_vocab_size": 5, "entity_emb_size": 8},
    "megatron-bert": {},
    "mobilebert": {"embedding_size": 8, "intra_bottleneck_size": 8, "true_hidden_size": 8},
    "modernbert": {"num_hidden_layers": 4, "local_attention": 4, "global_attn_every_n_layers": 3},
    "mpnet": {"pad_token_id": 1},
    "mra": {},
    "nystromformer": {"num_landmarks": 8, "segment_means_seq_len": 8},
    "reformer": {"attn_layers": ["local", "local"], "axial_pos_shape": [2, 17], "axial_pos_embds_dim": [8, 8], "hidden_size": 16,
                 "feed_forward_size": 24, "is_decoder": False, "local_attn_chunk_length": 2, "attention_head_size": 8},
    "rembert": {"input_embedding_size": 8, "output_embedding_size": 8},
    "roberta": {"pad_token_id": 1},
    "roberta-prelayernorm": {"pad_token_id": 1},
    "roformer": {"embedding_size": 16},
    "squeezebert": {"embedding_size": 16, "q_groups": 1, "k_groups": 1, "v_groups": 1, "post_attention_groups": 1,
                    "intermediate_groups": 1, "output_groups": 1},
    "xlm": _XLM,
    "xlm-roberta": {"pad_token_id": 1},
    "xlm-roberta-xl": {"pad_token_id": 1},
    "xmod": {"pad_token_id": 1, "languages": ["en_XX"], "default_language": "en_XX"},
}  # fmt: skip
"""Architecture -> what its config needs besides the common sizes."""


def tiny_masked_model(
    architecture: str,
    vocabulary: int,
    *,
    kind: type[Any] | None = None,
    seed: int = 0,
    **changes: Any,
) -> Any:
    """A random masked model whose weights are large enough for its scores to differ. kind: a class of its own."""
    torch.manual_seed(seed)
    kind = kind or getattr(
        transformers, MODEL_FOR_MASKED_LM_MAPPING_NAMES[architecture.removesuffix("-long-rope")]
    )
    model = kind(
        kind.config_class(**{"vocab_size": vocabulary, **_SMALL, **MASKED[architecture], **changes})
    ).eval()
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.4)
        if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
            torch.nn.init.zeros_(module.weight[module.padding_idx])  # as training leaves it
    return model.requires_grad_(False)
