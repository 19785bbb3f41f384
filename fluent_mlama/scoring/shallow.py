"""A model's first layers as a model of its own, in float32: the same code at a price that fits beside the model.

As many layers as it takes to have one of every kind: sliding and full attention, with and without positions, dense and
of experts, attention and recurrence. Weights of a float32 model are shared, not copied.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from fluent_mlama.scoring.packed_linear import PackedHead, PackedLinear

TOKENS = 512
"""Rows of the embedding and of the head that the copy has: the head would be most of its work."""
_FEWEST = 2
"""Layers at least: what the first one mixes, the second one shows."""


def first_layers(model: Any) -> tuple[Any, str]:
    """The copy and what it is (``its first 2 of 30 layers``). Raises whatever a model's code raises on being copied."""
    config = model.config.get_text_config()
    layers = _layers(model)
    count = max(_FEWEST, _covering(_kinds(layers, config)))
    shown = f"its first {min(count, len(layers))} of {len(layers)} layers"
    if any(
        parameter.element_size() < 2 for parameter in model.parameters()
    ):  # quantised: the logic needs no weights
        return _of_random_weights(model, len(layers), count), f"{shown}, of random weights"
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(parameter.detach(), requires_grad=False)
    for module in (model.get_input_embeddings(), model.get_output_embeddings()):
        if not isinstance(module, PackedHead):
            _keep_rows(module, memo)
    for module in model.modules():
        if isinstance(module, (PackedLinear, PackedHead)):
            memo[id(module)] = module
    memo[id(layers)] = copy.deepcopy(nn.ModuleList(list(layers)[:count]), memo)
    small = copy.deepcopy(model, memo)
    small.get_input_embeddings().padding_idx = (
        None  # may be one of the rows that are left out; matters in training only
    )
    _cut(small.config, len(layers), count)
    return small.float().eval(), shown


def _layers(model: Any) -> nn.ModuleList:
    count = model.config.get_text_config().num_hidden_layers
    return next(
        module
        for module in model.modules()
        if isinstance(module, nn.ModuleList) and len(module) == count
    )


def _covering(kinds: list[Any]) -> int:
    """The shortest beginning that holds every kind."""
    return 1 + max(kinds.index(kind) for kind in kinds)


def _kinds(layers: nn.ModuleList, config: Any) -> list[Any]:
    """What each layer is: its modules, their switches and windows, and its entries in the config's lists."""
    numbers = list(range(len(layers)))
    switches = [_switches(layer) for layer in layers]
    numbering = {
        name for name in switches[-1] if [found.get(name) for found in switches] == numbers
    }
    lists = [
        value
        for value in vars(config).values()
        if isinstance(value, (list, tuple)) and len(value) == len(layers)
    ]
    kinds = []
    for number, found in enumerate(switches):
        kinds.append(
            (
                {name: found[name] for name in found.keys() - numbering},
                [str(values[number]) for values in lists],
            )
        )
    return kinds


def _switches(layer: nn.Module) -> dict[str, Any]:
    """Types of a layer's modules, and what they hold of plain values; those of torch's own are sizes."""
    found: dict[str, Any] = {}
    for name, module in layer.named_modules():
        found[name] = type(module)
        if not type(module).__module__.startswith("torch."):
            plain = {
                key: value
                for key, value in vars(module).items()
                if isinstance(value, (bool, int, str, type(None)))
            }
            found |= {f"{name}.{key}": value for key, value in plain.items()}
    return found


def _keep_rows(module: Any, memo: dict[int, Any]) -> None:
    for parameter in module.parameters(recurse=False):
        memo[id(parameter)] = nn.Parameter(parameter.detach()[:TOKENS], requires_grad=False)


def _cut(config: Any, layers: int, count: int) -> None:
    """Let a config speak of its first ``count`` layers."""
    text = config.get_text_config()
    for name, value in list(vars(text).items()):
        if isinstance(value, (list, tuple)) and len(value) == layers:
            setattr(text, name, value[:count])
    text.num_hidden_layers = min(count, layers)
    config.dtype = text.dtype = torch.float32


def _of_random_weights(model: Any, layers: int, count: int) -> Any:
    config = copy.deepcopy(model.config)
    vars(config).pop("quantization_config", None)
    _cut(config, layers, count)
    return type(model)(config).float().eval().requires_grad_(False).to(model.device)
