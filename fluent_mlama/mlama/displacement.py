"""The published evaluator's displaced masks, so that their effect can be measured (``--compat``).

Its tokeniser handled a word between blanks that holds the mask by putting the mask first and everything else of that
word, not split at punctuation, behind it: ``l'[MASK].`` became ``[MASK] l'.``; Han characters are words of their own there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from fluent_mlama.console import UserError

Ids = tuple[int, ...]
_HAN = re.compile("([㐀-䶿一-鿿豈-﫿])")
_MASK = "[MASK]"


def displaced_words(left: str, right: str, masks: int) -> Iterator[tuple[str, bool]]:
    """The words of the filled template in the published order: (text, False) an ordinary word, (text, True) one not to be split.

    The mask itself is ("[MASK]", True).
    """
    filled = _HAN.sub(r" \1 ", left) + " ".join([_MASK] * masks) + _HAN.sub(r" \1 ", right)
    for word in filled.split():
        if _MASK not in word:
            yield word, False
            continue
        yield from [(_MASK, True)] * word.count(_MASK)
        rest = word.replace(_MASK, "")
        if rest:
            yield rest, True


def displaced_layout(
    tokenizer: Any, pieces: Callable[[str], Ids], left: str, right: str, masks: int
) -> tuple[Ids, tuple[int, ...]]:
    """Token ids and mask positions as published, for a WordPiece tokenizer; ``UserError`` for any other."""
    model = tokenizer.backend_tokenizer.model
    if type(model).__name__ != "WordPiece":
        raise UserError(
            f"--compat repeats what a WordPiece tokeniser did; this model has {type(model).__name__}"
        )
    ids: list[int] = []
    places = []
    for word, whole in displaced_words(left, right, masks):
        if whole and word == _MASK:
            places.append(len(ids))
            ids.append(tokenizer.mask_token_id)
        else:
            ids.extend([token.id for token in model.tokenize(word)] if whole else pieces(word))
    return tuple(ids), tuple(places)
