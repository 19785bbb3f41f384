"""What both checks at load share: comparing scores, and a model's first layers to try them on.

The first layers form a model of its own, in float32: the same code at a price that fits beside the
model. There are as many as it takes to have one of every kind: sliding and full attention, with and
without positions, dense and of experts, attention and recurrence. Weights of a float32 model are
shared, not copied.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from fluent_mlama.console import UserError
from fluent_mlama.scoring.failures import is_out_of_memory
from fluent_mlama.scoring.methods import Edges, MethodRefused
from fluent_mlama.scoring.network import PackedHead, PackedLinear

TOLERANCE = {"float32": 1e-3, "16-bit": 1.0}
"""Largest gap of a candidate's summed log-probability between a way to score and plain forwards."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Scores against those of plain forwards. trouble: why they cannot be used."""

    gap: float
    rank_changes: int
    trouble: str | None = None

    def record(self) -> dict[str, Any]:
        """For run.json."""
        return {"largest_gap": self.gap, "rank_changes": self.rank_changes}


def agree(
    score: Callable[[], Sequence[Edges]], plain: Sequence[Edges], tolerance: float
) -> Comparison:
    """Compare what ``score`` returns with plain scores; texts in one array are ranked together."""
    try:
        scores = score()
    except (MethodRefused, UserError) as refusal:
        return Comparison(float("nan"), 0, str(refusal))
    except Exception as error:
        # Whatever a model's code raises on an input it was not made for is a reason, not a bug.
        if is_out_of_memory(error):
            raise
        return Comparison(
            float("nan"), 0, f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        )
    gap, changes = 0.0, 0
    for mine, right in zip(scores, plain, strict=True):
        with np.errstate(invalid="ignore"):  # both may be -inf
            apart = np.where(mine == right, 0.0, mine - right)
        # Unlike Python's max, numpy's keeps NaN.
        gap = float(np.maximum(gap, np.abs(apart).max(initial=0.0)))
        changes += int(
            (np.argsort(-mine, kind="stable") != np.argsort(-right, kind="stable")).sum()
        )
    if not gap <= tolerance:  # NaN is trouble too
        return Comparison(gap, changes, f"scores are {gap:.2g} off the plain path's")
    return Comparison(gap, changes)


def seen_gaps(record: Mapping[str, Any]) -> str:
    """Largest gap and changed ranks in each number type of a check's record, for the terminal."""
    checks = {
        name: value
        for name, value in record.items()
        if isinstance(value, dict) and "largest_gap" in value
    }
    return "".join(
        f"; {name}: largest gap {one['largest_gap']:.1e}, {one['rank_changes']} ranks changed"
        for name, one in checks.items()
    )


def reason_for(name: str, wanted: str, refused: Mapping[str, str]) -> str:
    """Why the way ``name`` is taken. wanted: it, or auto; refused: other ways, and why not."""
    if wanted != "auto":
        return "asked for"
    others = {
        label.split(" ")[0]: trouble
        for label, trouble in refused.items()
        if label.split(" ")[0] != name
    }
    if not others:
        return "the fastest; agrees with plain forwards"
    return "agrees with plain forwards; refused: " + "; ".join(
        f"{label}: {trouble}" for label, trouble in others.items()
    )


TOKENS = 512
"""Rows of the embedding and of the head that the copy has: the head would be most of its work."""
_FEWEST = 2
"""Layers at least: what the first one mixes, the second one shows."""


def first_layers(model: Any) -> tuple[Any, str]:
    """The copy and its name (``its first 2 of 30 layers``); may raise anything."""
    config = model.config.get_text_config()
    layers = _layers(model)
    count = max(_FEWEST, _covering(_kinds(layers, config)))
    shown = f"its first {min(count, len(layers))} of {len(layers)} layers"
    # Quantised weights cannot be made float32, but what is tried is logic: any weights will do.
    if any(parameter.element_size() < 2 for parameter in model.parameters()):
        return _of_random_weights(model, len(layers), count), f"{shown}, of random weights"
    # deepcopy takes from its memo what is there instead of copying it: every weight is shared, the
    # embedding and the head are cut to their first rows, and the list of layers is a short one.
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
    # It may be one of the rows that are left out, and matters in training only.
    small.get_input_embeddings().padding_idx = None
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
    """Per layer: its modules, their switches and windows, and its entries in the config's lists."""
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
    """Types of a layer's modules, and plain values of those that are not torch's own."""
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
