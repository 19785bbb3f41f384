"""float64 is for the CPU alone: Apple's MPS has none, and every sum of log-probabilities is one.

No such device is needed: a mode watches every torch call and keeps count of which tensors a ``cpu()`` has brought over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_iter

from fluent_mlama.scoring.contract import Arithmetic, Candidate, Request, Tokenisation
from fluent_mlama.scoring.masked_contract import TypedQuery
from fluent_mlama.scoring.selfcheck import METHODS
from tests.mlama_world import tiny_masked
from tests.tiny import byte_level_tokenizer, tiny_scorer

REQUESTS = [
    Request("Praha je ", (Candidate("v Česku"), Candidate("v Praze", "."), Candidate("x"))),
    Request("Praha je v ", (Candidate("Česku"), Candidate("Evropě"))),
]
_TO_CPU = (Tensor.cpu, Tensor.numpy, Tensor.tolist, Tensor.item)


class DeviceWithoutFloat64(TorchFunctionMode):
    """Every tensor counts as on the device until ``cpu()`` has returned it; float64 there is an error, as on MPS."""

    def __init__(self) -> None:
        super().__init__()
        self.brought_over = 0

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Any = None,
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if function is Tensor.cpu:
            result = result.detach().clone() if result is args[0] else result
            result.on_cpu = True
            self.brought_over += 1
            return result
        over = any(
            getattr(one, "on_cpu", False)
            for one in tree_iter((args, kwargs))
            if isinstance(one, Tensor)
        )
        for one in tree_iter(result):
            if isinstance(one, Tensor) and over:
                one.on_cpu = True
            elif isinstance(one, Tensor) and one.dtype == torch.float64:
                raise TypeError(f"{function.__name__}: the device has no float64")
        return result


def test_the_stand_in_refuses_what_mps_refuses() -> None:
    with DeviceWithoutFloat64() as device:
        values = torch.ones(3)
        for refused in (
            lambda: values.double().cpu(),
            lambda: values.to(torch.float64),
            lambda: torch.zeros(2, dtype=torch.float64),
        ):
            with pytest.raises(TypeError, match="the device has no float64"):
                refused()
        assert float(values.cpu().double().sum()) == 3.0 and device.brought_over == 1


@pytest.mark.parametrize("tokenisation", ["separate", "joint"])
@pytest.mark.parametrize("path", METHODS)
def test_every_causal_path_sums_on_the_cpu(path: str, tokenisation: Tokenisation) -> None:
    arithmetics: tuple[Arithmetic, ...] = ("float32", "published-fp16")
    with DeviceWithoutFloat64() as device:
        scorer = tiny_scorer("llama", byte_level_tokenizer(), path=path)
        made = [
            scorer.score(REQUESTS, tokenisation=tokenisation, arithmetic=arithmetic)
            for arithmetic in arithmetics
        ]
    assert device.brought_over > 0
    for scores in made:
        assert all(
            np.isfinite(candidate.logprob) for score in scores for candidate in score.candidates
        )


def test_masked_models_sum_on_the_cpu() -> None:
    scorer = tiny_masked()
    with DeviceWithoutFloat64() as device:
        (typed,) = scorer.typed(
            [TypedQuery("The capital of Ardland is ", ".", ("Ostby", "Lumen"), untyped=True)]
        )
        (whole,) = scorer.pseudo_log_likelihood(["Ardland speaks Ardish"])
    assert device.brought_over > 0
    assert all(len(score.token_logprobs) > 0 for score in (*typed.candidates, whole))
