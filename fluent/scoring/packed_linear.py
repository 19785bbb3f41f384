"""Linear layers whose weights oneDNN has put in its own order, once, instead of at every call.

On a CPU in float32 this is worth about a fifth of the whole run. The operator is torch's own but not public, so it is
tried on one layer first and everything stays as it was where it is missing or wrong. Layers are replaced one by one and
each original's pages are given back at once: memory does not double.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor, nn

from fluent.scoring.mapped import give_back, mapped_ranges

PACKED_FOR_ROWS = 1024
"""Row count the order of the weights is chosen for; other counts are right too."""
_TOLERANCE = 1e-3
CACHED_KERNELS = 64
"""Kernels that oneDNN keeps: one a shape of weights and number of rows, more than one forward needs.

Every forward has a number of rows of its own; with the default of 1024 in each of two caches, some 0.6 MB apiece, memory
grows by 3 MB a forward for hundreds of forwards.
"""
for _name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # read at the first product
    os.environ.setdefault(_name, str(CACHED_KERNELS))


class PackedLinear(nn.Module):
    """Stands for an ``nn.Linear``; ``weight`` is the packed tensor, readable by oneDNN alone."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), PACKED_FOR_ROWS)
        self.bias = linear.bias

    def forward(self, rows: Tensor) -> Tensor:
        """``[..., in]`` ▶ ``[..., out]``."""
        return torch.ops.mkldnn._linear_pointwise(rows, self.packed, self.bias, "none", [], "")

    def unpacked(self) -> nn.Linear:
        """The layer as it was."""
        linear = nn.Linear(self.in_features, self.out_features, bias=False, device="meta")
        linear.weight = nn.Parameter(self.packed.to_dense(), requires_grad=False)
        linear.bias = self.bias
        return linear


def can_pack(model: Any) -> str | None:
    """None if the model's linear layers can be packed, else the reason."""
    layers = [module for module in model.modules() if type(module) is nn.Linear]
    if not layers:
        return "no linear layers"
    if any(layer.weight.device.type != "cpu" or layer.weight.dtype != torch.float32 for layer in layers):
        return "not float32 on a CPU"
    sample = min(layers, key=lambda layer: layer.weight.numel())
    try:
        packed = PackedLinear(sample)
        rows = torch.linspace(-1.0, 1.0, 3 * sample.in_features).view(3, -1)
        if not torch.allclose(packed(rows), sample(rows), atol=_TOLERANCE) or not torch.equal(packed.unpacked().weight, sample.weight):
            return "the packed product is wrong here"
    except (RuntimeError, AttributeError, NotImplementedError, TypeError) as error:
        return f"not available in this torch ({type(error).__name__})"
    return None


def pack(model: Any) -> int:
    """Replace every plain linear layer of ``model`` by its packed form; returns how many."""
    ranges = mapped_ranges()

    def packed(linear: nn.Linear) -> PackedLinear:
        layer = PackedLinear(linear)
        give_back(linear.weight, ranges)
        return layer

    return _replace(model, nn.Linear, packed)


def unpack(model: Any) -> int:
    """Put the plain layers back; a head that shared the embedding's weight gets a copy of it."""
    return _replace(model, PackedLinear, PackedLinear.unpacked)


def _replace(model: Any, kind: type[nn.Module], make: Any) -> int:
    count = 0
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is kind:
                setattr(parent, name, make(child))
                count += 1
    return count
