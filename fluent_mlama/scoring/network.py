"""The model as a body that makes hidden states, and a head that reads chosen rows of them.

A head applied by hand to a few rows at a time keeps memory small (rows × vocabulary is the largest
thing there is), but it misses what some models do to their logits (scales, soft caps). The
load-time check decides; where it fails, the model's own forward computes the logits of the wanted
rows (``logits_to_keep``).

**Packed weights.** Linear layers whose weights oneDNN has put in its own order, once, instead of at every call.

On a CPU in float32 this is worth about a fifth of the whole run. The operator is torch's own but
not public, so it is tried on one layer first and everything stays as it was where it is missing or
wrong. Layers are replaced one by one and each original's pages are given back at once: memory does
not double. The head is cut into slices as well.

safetensors weights are views of a mapped file, which stays mapped while one of them lives: letting
a weight go frees nothing by itself. The system may be told that a range of the mapping is not
needed; should it be read after all, it comes from the file again. Only ranges that belong to a file
are ever given back, and only on Linux.
"""

from __future__ import annotations

import ctypes
import inspect
import mmap
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fluent_mlama.scoring.contract import Arithmetic

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


PACKED_FOR_ROWS = 1024
"""Row count the order of the weights is chosen for; other counts are right too."""
SLICE = 2048
"""Tokens of the vocabulary that a head's slice holds."""
_TOLERANCE = 1e-3
CACHED_KERNELS = 64
"""Kernels that oneDNN keeps, one per shape of weights and number of rows.

Every forward has a number of rows of its own; with the default of 1024 in each of two caches, some
0.6 MB apiece, memory grows by 3 MB per forward for hundreds of forwards.
"""
for _name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # read at the first product
    os.environ.setdefault(_name, str(CACHED_KERNELS))


class PackedLinear(nn.Module):
    """Replaces an ``nn.Linear``; ``weight`` is the packed tensor, which only oneDNN can read."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), PACKED_FOR_ROWS)
        self.bias = bias

    def forward(self, rows: Tensor) -> Tensor:
        """``[..., in]`` ▶ ``[..., out]``."""
        return torch.ops.mkldnn._linear_pointwise(rows, self.weight, self.bias, "none", [], "")

    def unpacked(self) -> nn.Linear:
        """The layer as it was."""
        return _plain(self.weight.to_dense(), self.bias)


class PackedHead(nn.Module):
    """The head in slices of the vocabulary, whose logits are read while in the cache.

    Rows of whole logits are far larger than any cache, and reading the weights once for every few
    of them costs as much as the products.
    """

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        weights = head.weight.split(SLICE)
        biases = [None] * len(weights) if head.bias is None else head.bias.split(SLICE)
        self.slices: Any = nn.ModuleList(
            PackedLinear(*part) for part in zip(weights, biases, strict=True)
        )
        self.bias = head.bias

    @property
    def weight(self) -> Tensor:
        """Of the first slice: some models ask for its number type."""
        return self.slices[0].weight

    def forward(self, rows: Tensor) -> Tensor:
        """Whole logits: ``[..., in]`` ▶ ``[..., vocabulary]``."""
        return torch.cat([part(rows) for part in self.slices], dim=-1)

    def log_probabilities(self, hidden: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
        """``[i]``: natural log softmax of the logits x of ``hidden[rows[i]]`` at ``tokens[i]``.

        With m[k] the largest logit of slice k, M the largest of all, S[k] = sum of exp(x - m[k]):

            log p(t) = (x[t] - M) - log(sum over k of S[k] exp(m[k] - M))

        Only maxima are subtracted, so that logits of -inf, or far below the rest, cost no precision.
        """
        chosen = torch.empty(len(rows), dtype=hidden.dtype)
        tops, sums = [], []
        for number, part in enumerate(self.slices):
            logits = part(hidden)
            here = (tokens // SLICE == number).nonzero()[:, 0]
            chosen[here] = logits[rows[here], tokens[here] % SLICE]
            # Finite even where the whole slice is -inf: -inf - -inf would be NaN.
            top = logits.amax(dim=-1).clamp_(min=torch.finfo(logits.dtype).min)
            tops.append(top)
            sums.append(logits.sub_(top[:, None]).exp_().sum(dim=-1))
            del logits  # the next slice then takes its place
        top, largest = torch.stack(tops), torch.stack(tops).amax(dim=0)
        total = (torch.stack(sums) * (top - largest).exp_()).sum(dim=0)
        return chosen - largest[rows] - total.log_()[rows]

    def unpacked(self) -> nn.Linear:
        """The head as it was."""
        return _plain(torch.cat([part.weight.to_dense() for part in self.slices]), self.bias)


def _plain(weight: Tensor, bias: Any) -> nn.Linear:
    out_features, in_features = weight.shape
    # On the meta device nothing is allocated for the weight that is replaced at once.
    linear = nn.Linear(in_features, out_features, bias=False, device="meta")
    linear.weight = nn.Parameter(weight, requires_grad=False)
    linear.bias = bias
    return linear


def can_pack(model: Any) -> str | None:
    """None if the model's linear layers can be packed, else the reason."""
    layers = [module for module in model.modules() if type(module) is nn.Linear]
    if any(isinstance(module, PackedLinear) for module in model.modules()):
        return "they are already"
    if not layers:
        return "no linear layers"
    if any(
        layer.weight.device.type != "cpu" or layer.weight.dtype != torch.float32 for layer in layers
    ):
        return "not float32 on a CPU"
    # The smallest layer will do: what is tried is whether the operator is there and right.
    sample = min(layers, key=lambda layer: layer.weight.numel())
    try:
        packed = PackedLinear(sample.weight, sample.bias)
        rows = torch.linspace(-1.0, 1.0, 3 * sample.in_features).view(3, -1)
        if not torch.allclose(packed(rows), sample(rows), atol=_TOLERANCE) or not torch.equal(
            packed.unpacked().weight, sample.weight
        ):
            return "the packed product is wrong here"
    except (RuntimeError, AttributeError, NotImplementedError, TypeError) as error:
        return f"not available in this torch ({type(error).__name__})"
    return None


