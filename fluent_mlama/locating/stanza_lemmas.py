"""Stanza's lemmas beside simplemma's, for those who have Stanza and its models installed; nothing here needs it.

Locator("fi", "P19", lemmatise=stanza_lemmatiser("fi", folder))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from fluent_mlama.console import UserError

_CODES = {"zh": "zh-hans", "no": "nb"}


def stanza_lemmatiser(lang: str, folder: Path | None = None) -> Callable[[str], frozenset[str]]:
    """A function from a word to its lemmas, by a Stanza pipeline that is loaded once and never downloads anything.

    folder: where the models lie (Stanza's own place if None). A word's lemma may be missing (None or "_"): the set is empty
    then; a double lemma ("a|b") counts as two. Raises UserError where Stanza or the language's model is not installed.
    """
    try:
        import stanza
    except ImportError:
        raise UserError(
            "stanza is not installed: run 'pip install stanza' or go without it"
        ) from None
    code = _CODES.get(lang, lang)
    place = {} if folder is None else {"dir": str(folder)}
    try:
        pipeline = stanza.Pipeline(
            code, processors="tokenize,pos,lemma", download_method=None, verbose=False, **place
        )
    except Exception as error:  # Stanza raises many kinds where a model or its index is missing
        raise UserError(
            f"stanza has no model for '{code}' here ({error}): run stanza.download('{code}') first"
        ) from None

    @lru_cache(maxsize=100_000)
    def lemmas(word: str) -> frozenset[str]:
        told = [one.lemma for sentence in pipeline(word).sentences for one in sentence.words]
        if len(told) != 1 or told[0] in (None, "_"):
            return frozenset()
        return frozenset(told[0].split("|"))

    return lemmas
