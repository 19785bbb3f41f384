"""From edges back to requests: each candidate's token log-probabilities, sums, and the checks on them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fluent.console import UserError
from fluent.scoring.contract import Arithmetic, CandidateScore, Plan, Request, RequestScore
from fluent.scoring.paths import Edges
from fluent.scoring.planning import Group
from fluent.scoring.tokens import RequestTokens
from fluent.scoring.trie import Tree


def assemble(plan: Plan, group: Group, trees: Sequence[Tree], edges: Sequence[Edges], arithmetic: Arithmetic) -> dict[int, RequestScore]:
    """Scores of a group's requests from the edges of its trees."""
    where = {sequence: (t, s) for t, tree in enumerate(trees) for s, sequence in enumerate(tree.sequences)}
    prompt_logprobs = tuple(edges[0][trees[0].paths[0]].tolist())
    prompt_total = add_up(prompt_logprobs, arithmetic)
    known: dict[int, CandidateScore] = {}  # by identity: the tokens of equal candidates are one object
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
                score = CandidateScore(candidate.scored, logprobs, total, candidate.tail_tokens, candidate.straddles)
                known[id(candidate)] = score
            candidates.append(score)
        scores[number] = RequestScore(tokens.prompt, prompt_logprobs, prompt_total, tuple(candidates))
        check(plan.requests[number], scores[number])
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


def check(request: Request, score: RequestScore) -> None:
    """Raise a UserError where scores cannot be meant: NaN, all zero, or all of three or more candidates equal.

    All ``-inf`` is no error: softmax in fp16 brings it about, and the published dumps hold such rows.
    """
    advice = "try --dtype float32, and look whether the model's files are whole"
    if math.isnan(score.prompt_logprob):
        raise UserError(f"model gives NaN for prompt {request.prompt!r}; {advice}")
    for candidate, scored in zip(request.candidates, score.candidates, strict=True):
        if math.isnan(scored.logprob):
            raise UserError(f"model gives NaN for candidate {candidate.text!r} after prompt {request.prompt!r}; {advice}")
    totals = {scored.token_ids: scored.logprob for scored in score.candidates}
    values = set(totals.values())
    if values == {0.0}:
        raise UserError(f"all scores after prompt {request.prompt!r} are 0.0, candidate {request.candidates[0].text!r} first; {advice}")
    if len(totals) > 2 and len(values) == 1 and values != {-math.inf}:
        named = f"{request.candidates[0].text!r} and {len(totals) - 1} more candidates"
        raise UserError(f"{named} after prompt {request.prompt!r} all have the same score; {advice}")
