"""Linking functions: from token log-probabilities to one number per string, which decides.

    L = sum of log p(token | before)    n = number of tokens
    U = sum of log u(token), the unigram log-probabilities

    lp           L                                     the sum itself; longer strings lose
    mean         L / n                                 Lau et al. 2017; longer strings win
    slln:A       L / n^A, 0 <= A <= 1                  between the two (A = 0 is lp, A = 1 is mean)
    log:B        L / ln(n + B)
    penlp:A      L / ((5 + n) / 6)^A                   Lau et al. 2020, after Wu et al. 2016
    normlp       -L / U                                Lau et al. 2017
    slor         (L - U) / n                           Pauls and Klein 2012
    morcela:B:G  (L - B U + G) / n                     Tjuatja et al. 2024; morcela:1:0 is slor
    per-char     L / number of characters
    pmi          L - L0, L0 = the same string's log-probability without the prompt

Everything is in natural logarithms and vectorised over strings. No model is needed here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluent_mlama.console import UserError, note, plain_number
from fluent_mlama.files import parse_json

Floats = NDArray[np.float64]

UNSEEN = 1.0 / 3e9
"""Unigram probability of a token that a table lacks, as in the ZhoBLiMP code."""


@dataclass(frozen=True)
class Evidence:
    """What is known of k strings, as (k,) arrays.

    total = L, tokens = n, unigram = U, characters, prior = L0.
    """

    total: Floats
    tokens: Floats
    unigram: Floats | None = None
    characters: Floats | None = None
    prior: Floats | None = None


def evidence(total: ArrayLike, tokens: ArrayLike, **more: ArrayLike | None) -> Evidence:
    """``Evidence`` from anything array-like; a string of zero tokens is a ``ValueError``."""
    counts = np.asarray(tokens, dtype=np.float64)
    if (counts < 1).any():
        raise ValueError("a string of zero tokens has no score")
    extra = {
        name: None if values is None else np.asarray(values, dtype=np.float64)
        for name, values in more.items()
    }
    return Evidence(np.asarray(total, dtype=np.float64), counts, **extra)


@dataclass(frozen=True)
class Kind:
    """One row of the table above: formula over (evidence, parameters), defaults, needed evidence."""

    formula: Callable[[Evidence, Sequence[float]], Floats]
    defaults: tuple[float, ...] = ()
    needs: str | None = None


def _field(known: Evidence, name: str) -> Floats:
    values: Floats | None = getattr(known, name)
    if values is None:
        raise ValueError(f"this linking function needs '{name}'")
    return values


KINDS: dict[str, Kind] = {
    "lp": Kind(lambda e, _: e.total),
    "mean": Kind(lambda e, _: e.total / e.tokens),
    "slln": Kind(lambda e, p: e.total / e.tokens ** p[0], (0.5,)),
    "log": Kind(lambda e, p: e.total / np.log(e.tokens + p[0]), (1.0,)),
    "penlp": Kind(lambda e, p: e.total / ((5 + e.tokens) / 6) ** p[0], (0.8,)),
    "normlp": Kind(lambda e, _: -e.total / _field(e, "unigram"), needs="unigram"),
    "slor": Kind(lambda e, _: (e.total - _field(e, "unigram")) / e.tokens, needs="unigram"),
    "morcela": Kind(
        lambda e, p: (e.total - p[0] * _field(e, "unigram") + p[1]) / e.tokens,
        (1.0, 0.0),
        "unigram",
    ),
    "per-char": Kind(lambda e, _: e.total / _field(e, "characters"), needs="characters"),
    "pmi": Kind(lambda e, _: e.total - _field(e, "prior"), needs="prior"),
}
"""Every linking function; a new one is a row here (or added to the table by other code)."""
NAMES = tuple(KINDS)


@dataclass(frozen=True)
class Linking:
    """One linking function with its parameters."""

    kind: str
    parameters: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """How it is written on a command line: ``slln:0.5``."""
        return ":".join([self.kind, *(f"{value:g}" for value in self.parameters)])

    @property
    def needs(self) -> str | None:
        """The optional field of ``Evidence`` that it reads, None if it reads none."""
        return KINDS[self.kind].needs

    def score(self, known: Evidence) -> Floats:
        """One number per string, higher is better; missing evidence is a ``ValueError``."""
        return KINDS[self.kind].formula(known, self.parameters)


def parse_linking(text: str) -> Linking:
    """``mean``, ``slln:0.5``, ``morcela:0.5:4``; missing parameters take their defaults.

    ``UserError`` for anything else.
    """
    kind, *given = text.strip().lower().split(":")
    if kind not in KINDS:
        raise UserError(f"unknown linking function '{text}'; choose from {', '.join(KINDS)}")
    defaults = KINDS[kind].defaults
    if len(given) > len(defaults):
        raise UserError(
            f"linking function '{text}': {kind} takes {len(defaults)} parameter(s), {len(given)} "
            "given"
        )
    try:
        values = tuple(float(value) for value in given)
    except ValueError:
        raise UserError(
            f"linking function '{text}': parameters must be numbers, e.g. slln:0.5"
        ) from None
    if not all(math.isfinite(value) for value in values):
        raise UserError(f"linking function '{text}': parameters must be finite")
    parameters = values + defaults[len(values) :]
    if kind == "slln" and not 0 <= parameters[0] <= 1:
        raise UserError(
            f"linking function '{text}': the exponent of slln lies between 0 (lp) and 1 (mean)"
        )
    if kind == "log" and parameters[0] <= 0:
        raise UserError(
            f"linking function '{text}': log needs a number above 0, so that strings of one token "
            "can be divided"
        )
    return Linking(kind, parameters)


@dataclass(frozen=True)
class Unigrams:
    """Unigram log-probabilities by token id.

    source: where they are from, for tables and signatures. tokenizer: identity of the tokenizer
    whose ids these are (``scoring.text_tokens.tokenizer_identity``); "" where the table does not say.
    """

    logprobs: Mapping[int, float]
    source: str
    tokenizer: str = ""

    def look_up(self, token_ids: Iterable[int]) -> Floats:
        """Log-probability of each token; a token that the table lacks has ``UNSEEN``."""
        missing = math.log(UNSEEN)
        return np.array(
            [self.logprobs.get(token, missing) for token in token_ids], dtype=np.float64
        )

    def check_made_for(self, tokenizer: str, who: str) -> None:
        """``UserError`` where the ids are another tokenizer's, a remark where that cannot be known.

        tokenizer: identity of the scores' tokenizer, "" where their record is too old to say. A
        table without an identity is known by its size alone, and only where it has every id.
        """
        if self.tokenizer and tokenizer:
            differs = self.tokenizer != tokenizer
        else:
            whole = not self.tokenizer and len(self.logprobs) == max(self.logprobs) + 1
            differs = (
                bool(tokenizer) and whole and len(self.logprobs) != int(tokenizer.partition("-")[0])
            )
            if not differs:
                silent = (
                    f"{self.source} does not say"
                    if tokenizer
                    else f"the record of {who} does not say"
                )
                add = (
                    f'; if it is the right one, add "tokenizer": "{tokenizer}" to it'
                    if tokenizer
                    else ""
                )
                note(
                    f"{silent} which tokenizer its token ids are of, so the two cannot be "
                    f"compared{add}"
                )
        if differs:
            raise UserError(
                f"{self.source} was made for another tokenizer "
                f"({self.tokenizer or f'{len(self.logprobs)} tokens'}) than"
                f" {who} has ({tokenizer}); count the unigrams with that model's tokenizer"
            )

    def coverage(self, token_ids: Iterable[int]) -> float:
        """Share of the tokens that the table has; low where it was made for another tokenizer."""
        ids = list(token_ids)
        return sum(token in self.logprobs for token in ids) / len(ids) if ids else 1.0


def read_unigrams(path: Path) -> Unigrams:
    """``{"token id": probability}`` as published with ZhoBLiMP, and optionally ``"tokenizer"``.

    Bad files are ``UserError``s that name the entry.
    """
    try:
        raw = parse_json(path.read_bytes(), path.name)
    except FileNotFoundError:
        raise UserError(f"no unigram table at {path}; check the path") from None
    if not isinstance(raw, dict) or not raw:
        raise UserError(f"{path.name}: a unigram table is an object of token id: probability")
    tokenizer = raw.pop("tokenizer", "")
    if not isinstance(tokenizer, str) or not raw:
        raise UserError(f"{path.name}: a unigram table is an object of token id: probability")
    logprobs = {}
    for key, value in raw.items():
        token = plain_number(key)
        if (
            token is None
            or isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 < value <= 1
        ):
            raise UserError(
                f"{path.name}: entry '{key}': {value!r} is not a token id with a probability above "
                "0 and up to 1"
            )
        logprobs[token] = math.log(value)
    return Unigrams(logprobs, path.name, tokenizer)


def count_unigrams(token_ids: Iterable[int], source: str, vocabulary_size: int = 0) -> Unigrams:
    """Relative frequencies; ``vocabulary_size``: add-one smoothing over the ids below it."""
    counts = Counter(token_ids)
    counts.update(range(vocabulary_size))
    total = sum(counts.values())
    return Unigrams({token: math.log(count / total) for token, count in counts.items()}, source)
