"""The gated layer of the Llama family without copies in between: what is no longer needed is written over."""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

_PARTS = {"gate_proj", "up_proj", "down_proj", "act_fn"}


def _forward(self: Any, hidden: Tensor) -> Tensor:
    """``[..., width]`` ▶ ``[..., width]``: down(silu(gate) * up). Two tensors of the wide size at a time, not four."""
    return self.down_proj(functional.silu(self.gate_proj(hidden), inplace=True).mul_(self.up_proj(hidden)))


def write_over(model: Any) -> int:
    """Let every gated layer with SiLU of ``model`` work in place; returns how many do.

    A layer is known by the names of its parts, and taken only if it gives the same numbers as before on a few rows.
    """
    return sum(_take(module) for module in model.modules() if {name for name, _ in module.named_children()} == _PARTS)


def write_apart(model: Any) -> None:
    """Undo ``write_over``."""
    for module in model.modules():
        if getattr(vars(module).get("forward"), "__func__", None) is _forward:
            del module.forward


def _take(layer: nn.Module) -> bool:
    width = getattr(layer.gate_proj, "in_features", 0)
    if not isinstance(width, int) or width < 1 or "forward" in vars(layer):
        return False
    rows = torch.linspace(-1.0, 1.0, 3 * width).view(1, 3, width)
    with torch.inference_mode():
        before = layer(rows)
        layer.forward = MethodType(_forward, layer)
        same = isinstance(before, Tensor) and torch.allclose(before, layer(rows), rtol=1e-4, atol=1e-5)
    if not same:
        del layer.forward
    return same
