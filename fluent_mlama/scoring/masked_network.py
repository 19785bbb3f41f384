"""A masked model and its batches: sequences with masks go in, each gets its rows of log-probabilities.

padded         sequences of unequal lengths, padded on the right
equal-lengths  a batch holds sequences of one length: for models whose padding leaks into what they say
plain          every sequence alone: the reference, and right for every model

Which of them a model gets is decided at load (``masked_check.py``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fluent_mlama.console import UserError
from fluent_mlama.scoring.failures import is_out_of_memory
from fluent_mlama.scoring.models import LoadedModel
from fluent_mlama.scoring.network import usable_positions

BATCHINGS = ("padded", "equal-lengths", "plain")
REACH = 128
"""Tokens of the longest sequence that shares a batch, here and in the check at load: models may change at some length
(windows, block-sparse attention, rope), and a longer sequence keeps the machine busy by itself."""
LOGITS_BYTES = 1 << 28
ENOUGH_TOKENS = 1024
"""A batch of so many tokens keeps the machine busy: it takes no sequence that is shorter than ``FULL`` of its longest."""
FULL = 0.9


@dataclass(slots=True)
class Copy:
    """One sequence to feed: ids with masks, the positions to read, what to do with their ``[positions, vocabulary]`` rows."""

    ids: list[int]
    positions: list[int]
    take: Callable[[Tensor], None] = field(repr=False)


class MaskedNetwork:
    """Runs copies. batching: one of ``BATCHINGS``. rows_first: only rows that are read go through the head.

    tokens: rows of the input embedding.
    """

    def __init__(self, loaded: LoadedModel, token_budget: int) -> None:
        self.loaded = loaded
        self.token_budget = token_budget
        self.batching = "plain"
        self.rows_first = False
        self.max_length = usable_positions(loaded.model)
        self.tokens = len(loaded.model.get_input_embeddings().weight)
        pad = loaded.tokenizer.pad_token_id or 0
        self.pad = pad if pad < self.tokens else 0
        self._accepts = set(inspect.signature(loaded.model.forward).parameters)

    @property
    def vocabulary(self) -> int:
        """Number of logits a row has."""
        return int(self.loaded.model.config.get_text_config().vocab_size)

    def run(
        self, copies: Sequence[Copy], on_batch: Callable[[int, int], None] | None = None
    ) -> None:
        """Feed all copies, longest first, and hand each its rows of log-probabilities (natural logs, fp32)."""
        longest = max((len(copy.ids) for copy in copies), default=0)
        if self.max_length is not None and longest > self.max_length:
            raise UserError(
                f"a sentence of {longest} tokens is longer than the {self.max_length} positions of model {self.loaded.name}"
            )
        done = 0
        for batch in self._batches(sorted(copies, key=lambda copy: -len(copy.ids))):
            rows = self._rows(batch)
            if torch.isnan(rows).any():
                text = self.loaded.tokenizer.decode(batch[0].ids)
                raise UserError(
                    f"model {self.loaded.name} gives NaN in a batch that begins with {text!r}; try --dtype float32"
                )
            for copy, read in zip(
                batch, rows.split([len(copy.positions) for copy in batch]), strict=True
            ):
                copy.take(read)
            done += len(batch)
            if on_batch is not None:
                on_batch(done, len(copies))

    def _batches(self, copies: Sequence[Copy]) -> Iterator[list[Copy]]:
        most_rows = max(1, LOGITS_BYTES // (4 * self.vocabulary))
        batch: list[Copy] = []
        rows = 0
        for copy in copies:
            more = len(copy.positions) if self.rows_first else len(copy.ids)
            if batch and (rows + more > most_rows or not self._takes(batch, copy)):
                yield batch
                batch, rows = [], 0
            batch.append(copy)
            rows += more
        if batch:
            yield batch

    def _takes(self, batch: Sequence[Copy], copy: Copy) -> bool:
        longest = len(batch[0].ids)
        padded = longest * len(batch)
        if self.batching == "plain" or longest > REACH or padded + longest > self.token_budget:
            return False
        least = (
            longest
            if self.batching == "equal-lengths"
            else FULL * longest
            if padded >= ENOUGH_TOKENS
            else 0
        )
        return len(copy.ids) >= least

    def _rows(self, batch: Sequence[Copy]) -> Tensor:
        """fp32 log-probabilities ``[positions of the whole batch, vocabulary]``."""
        width = len(batch[0].ids)
        ids = torch.full((len(batch), width), self.pad)
        attention = torch.zeros((len(batch), width), dtype=torch.long)
        for row, copy in enumerate(batch):
            ids[row, : len(copy.ids)] = torch.tensor(copy.ids)
            attention[row, : len(copy.ids)] = 1
        where = torch.tensor([row for row, copy in enumerate(batch) for _ in copy.positions])
        positions = torch.tensor([position for copy in batch for position in copy.positions])
        device = self.loaded.device
        inputs = {"input_ids": ids.to(device), "attention_mask": attention.to(device)}
        self._use_own_attention(width)
        try:
            logits = self._logits(inputs, where.to(device), positions.to(device))
        except Exception as error:
            if is_out_of_memory(error):
                raise
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
            raise UserError(
                f"model {self.loaded.name} cannot take a sentence of {width} tokens ({reason})"
            ) from error
        return torch.log_softmax(logits, dim=-1, dtype=torch.float32)

    @torch.inference_mode()
    def _logits(self, inputs: dict[str, Tensor], where: Tensor, positions: Tensor) -> Tensor:
        """Logits of the wanted rows; rows_first: cut the body's output before the head, which is half of the work, sees it."""
        model = self.loaded.model
        inputs = {name: value for name, value in inputs.items() if name in self._accepts}
        if not self.rows_first:
            return model(**inputs).logits[where, positions]

        def keep_rows(_module: Any, _inputs: Any, output: Any) -> Any:
            output["last_hidden_state"] = output["last_hidden_state"][where, positions][None]
            return output

        hook = model.base_model.register_forward_hook(keep_rows)
        try:
            return model(**inputs).logits[0]
        finally:
            hook.remove()

    def _use_own_attention(self, width: int) -> None:
        """BigBird goes over to full attention at the first short sequence and stays there: a long one gets it back."""
        config, body = self.loaded.model.config, self.loaded.model.base_model
        if (
            getattr(config, "attention_type", None) != "block_sparse"
            or body.attention_type == "block_sparse"
        ):
            return
        if (
            width > (5 + 2 * config.num_random_blocks) * config.block_size
        ):  # else it changes back at once
            body.set_attention_type("block_sparse")
