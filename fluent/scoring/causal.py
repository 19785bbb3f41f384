"""The causal engine: many candidates of many prompts in one exact pass.

Planning (``planning.py``, ``tokens.py``, ``trie.py``) needs no model; a path (``paths.py``) turns trees into edge
log-probabilities; here scores are put together from edges, checked, and handed out through the contract.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import metadata

import numpy as np
import torch

from fluent.console import UserError
from fluent.scoring.contract import Arithmetic, CandidateScore, Plan, Request, RequestScore, ScorerDescription, Tokenisation
from fluent.scoring.models import LoadedModel, load_model
from fluent.scoring.network import Network
from fluent.scoring.paths import Edges, PaddedPath, Path
from fluent.scoring.planning import Group, PlanState, make_plan
from fluent.scoring.tokens import PromptTokeniser, RequestTokens
from fluent.scoring.trie import Tree, build_tree

CPU_TOKEN_BUDGET = 2048
GPU_TOKEN_BUDGET = 8192


class CausalScorer:
    """Implements ``fluent.scoring.contract.Scorer`` for a loaded causal model."""

    def __init__(self, loaded: LoadedModel, *, path: str = "auto", token_budget: int | None = None, add_bos: bool | None = None) -> None:
        self.loaded = loaded
        self.tokeniser = PromptTokeniser(loaded.tokenizer, add_bos)
        self.token_budget = token_budget or (CPU_TOKEN_BUDGET if loaded.device.type == "cpu" else GPU_TOKEN_BUDGET)
        self.network = Network(loaded.model)
        self.max_length: int | None = getattr(loaded.model.config, "max_position_embeddings", None)
        self.path: Path = PaddedPath(self.network, self.token_budget, loaded.tokenizer.pad_token_id or 0)
        self.path_reason = "chosen"

    def describe(self, tokenisation: Tokenisation = "separate") -> ScorerDescription:
        """What this scorer is; ``bos`` is told for the given tokenisation."""
        return ScorerDescription(
            model=self.loaded.name,
            revision=self.loaded.revision,
            dtype=self.loaded.dtype,
            device=str(self.loaded.device),
            path=self.path.name,
            path_reason=self.path_reason,
            bos=self.tokeniser.bos_in(tokenisation),
            self_check={"token_budget": self.token_budget},
            versions={name: metadata.version(name) for name in ("torch", "transformers", "tokenizers")},
        )

    def plan(self, requests: Sequence[Request], tokenisation: Tokenisation) -> Plan:
        """Tokenise all requests in one batch and cut them into packs."""
        return make_plan(requests, tokenisation, self.tokeniser, token_budget=self.token_budget, max_length=self.max_length)

    def score_pack(self, plan: Plan, number: int, arithmetic: Arithmetic = "float32") -> dict[int, RequestScore]:
        """Score the requests of pack ``number``; natural logs. NaN, all-equal and all-zero scores are UserErrors."""
        state: PlanState = plan.state
        groups = state.packs[number]
        trees = [build_tree(part.sequences) for group in groups for part in group.parts]
        with torch.inference_mode():
            edges = self.path.run(trees, arithmetic)
        scores: dict[int, RequestScore] = {}
        first = 0
        for group in groups:
            last = first + len(group.parts)
            scores.update(assemble(plan, group, trees[first:last], edges[first:last], arithmetic))
            first = last
        return scores

    def score(
        self,
        requests: Sequence[Request],
        *,
        tokenisation: Tokenisation,
        arithmetic: Arithmetic = "float32",
        on_pack: Callable[[int, int], None] | None = None,
    ) -> list[RequestScore]:
        """Plan and score everything; ``on_pack(done, total)`` after each pack. An unscorable request is a UserError."""
        plan = self.plan(requests, tokenisation)
        for number, reason in plan.unscorable.items():
            raise UserError(f"request {number + 1} cannot be scored: {reason}")
        scores: dict[int, RequestScore] = {}
        for number in range(len(plan.packs)):
            scores.update(self.score_pack(plan, number, arithmetic))
            if on_pack is not None:
                on_pack(number + 1, len(plan.packs))
        return [scores[number] for number in range(len(requests))]

    def tokens(self, token_ids: Sequence[int]) -> list[str]:
        """The tokens' own spellings, for showing to a person."""
        return [str(token) for token in self.loaded.tokenizer.convert_ids_to_tokens(list(token_ids))]


