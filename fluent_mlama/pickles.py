"""Weights that are pickles can run code of their maker's when they are read: they are, where the
user trusts the maker.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

from fluent_mlama.console import is_switched_on


def pickles_are_trusted() -> bool:
    """Whether weights that are no safetensors may be loaded: FLUENT_ALLOW_PICKLE=1."""
    return is_switched_on("FLUENT_ALLOW_PICKLE")


@contextlib.contextmanager
def no_pickles(torch: Any) -> Iterator[None]:
    """Inside, torch's unpickler refuses (``OSError``) where pickles are not trusted; this room
    knows no torch, so it is given.

    ``use_safetensors=True`` of transformers is not enough: it bears upon which file is looked for,
    and a model's own config (``transformers_weights``) or its index of safetensors may name a
    pickle.
    """
    load = torch.load
    if not pickles_are_trusted():
        torch.load = _refuse
    try:
        yield
    finally:
        torch.load = load


def _refuse(*_: object, **__: object) -> NoReturn:
    raise OSError("no file named *.safetensors: the model names a pickle for its weights")
