"""The causal engine on the embedded model: equal to one forward a candidate, in both tokenisations."""

from __future__ import annotations

import pytest
import torch

from fluent.scoring.causal import CausalScorer
from fluent.scoring.contract import Candidate, Request, Tokenisation

REQUESTS = (
    Request("La capital de Francia es ", tuple(map(Candidate, ("París", "Roma", "Parísino", "San José de Costa Rica", "Madrid")))),
    Request("Столица России — ", tuple(map(Candidate, ("Москва", "Москвы", "Рим")))),
    Request("La capital de Francia es ", tuple(map(Candidate, ("Lisboa", "París")))),
    Request("加拿大的官方语言是", (Candidate("法语", "。"), Candidate("英语", "。"))),
)


@pytest.mark.model
@pytest.mark.parametrize("tokenisation", ["separate", "joint"])
def test_scores_equal_one_forward_a_candidate(smollm2: CausalScorer, tokenisation: Tokenisation) -> None:
    plan = smollm2.plan(REQUESTS, tokenisation)
    scores = smollm2.score(REQUESTS, tokenisation=tokenisation)
    for tokens, score in zip(plan.state.tokens, scores, strict=True):
        for candidate, scored in zip(tokens.candidates, score.candidates, strict=True):
            ids = candidate.sequence
            with torch.inference_mode():
                logprobs = smollm2.loaded.model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
            expected = [logprobs[i - 1, ids[i]].item() for i in range(candidate.start, len(ids))]
            assert scored.token_logprobs == pytest.approx(expected, abs=5e-4)
            assert scored.logprob == pytest.approx(sum(expected), abs=5e-4)
