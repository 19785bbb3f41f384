"""The causal engine: many candidates of many prompts in one exact pass.

Planning (``planning.py``, ``tokens.py``, ``trie.py``) needs no model; a scoring method (``methods.py``), chosen at load by a check
(``selfcheck.py``), turns trees into edge log-probabilities; ``planning.assemble`` turns those into scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.checking import seen_gaps
from fluent_mlama.scoring.contract import (
    Arithmetic,
    Plan,
    Request,
    RequestScore,
    ScorerDescription,
    Tokenisation,
    score_all,
)
from fluent_mlama.scoring.devices import keep_freed
from fluent_mlama.scoring.models import LoadedModel, load_model, versions
from fluent_mlama.scoring.network import Network, usable_positions
from fluent_mlama.scoring.planning import PlanState, assemble, make_plan
from fluent_mlama.scoring.remembered import memory_for
from fluent_mlama.scoring.running import Runner
from fluent_mlama.scoring.selfcheck import METHODS, choose_method, plain_method
from fluent_mlama.scoring.text_tokens import spellings, tokenizer_identity
from fluent_mlama.scoring.tokens import PromptTokeniser

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
            versions=versions(),
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
