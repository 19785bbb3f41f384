"""From edges back to requests: each candidate's token log-probabilities, sums, and the checks on them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fluent_mlama.console import UserError
from fluent_mlama.scoring.contract import Arithmetic, CandidateScore, Plan, Request, RequestScore
from fluent_mlama.scoring.paths import Edges
from fluent_mlama.scoring.planning import Group
from fluent_mlama.scoring.tokens import RequestTokens
from fluent_mlama.scoring.trie import Tree

_ROUNDING = 1e-5
"""What a log-probability of 0 may come out as; tokens nearer to each other than this part of their value are equal."""


def assemble(
    plan: Plan,
    group: Group,
    trees: Sequence[Tree],
    edges: Sequence[Edges],
    arithmetic: Arithmetic,
    *,
    exact: bool,
) -> dict[int, RequestScore]:
    """Scores of a group's requests from the edges of its trees. exact: see ``check``."""
    where = {
        sequence: (t, s)
        for t, tree in enumerate(trees)
        for s, sequence in enumerate(tree.sequences)
    }
    prompt_logprobs = tuple(edges[0][trees[0].paths[0]].tolist())
    prompt_total = add_up(prompt_logprobs, arithmetic)
    known: dict[
        int, CandidateScore
    ] = {}  # by identity: the tokens of equal candidates are one object
    scores = {}
    for number in group.numbers:
        tokens: RequestTokens = plan.state.tokens[number]
        candidates = []
        for candidate in tokens.candidates:
            score = known.get(id(candidate))
            if score is None:
                t, s = where[candidate.sequence]
                logprobs = tuple(edges[t][trees[t].paths[s][candidate.start - 1 :]].tolist())
                total = add_up(logprobs, arithmetic)
                score = CandidateScore(
                    candidate.scored, logprobs, total, candidate.tail_tokens, candidate.straddles
                )
                known[id(candidate)] = score
            candidates.append(score)
        scores[number] = RequestScore(
            tokens.prompt, prompt_logprobs, prompt_total, tuple(candidates)
        )
        check(plan.requests[number], scores[number], exact=exact)
    return scores


def add_up(logprobs: Sequence[float], arithmetic: Arithmetic) -> float:
    """Sum in the run's arithmetic: float64, or a running fp16 sum in token order. An empty sum is 0.0."""
    if arithmetic == "float32":
        return float(sum(logprobs, 0.0))
    total = np.float16(0.0)
    with np.errstate(over="ignore"):  # beyond -65504 the published sum is -inf as well
        for value in logprobs:
            total = np.float16(total + np.float16(value))
    return float(total)


def check(request: Request, score: RequestScore, *, exact: bool = True) -> None:
    """Raise a UserError where scores cannot be log-probabilities, or those of a model that tells texts apart.

    NaN and positive values; one value for every token, in whatever context; one score for all candidates. Only where
    scores are ``exact`` (float32 throughout) is it an error for two candidates: numbers of 16 bit meet by chance. All
    ``-inf`` is no error: softmax in fp16 brings it about, and the published dumps hold such rows.
    """
    advice = "try --dtype float32, and look whether the model's files are whole"
    after = f"after prompt {request.prompt!r}"
    named = [
        (f"candidate {candidate.text!r} {after}", scored)
        for candidate, scored in zip(request.candidates, score.candidates, strict=True)
    ]
    for where, values in (
        (f"prompt {request.prompt!r}", (*score.prompt_token_logprobs, score.prompt_logprob)),
        *((where, (*scored.token_logprobs, scored.logprob)) for where, scored in named),
    ):
        if any(map(math.isnan, values)):
            raise UserError(f"model gives NaN for {where}; {advice}")
        if max(values) > _ROUNDING:
            raise UserError(
                f"model gives {max(values):.3g} as the log-probability of {where}, which can be at most 0; {advice}"
            )
    totals = {scored.token_ids: scored.logprob for _, scored in named}
    if (
        len(totals) > (1 if exact else 2)
        and len(set(totals.values())) == 1
        and -math.inf not in totals.values()
    ):
        others = f"{len(totals) - 1} more candidate{'s' if len(totals) > 2 else ''}"
        raise UserError(
            f"candidate {request.candidates[0].text!r} and {others} {after} all have the same score; {advice}"
        )
    tokens = list(score.prompt_token_logprobs)
    for candidate in {scored.token_ids: scored for _, scored in named}.values():
        tokens += candidate.token_logprobs
    if len(tokens) > 2 and max(tokens) - min(tokens) <= _ROUNDING * abs(
        max(tokens)
    ):  # NaN if all are -inf
        raise UserError(
            f"every token of prompt {request.prompt!r} and its candidates has the same score, {tokens[0]:.4g}; {advice}"
        )
