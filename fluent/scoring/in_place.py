"""Layers of the Llama family without copies in between: what is no longer needed is written over.

A product of matrices on a CPU leaves the rest of a layer a fifth of the time, and that rest is reading and writing
memory: every tensor that is not made is time won. A module works in place only if it then gives the same numbers as
before on a few rows. For inference in float32 alone: hooks would see tensors that are written over later.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.models.llama.modeling_llama import ALL_ATTENTION_FUNCTIONS, LlamaAttention, eager_attention_forward

_ROWS = 3
_TOLERANCE = 1e-4
"""Of the largest number."""
_GATED = {"gate_proj", "up_proj", "down_proj", "act_fn"}
_LAYER = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}


def _norm(self: Any, hidden: Tensor) -> Tensor:
    """``[..., width]`` ▶ ``[..., width]``: every row over the root of its mean square (RMSNorm)."""
    length = torch.linalg.vector_norm(hidden, dim=-1, keepdim=True)
    return (hidden * length.square_().div_(hidden.shape[-1]).add_(self.variance_epsilon).rsqrt_()).mul_(self.weight)


def _gated(self: Any, hidden: Tensor) -> Tensor:
    """``[..., width]`` ▶ ``[..., width]``: down(silu(gate) * up). Two tensors of the wide size at a time, not four."""
    return self.down_proj(functional.silu(self.gate_proj(hidden), inplace=True).mul_(self.up_proj(hidden)))


def _attention(self: Any, hidden_states: Tensor, position_embeddings: Any, attention_mask: Any = None, **more: Any) -> Any:
    """``[B, T, width]`` ▶ ``[B, T, width]`` and weights. Queries and keys are turned as complex numbers.

    The rotary embedding turns the pair (x[i], x[i + d/2]) by an angle: one product of complex numbers. Turned pairs lie
    side by side, in queries and keys alike, so their products are the same; but keys of a cache must be the model's own.
    """
    cos, sin = position_embeddings
    half = self.head_dim // 2
    if more.get("cache") is not None or more.get("past_key_values") is not None or cos.shape[-1] != self.head_dim:
        return LlamaAttention.forward(self, hidden_states, position_embeddings, attention_mask, **more)
    turn = torch.complex(cos[..., :half], sin[..., :half]).unsqueeze(-2)  # [B, T, 1, d/2]
    shape = (*hidden_states.shape[:-1], -1, self.head_dim)

    def turned(states: Tensor) -> Tensor:
        pairs = torch.complex(states[..., :half], states[..., half:]).mul_(turn)
        return torch.view_as_real(pairs).flatten(-2)

    query, key = (turned(part(hidden_states).view(shape)) for part in (self.q_proj, self.k_proj))
    value = self.v_proj(hidden_states).view(shape)
    attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
    heads = (states.transpose(1, 2) for states in (query, key, value))
    out, weights = attend(self, *heads, attention_mask, dropout=0.0, scaling=self.scaling, **more)
    return self.o_proj(out.reshape(*hidden_states.shape[:-1], -1)), weights


def _layer(self: Any, hidden_states: Tensor, **more: Any) -> Tensor:
    """``[B, T, width]`` ▶ ``[B, T, width]``: both residual sums are written over what is added."""
    attended, *_ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), **more)
    attended.add_(hidden_states)
    return self.mlp(self.post_attention_layernorm(attended)).add_(attended)


def write_over(model: Any) -> int:
    """Let norms, gated layers, attention and whole layers of ``model`` work in place; returns how many of them do."""
    modules = list(model.modules())
    return sum(_take(module, forward) for forward, fits in _FORMS.items() for module in modules if fits(module))


def write_apart(model: Any) -> None:
    """Undo ``write_over``."""
    for module in model.modules():
        if _is_taken(module, *_FORMS):
            del module.forward


def _parts(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_children()}


def _is_taken(module: Any, *forwards: Callable[..., Any]) -> bool:
    return getattr(vars(module).get("forward"), "__func__", None) in forwards


def _takes_one(module: nn.Module) -> bool:
    """Whether the module takes its rows and nothing else: some norms take a gate as well."""
    return len(inspect.signature(module.forward).parameters) == 1


_FORMS: dict[Callable[..., Any], Callable[[Any], bool]] = {
    _norm: lambda module: not _parts(module) and hasattr(module, "variance_epsilon") and _takes_one(module),
    _gated: lambda module: _parts(module) == _GATED and _takes_one(module),
    _attention: lambda module: type(module) is LlamaAttention,
    # sums are only written over what these two have just made
    _layer: lambda module: _parts(module) == _LAYER and _is_taken(module.self_attn, _attention) and _is_taken(module.mlp, _gated),
}


def _width(module: Any) -> int:
    """Size of the rows that a module takes; 0 if it cannot be told."""
    weight = getattr(module, "weight", None)
    linear = getattr(module, "gate_proj", None) or getattr(getattr(module, "self_attn", module), "q_proj", None)
    width = len(weight) if isinstance(weight, Tensor) and weight.ndim == 1 else getattr(linear, "in_features", 0)
    return width if isinstance(width, int) else 0


def _example(module: Any, forward: Callable[..., Any]) -> tuple[Tensor, dict[str, Any]]:
    """A few rows, and the angles of their positions where a module wants them."""
    width = _width(module)
    rows = torch.linspace(-1.0, 1.0, _ROWS * width).view(1, _ROWS, width)
    if forward not in (_attention, _layer):
        return rows, {}
    half = getattr(module, "self_attn", module).head_dim // 2
    angles = torch.outer(torch.arange(_ROWS), torch.linspace(1.0, 0.1, half)).repeat(1, 2)[None]
    return rows, {"position_embeddings": (angles.cos(), angles.sin())}


def _take(module: Any, forward: Callable[..., Any]) -> bool:
    if not _width(module) or "forward" in vars(module):
        return False
    rows, more = _example(module, forward)
    try:
        with torch.inference_mode():
            before = module(rows.clone(), **more)
            module.forward = MethodType(forward, module)
            same = _same(before, module(rows, **more))
    except Exception:  # whatever a module raises that only looks like one of ours: it stays as it is
        same = False
    if not same:
        vars(module).pop("forward", None)
    return same


def _same(one: Any, other: Any) -> bool:
    """Whether two results, tensors or tuples of them, are the same but for rounding."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Tensor) and isinstance(other, Tensor) and one.shape == other.shape:
        return bool((one - other).abs().max() <= _TOLERANCE * one.abs().max())
    return one is None and other is None
