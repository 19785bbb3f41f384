"""The model as a body that makes hidden states, and a head that reads chosen rows of them.

A head applied by hand to a few rows at a time keeps memory small (rows × vocabulary is the largest
thing there is), but it misses what some models do to their logits (scales, soft caps). The
load-time check decides; where it fails, the model's own forward computes the logits of the wanted
rows (``logits_to_keep``).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fluent_mlama.scoring.contract import Arithmetic
from fluent_mlama.scoring.packed_linear import PackedHead

HEAD_ROWS = 128
"""Rows of logits that exist at one time when the head is applied by hand."""
SLICED_ROWS = 1024
"""Rows that a packed head reads at one time, a slice of the vocabulary each."""


@dataclass(frozen=True, slots=True)
class HeadRows:
    """Rows whose logits are made slice by slice when they are read."""

    head: PackedHead
    hidden: Tensor

    def __len__(self) -> int:
        return len(self.hidden)

    @property
    def device(self) -> torch.device:
        """Where the rows lie."""
        return self.hidden.device


class Network:
    """Rows of logits out of ``model`` by one of two ways (``head_by_hand``)."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.body: Any = getattr(model, model.base_model_prefix, None)
        self.can_apply_head = (
            self.body is not None and self.body is not model and self.head is not None
        )
        self.head_by_hand = self.can_apply_head
        self.accepts = set(inspect.signature(model.forward).parameters)
        # A cache that nobody reads would take as much memory as the keys and values of all layers.
        self._no_cache: dict[str, Any] = {"use_cache": False} if "use_cache" in self.accepts else {}

    @property
    def head(self) -> Any:
        """The module that makes logits (looked up each time: packing replaces it)."""
        return self.model.get_output_embeddings()

    @property
    def device(self) -> torch.device:
        """Where input ids go."""
        return self.model.get_input_embeddings().weight.device

    @property
    def vocabulary(self) -> int:
        """Number of logits a row has."""
        return int(self.model.config.get_text_config().vocab_size)

    def rows(
        self, inputs: dict[str, Any], batch: Tensor, position: Tensor, arithmetic: Arithmetic
    ) -> Iterator[Tensor | HeadRows]:
        """Logits at (batch, position), in chunks of at most ``HEAD_ROWS`` rows (one if not by hand).

        A packed head's chunks are rows still to be read; but the softmax of ``published-fp16``
        wants whole rows.
        """
        inputs = {name: value for name, value in inputs.items() if name in self.accepts}
        if self.head_by_hand:
            hidden = self.body(**inputs, **self._no_cache)[0]
            wanted = hidden[batch.to(hidden.device), position.to(hidden.device)]
            del hidden
            head = self.head
            if isinstance(head, PackedHead) and arithmetic == "float32":
                yield from (HeadRows(head, part) for part in wanted.split(SLICED_ROWS))
                return
            for part in wanted.split(HEAD_ROWS):
                yield head(part)
            return
        keep = dict(self._no_cache)
        if "logits_to_keep" in self.accepts:
            # One list of positions serves all rows of the batch: keep the union, then find them in it.
            kept, position = torch.unique(position, return_inverse=True)
            keep["logits_to_keep"] = kept.to(self.device)
        logits = self.model(**inputs, **keep).logits
        yield logits[batch.to(logits.device), position.to(logits.device)]


def read_edges(
    chunks: Iterator[Tensor | HeadRows],
    rows: NDArray[np.int64],
    tokens: NDArray[np.int64],
    arithmetic: Arithmetic,
) -> NDArray[np.float64]:
    """Log-probability of ``tokens[e]`` in row ``rows[e]`` of the logits that come in ``chunks``."""
    order = np.argsort(rows, kind="stable")
    sorted_rows, sorted_tokens = rows[order], tokens[order]
    read: list[Tensor] = []
    start = 0
    for chunk in chunks:
        first, last = np.searchsorted(sorted_rows, (start, start + len(chunk)))
        local = torch.from_numpy(sorted_rows[first:last] - start).to(chunk.device)
        wanted = torch.from_numpy(sorted_tokens[first:last]).to(chunk.device)
        read.append(_log_probabilities(chunk, local, wanted, arithmetic))
        start += len(chunk)
        # The next chunk then takes its place, which is still in the processor's cache.
        del chunk
    result = np.empty(len(rows), dtype=np.float64)
    result[order] = (
        torch.cat([part.float() for part in read]).cpu().double().numpy() if read else ()
    )
    return result


def _log_probabilities(
    chunk: Tensor | HeadRows, rows: Tensor, tokens: Tensor, arithmetic: Arithmetic
) -> Tensor:
    """fp32 log-softmax, or as published: softmax in fp16, then its logarithm in fp16."""
    if isinstance(chunk, HeadRows):
        return chunk.head.log_probabilities(chunk.hidden, rows, tokens)
    if arithmetic == "published-fp16":
        return torch.softmax(chunk.half(), dim=-1)[rows, tokens].log()
    # In place: the chunk is ours and the largest thing there is.
    logits = chunk.float()
    torch.log_softmax(logits, dim=-1, out=logits)
    return logits[rows, tokens]


def usable_positions(model: Any) -> int | None:
    """Number of tokens of the longest sequence that ``model`` takes; None if nothing limits it.

    RoBERTa and its kin count positions from ``padding_idx + 1``, so that many rows of their learned
    table are never a token's: 514 rows are 512 positions. OPT and BART add their offset to the
    table instead, and the config is right.
    """
    config = model.config.get_text_config()
    # MPT calls it max_seq_len.
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "max_seq_len")]
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if (
            "position" in name.rpartition(".")[2]
            and isinstance(padding, int)
            and hasattr(module, "weight")
        ):
            limits.append(len(module.weight) - padding - 1)
    return min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=None)
