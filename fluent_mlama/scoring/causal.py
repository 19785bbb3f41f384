"""The causal engine: many candidates of many prompts in one exact pass.

Planning (``tokens.py``) needs no model; a scoring method (``methods.py``), chosen at load by a check (``selfcheck.py``),
turns trees into edge log-probabilities; ``assemble`` turns those into scores.

**Planning.** Requests ▶ packs of trees, and edges ▶ scores: the part of scoring that needs no model.

Requests with equal prompts form one group, whose candidates share one tree (or several, where there
are many); groups fill packs up to the token budget in the order of their first request. All of it
is decided from the whole file before anything is scored, so that a resumed run computes the same
forwards as an undisturbed one. ``assemble`` goes the other way: from the edges of a group's trees
to the scores of its requests, and checks them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.checking import seen_gaps
from fluent_mlama.scoring.contract import (
    Arithmetic,
    CandidateScore,
    Plan,
    Request,
    RequestScore,
    ScorerDescription,
    Tokenisation,
    score_all,
)
from fluent_mlama.scoring.devices import keep_freed
from fluent_mlama.scoring.methods import Edges, Ids, Part, Runner, Tree, cut
from fluent_mlama.scoring.models import LoadedModel, load_model, versions
from fluent_mlama.scoring.network import Network, usable_positions
from fluent_mlama.scoring.remembered import memory_for
from fluent_mlama.scoring.selfcheck import METHODS, choose_method, plain_method
from fluent_mlama.scoring.tokens import (
    PromptTokeniser,
    RequestTokens,
    spellings,
    tokenizer_identity,
)

_ROUNDING = 1e-5
"""Largest positive value that counts as 0; relative difference below which tokens are equal."""
GROUP_LIMIT = 256
"""Requests in a group; more of them would make packs too coarse to resume from."""


@dataclass(frozen=True, slots=True)
class Group:
    """Requests (by number) with the same prompt ids; each part of their candidates is a tree."""

    numbers: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Nodes fed for the whole group."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, slots=True)
class PlanState:
    """The engine's side of a plan: tokens per request (None if unscorable), groups per pack."""

    tokens: tuple[RequestTokens | None, ...]
    packs: tuple[tuple[Group, ...], ...]


