"""Whether what was loaded is what the files hold: every weight found its place, every place its weight, every token a row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.failures import INSTEAD

_HARMLESS = re.compile(
    "|".join(
        (
            # computed from the config, and kept in files that older versions wrote
            r"(^|\.)rotary_emb\.inv_freq$",
            r"(^|\.)position_ids$",
            r"(^|\.)embed_positions\.weights$",  # sinusoids of M2M-100's and XGLM's kin; learnt positions are called weight
            r"\.attn\.attention\.(masked_)?bias$",  # GPT-Neo's masks
            # behind the last layer, for other tasks: the language model's own head does not read them
            r"(^|\.)pooler\.",
            r"^cls\.seq_relationship\.",
            r"^(sop_)?classifier\.",
            r"^(score|qa_outputs|v_head)\.",
        )
    )
)
"""Weights in a file that may stay unread. Whatever else the model has no place for was meant to change its numbers."""


def check_weights(name: str, told: Mapping[str, Any]) -> None:
    """``UserError`` for weights that are lacking (transformers fills in random numbers), left over, or of another shape.

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
    """Tokens without a row in the embedding: special ones, which only a text that spells them out can bring, with a note.

    ``UserError`` where ordinary text can bring one, or the tokenizer itself puts one in front or behind.
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
    if (
        tokenizer.pad_token_id in names
    ):  # a padded place is masked: any token that has a row will do
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    listed = ", ".join(names[number] for number in sorted(names))
    note(
        f"model {name} has no embedding for the special tokens {listed}: a text that holds one cannot be scored"
    )
    return frozenset(names)