def load_scorer(
    model: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    device_map: str | None = None,
    trust_remote_code: bool = False,
    quantise: str | None = None,
    path: str = "auto",
    token_budget: int | None = None,
    add_bos: bool | None = None,
) -> CausalScorer:
    """Load a causal model (see ``models.load_model``) and choose, by a check, the fastest path that is right for it."""
    loaded = load_model(
        model,
        kind="causal",
        device=device,
        dtype=dtype,
        revision=revision,
        device_map=device_map,
        trust_remote_code=trust_remote_code,
        quantise=quantise,
    )
    return CausalScorer(loaded, path=path, token_budget=token_budget, add_bos=add_bos)


def assemble(plan: Plan, group: Group, trees: Sequence[Tree], edges: Sequence[Edges], arithmetic: Arithmetic) -> dict[int, RequestScore]:
    """Scores of a group's requests from the edges of its trees."""
    where = {sequence: (t, s) for t, tree in enumerate(trees) for s, sequence in enumerate(tree.sequences)}
    scores = {}
    for number in group.numbers:
        tokens: RequestTokens = plan.state.tokens[number]
        prompt_logprobs = tuple(edges[0][trees[0].paths[0]].tolist())
        candidates = []
        for candidate in tokens.candidates:
            t, s = where[candidate.sequence]
            logprobs = tuple(edges[t][trees[t].paths[s][candidate.start - 1 :]].tolist())
            total = add_up(logprobs, arithmetic)
            candidates.append(CandidateScore(candidate.scored, logprobs, total, candidate.tail_tokens, candidate.straddles))
        score = RequestScore(tokens.prompt, prompt_logprobs, add_up(prompt_logprobs, arithmetic), tuple(candidates))
        check(plan.requests[number], score)
        scores[number] = score
    return scores


def add_up(logprobs: Sequence[float], arithmetic: Arithmetic) -> float:
    """Sum in the run's arithmetic: float64, or a running fp16 sum in token order. An empty sum is 0.0."""
    if arithmetic == "float32":
        return float(sum(logprobs, 0.0))
    total = np.float16(0.0)
    for value in logprobs:
        total = np.float16(total + np.float16(value))
    return float(total)


def check(request: Request, score: RequestScore) -> None:
    """Raise a UserError where scores cannot be meant: NaN, all zero, or all of three or more candidates equal."""
    advice = "try --dtype float32, and run the model on a plain prompt to see whether its files are whole"
    for candidate, scored in zip(request.candidates, score.candidates, strict=True):
        if math.isnan(scored.logprob):
            raise UserError(f"model gives NaN for candidate {candidate.text!r} after prompt {request.prompt!r}; {advice}")
    if math.isnan(score.prompt_logprob):
        raise UserError(f"model gives NaN for prompt {request.prompt!r}; {advice}")
    totals = {scored.token_ids: scored.logprob for scored in score.candidates}
    if totals and all(total == 0.0 for total in totals.values()):
        raise UserError(f"all scores after prompt {request.prompt!r} are 0.0, candidate {request.candidates[0].text!r} first; {advice}")
    if len(totals) > 2 and len(set(totals.values())) == 1 and not math.isinf(next(iter(totals.values()))):
        named = f"{request.candidates[0].text!r} and {len(totals) - 1} more candidates"
        raise UserError(f"{named} after prompt {request.prompt!r} all have the same score; {advice}")
