"""Rank a few candidates after a prompt: the scoring engine in two lines of Python, for causal and masked models.

>>> import fluent_mlama
>>> fluent_mlama.load_scorer("smollm2").rank("The capital of France is", ["Paris", "Rome"])  # doctest: +SKIP
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.causal import load_scorer as load_causal_scorer
from fluent_mlama.scoring.contract import Candidate, Request
from fluent_mlama.scoring.masked import MaskedScorer, load_masked_scorer
from fluent_mlama.scoring.masked_contract import TypedQuery
from fluent_mlama.scoring.models import is_masked

SLOT = "[Y]"
"""Where the candidates go in a prompt that has text on both sides, as in mLAMA's templates."""


class CandidateRanker:
    """Ranks candidates with ``scorer``."""

    def __init__(self, scorer: CausalScorer | MaskedScorer) -> None:
        self.scorer = scorer

    def rank(self, prompt: str, candidates: Sequence[str], tail: str = "") -> pd.DataFrame:
        """One row per candidate, best first: candidate, rank, logprob, prob_among_candidates.

        prompt: the text before the candidates, which follow after one blank; or the whole sentence with ``[Y]`` for the
        candidate, exactly as written (for scripts without blanks). tail: the text after the candidate.
        A masked model needs ``[Y]`` or a tail.

        logprob, natural logarithm: for a causal model the sum over the tokens of candidate and tail, the sentence
        tokenised as one string; for a masked model the mean over the candidate's tokens, all masked at once, with the tail
        as right context. The two cannot be compared. prob_among_candidates: the softmax of logprob over the candidates.
        rank: 1 is best; equal scores share the better rank.
        """
        if isinstance(candidates, str):
            raise UserError("candidates is one string; give a list of strings")
        candidates = list(candidates)
        _check_candidates(candidates)
        left, right = _around_slot(prompt, tail)
        if isinstance(self.scorer, MaskedScorer):
            if not right:
                raise UserError(
                    f"a masked model reads both sides: give tail='.' or put {SLOT} in the prompt"
                )
            logprobs = _masked_logprobs(self.scorer, left, right, candidates)
        else:
            logprobs = _causal_logprobs(self.scorer, left, right, candidates)
        scores = pd.Series(logprobs, dtype="float64")
        shares = np.exp(
            scores - scores.max()
        )  # shifted by the maximum so that exp cannot underflow
        table = pd.DataFrame(
            {
                "candidate": candidates,
                "rank": scores.rank(method="min", ascending=False).astype(int),
                "logprob": scores,
                "prob_among_candidates": shares / shares.sum(),
            }
        )
        return table.sort_values("rank", kind="stable", ignore_index=True)


def load_scorer(
    model: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> CandidateRanker:
    """Load a causal or masked model (hub id, folder, GGUF file or ``smollm2``) for ``CandidateRanker.rank``.

    device: auto, cpu, cuda, cuda:N or mps. dtype: auto, float32, bfloat16 or float16.
    """
    load = load_masked_scorer if is_masked(model, revision) else load_causal_scorer
    return CandidateRanker(
        load(
            model,
            device=device,
            dtype=dtype,
            revision=revision,
            trust_remote_code=trust_remote_code,
        )
    )


def _check_candidates(candidates: Sequence[str]) -> None:
    if not candidates:
        raise UserError("there are no candidates to rank; give a list of strings")
    if any(not isinstance(text, str) or not text.strip() for text in candidates):
        raise UserError("a candidate is empty or not a string; leave it out")
    doubled = [text for text, count in Counter(candidates).items() if count > 1]
    if doubled:
        # it would count twice among the candidates' probabilities
        raise UserError(f"candidate {doubled[0]!r} is given twice; leave one out")


def _around_slot(prompt: str, tail: str) -> tuple[str, str]:
    """The texts left and right of the candidate; the left one ends with the blank that separates them, if any."""
    if SLOT in prompt:
        if prompt.count(SLOT) > 1 or tail:
            raise UserError(f"give {SLOT} once in the prompt, and then no tail")
        left, _, right = prompt.partition(SLOT)
        return left, right
    trimmed = prompt.rstrip()
    if trimmed != prompt:
        note("the prompt ends with a blank, which is left out: candidates follow after one blank")
    return (f"{trimmed} " if trimmed else ""), tail


def _causal_logprobs(
    scorer: CausalScorer, left: str, right: str, candidates: Sequence[str]
) -> list[float]:
    # the blank belongs to the candidate, since models are trained on tokens that begin with it
    prompt = left.rstrip()
    separator = left[len(prompt) :]
    request = Request(prompt, tuple(Candidate(separator + text, right) for text in candidates))
    (scores,) = scorer.score([request], tokenisation="joint")
    return [score.logprob for score in scores.candidates]


def _masked_logprobs(
    scorer: MaskedScorer, left: str, right: str, candidates: Sequence[str]
) -> list[float]:
    (result,) = scorer.typed([TypedQuery(left, right, tuple(candidates))])
    for text, score in zip(candidates, result.candidates, strict=True):
        if not score.token_ids:
            raise UserError(f"candidate {text!r} has no tokens for this model; leave it out")
        if score.unknown:
            note(f"candidate {text!r} has characters that this model does not know")
    return [score.mean for score in result.candidates]
