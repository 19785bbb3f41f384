"""Linear layers whose weights oneDNN has put in its own order, once, instead of at every call.

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
import mmap
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

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