def make_plan(
    requests: Sequence[Request],
    tokenisation: Tokenisation,
    tokeniser: PromptTokeniser,
    *,
    token_budget: int,
    max_length: int | None,
    share_prompts: bool = True,
    rowless: frozenset[int] = frozenset(),
) -> Plan:
    """Tokenise, group and pack ``requests``.

    max_length: positions the model has, None if unlimited. rowless: tokens that the model has no
    embedding for. share_prompts=False scores equal prompts as often as they occur (for measuring
    what sharing brings).
    """
    unscorable: dict[int, str] = {}
    tokens: list[RequestTokens | None] = []
    members: dict[tuple[Ids, int], list[int]] = {}
    seen: dict[Ids, int] = {}
    for number, found in enumerate(tokeniser.tokenise(requests, tokenisation)):
        reason = _why_unscorable(requests[number], found, tokeniser, max_length, rowless)
        tokens.append(None if reason else found)
        if reason:
            unscorable[number] = reason
            continue
        # The n-th request with this prompt goes into its prompt's group n // GROUP_LIMIT.
        count = seen[found.prompt] = seen.get(found.prompt, -1) + 1
        members.setdefault(
            (found.prompt, count // GROUP_LIMIT if share_prompts else count), []
        ).append(number)
    groups = [_group(prompt, numbers, tokens) for (prompt, _), numbers in members.items()]
    packs = _fill(groups, token_budget)
    numbers = tuple(
        tuple(sorted(number for group in pack for number in group.numbers)) for pack in packs
    )
    return Plan(tuple(requests), tokenisation, numbers, unscorable, PlanState(tuple(tokens), packs))


def _group(prompt: Ids, numbers: list[int], tokens: Sequence[RequestTokens | None]) -> Group:
    sequences = {
        c.sequence
        for number in numbers
        if (found := tokens[number]) is not None
        for c in found.candidates
    }
    return Group(tuple(numbers), tuple(cut(prompt, sequences)))


def _fill(groups: Sequence[Group], token_budget: int) -> tuple[tuple[Group, ...], ...]:
    """Next fit: order is kept, a group that alone exceeds the budget is a pack of its own."""
    packs: list[list[Group]] = []
    used = 0
    for group in groups:
        if not packs or used + group.size > token_budget:
            packs.append([])
            used = 0
        packs[-1].append(group)
        used += group.size
    return tuple(tuple(pack) for pack in packs)


def _why_unscorable(
    request: Request,
    found: RequestTokens,
    tokeniser: PromptTokeniser,
    max_length: int | None,
    rowless: frozenset[int],
) -> str | None:
    """Why a request cannot be scored, or None."""
    if not found.prompt:
        return f"prompt {request.prompt!r} has no tokens (tokenizer {tokeniser.tokenizer.name_or_path} puts no BOS in front)"
    longest = len(found.prompt)
    for candidate, tokens in zip(request.candidates, found.candidates, strict=True):
        if tokens.start == len(tokens.sequence) - tokens.tail_tokens:
            return f"candidate {candidate.text!r} has no tokens after prompt {request.prompt!r}"
        if tokens.start == 0:
            return f"candidate {candidate.text!r} merges with the whole prompt {request.prompt!r}, and no token stands before them"
        longest = max(longest, len(tokens.sequence))
    if max_length is not None and longest > max_length:
        return f"prompt {request.prompt[:60]!r} and its longest candidate have {longest} tokens, the model has {max_length} positions"
    # A text may spell out a special token that the tokenizer knows and the model does not.
    texts = (found.prompt, *(tokens.sequence for tokens in found.candidates)) if rowless else ()
    absent = rowless.intersection(chain.from_iterable(texts))
    names = ", ".join(tokeniser.tokenizer.convert_ids_to_tokens(sorted(absent)))
    return f"the model has no embedding for the token {names}" if absent else None


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
    # A sequence's tree and its number there.
    where = {
        sequence: (t, s)
        for t, tree in enumerate(trees)
        for s, sequence in enumerate(tree.sequences)
    }
    prompt_logprobs = tuple(edges[0][trees[0].paths[0]].tolist())
    prompt_total = add_up(prompt_logprobs, arithmetic)
    # By identity: equal candidates after the same prompt have their tokens in one object.
    known: dict[int, CandidateScore] = {}
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
    """Sum in the run's arithmetic: float64, or a running fp16 sum in token order; 0.0 if empty."""
    if arithmetic == "float32":
        return float(sum(logprobs, 0.0))
    total = np.float16(0.0)
    with np.errstate(over="ignore"):  # beyond -65504 the published sum is -inf as well
        for value in logprobs:
            total = np.float16(total + np.float16(value))
    return float(total)


def check(request: Request, score: RequestScore, *, exact: bool = True) -> None:
    """``UserError`` for scores that are not log-probabilities, or do not tell any texts apart.

    NaN and positive values; one value for every token, in whatever context; one score for all
    candidates. Only where scores are ``exact`` (float32 throughout) is it an error for two
    candidates: numbers of 16 bit meet by chance. All ``-inf`` is not an error: softmax in fp16
    causes it, and the published dumps hold such rows.
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
    # The difference is NaN, hence no error, if all are -inf.
    if len(tokens) > 2 and max(tokens) - min(tokens) <= _ROUNDING * abs(max(tokens)):
        raise UserError(
            f"every token of prompt {request.prompt!r} and its candidates has the same score, {tokens[0]:.4g}; {advice}"
        )


CPU_TOKEN_BUDGET = 3072
GPU_TOKEN_BUDGET = 8192


class CausalScorer:
    """Implements ``fluent_mlama.scoring.contract.Scorer`` for a loaded causal model.

    path: ``auto`` or one of ``selfcheck.METHODS``. token_budget: fed tokens a forward (and pack) may have. add_bos: None for
    the rule of ``tokens.py``. packed: put the weights in oneDNN's order where that is possible. share_prompts: score
    equal prompts once. remember: take the verdict of an earlier check of the same model, and keep this one's.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        path: str = "auto",
        token_budget: int | None = None,
        add_bos: bool | None = None,
        packed: bool = True,
        share_prompts: bool = True,
        remember: bool = False,
    ) -> None:
        self.loaded = loaded
        self.tokeniser = PromptTokeniser(loaded.tokenizer, add_bos)
        self.token_budget = token_budget or (
            CPU_TOKEN_BUDGET if loaded.device.type == "cpu" else GPU_TOKEN_BUDGET
        )
        self.share_prompts = share_prompts
        self.versions = versions()
        self.max_length = usable_positions(loaded.model)
        self.tokenizer_identity = tokenizer_identity(loaded.tokenizer)
        network = Network(loaded.model)
        options = {
            "method": path,
            "token_budget": self.token_budget,
            "positions": self.max_length,
            "packed": packed,
            "add_bos": add_bos,
        }
        self.choice = choose_method(
            network,
            self.tokeniser,
            path,
            self.token_budget,
            self.max_length,
            packed=packed,
            memory=memory_for(loaded, options) if remember else None,
        )
        if loaded.device.type == "cpu":
            keep_freed()
        self.runner = Runner(
            self.choice.method, plain_method(network), self.token_budget, self.choice.reach.covers
        )

    def describe(self, tokenisation: Tokenisation = "separate") -> ScorerDescription:
        """What this scorer is; ``bos`` is told for the given tokenisation.

        self_check also counts forwards that were halved for memory and sequences beyond the method's reach, so far.
        """
        return ScorerDescription(
            model=self.loaded.name,
            revision=self.loaded.revision,
            dtype=self.loaded.dtype,
            device=str(self.loaded.device),
            path=self.choice.method.name,
            path_reason=self.choice.reason,
            bos=self.tokeniser.prefix_name(tokenisation),
            self_check={
                **self.choice.record,
                "token_budget": self.token_budget,
                "halved_for_memory": self.runner.splits,
                "reach": self.choice.reach.length,
                "beyond_reach": self.runner.beyond,
            },
            versions=self.versions,
            tokenizer=self.tokenizer_identity,
        )

    def plan(self, requests: Sequence[Request], tokenisation: Tokenisation) -> Plan:
        """Tokenise all requests in one batch and cut them into packs."""
        return make_plan(
            requests,
            tokenisation,
            self.tokeniser,
            token_budget=self.token_budget,
            max_length=self.max_length,
            share_prompts=self.share_prompts,
            rowless=self.loaded.rowless,
        )

    def score_pack(
        self, plan: Plan, number: int, arithmetic: Arithmetic = "float32"
    ) -> dict[int, RequestScore]:
        """Score the requests of pack ``number``; natural logs. Scores that cannot be meant are UserErrors (``planning.check``)."""
        state: PlanState = plan.state
        groups = state.packs[number]
        trees = [
            [tree for part in group.parts for tree in self.runner.trees(part.sequences)]
            for group in groups
        ]
        edges = iter(self.runner.run([tree for group in trees for tree in group], arithmetic))
        exact = arithmetic == "float32" and self.loaded.dtype == "float32"
        scores: dict[int, RequestScore] = {}
        for group, own in zip(groups, trees, strict=True):
            scores.update(
                assemble(plan, group, own, list(islice(edges, len(own))), arithmetic, exact=exact)
            )
        return scores

    def score_packs(
        self, plan: Plan, numbers: Iterable[int], arithmetic: Arithmetic = "float32"
    ) -> Iterator[tuple[int, dict[int, RequestScore]]]:
        """One pack after the other."""
        for number in numbers:
            yield number, self.score_pack(plan, number, arithmetic)

    def score(
        self,
        requests: Sequence[Request],
        *,
        tokenisation: Tokenisation,
        arithmetic: Arithmetic = "float32",
        on_pack: Callable[[int, int], None] | None = None,
    ) -> list[RequestScore]:
        """Plan and score everything; ``on_pack(done, total)`` after each pack. An unscorable request is a UserError."""
        return score_all(self, requests, tokenisation, arithmetic, on_pack)

    def tokens(self, token_ids: Sequence[int]) -> list[str]:
        """The tokens as text, for showing to a person."""
        return spellings(self.loaded.tokenizer, token_ids)


def load_scorer(
    model: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    device_map: str | None = None,
    trust_remote_code: bool = False,
    quantization: str | None = None,
    path: str = "auto",
    token_budget: int | None = None,
    add_bos: bool | None = None,
) -> CausalScorer:
    """Load a causal model (see ``models.load_model``) and choose, by a check, the fastest scoring method that is right for it."""
    if path != "auto" and path not in METHODS:
        raise UserError(f"--path {path}: choose auto, {', '.join(METHODS)}")
    loaded = load_model(
        model,
        kind="causal",
        device=device,
        dtype=dtype,
        revision=revision,
        device_map=device_map,
        trust_remote_code=trust_remote_code,
        quantization=quantization,
    )
    # what is spread, quantised or comes with its own code is not known by the content of its files alone
    remember = device_map is None and quantization is None and not trust_remote_code
    scorer = CausalScorer(
        loaded, path=path, token_budget=token_budget, add_bos=add_bos, remember=remember
    )
    note(
        f"scoring method: {scorer.choice.method.name} ({scorer.choice.reason}){seen_gaps(scorer.choice.record)}"
    )
    return scorer