def pack(model: Any, head: Any = None) -> int:
    """Replace every plain linear layer of ``model`` by its packed form; returns how many.

    head: the layer of them that becomes a ``PackedHead``.
    """
    # Read once: packing does not map anything new.
    ranges = mapped_ranges()

    def packed(linear: nn.Linear) -> nn.Module:
        layer = PackedHead(linear) if linear is head else PackedLinear(linear.weight, linear.bias)
        give_back(linear.weight, ranges)
        return layer

    return _replace(model, nn.Linear, packed)


def unpack(model: Any) -> int:
    """Put the plain layers back; a head that shared the embedding's weight gets a copy of it."""
    return _replace(model, PackedHead, PackedHead.unpacked) + _replace(
        model, PackedLinear, PackedLinear.unpacked
    )


def _replace(model: Any, kind: type[nn.Module], make: Any) -> int:
    count = 0
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is kind:
                setattr(parent, name, make(child))
                count += 1
    return count


Range = tuple[int, int]


def mapped_ranges() -> list[Range]:
    """Address ranges of this process that are backed by a file; none outside Linux."""
    if sys.platform != "linux":
        return []
    ranges = []
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/"):
            start, end = (int(part, 16) for part in fields[0].split("-"))
            ranges.append((start, end))
    return ranges


def give_back(tensor: Tensor, ranges: Sequence[Range]) -> bool:
    """Give back the pages of a contiguous tensor that lies in one of ``ranges``; True if done."""
    first, last = tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size()
    if tensor.device.type != "cpu" or not any(
        start <= first and last <= end for start, end in ranges
    ):
        return False
    # Whole pages only: neighbours share the first and the last one.
    first, last = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, last // mmap.PAGESIZE * mmap.PAGESIZE
    if first >= last:
        return False
    return (
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(first), ctypes.c_size_t(last - first), mmap.MADV_DONTNEED
        )
        == 0
    )
