"""The causal engine on the embedded model: ten facts of three languages equal one forward a candidate, ranks included."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluent_mlama.files import open_source
from fluent_mlama.ranking.paper import paper_task
from fluent_mlama.records.benchmark import read_benchmark
from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.contract import Candidate, Request, Tokenisation
from tests.tiny import plain_scores

GAP, NEIGHBOURS = 5e-4, 1e-3
FACTS = (("es", "P36", 4), ("ru", "P19", 3), ("zh", "P103", 3))
RIVALS = 8


def facts(root: Path) -> list[Request]:
    """Each fact in its template, the correct forms and a few distractors."""
    source = open_source(root / "fixed_data" / "starter")
    asked = []
    for lang, relation, count in FACTS:
        task = paper_task(read_benchmark(source, lang, relation), ("template",), limit=count)
        asked += [
            Request(request.prompt, request.candidates[:RIVALS]) for request in task.requests()
        ]
    return asked


@pytest.mark.model
@pytest.mark.parametrize("tokenisation", ["separate", "joint"])
def test_ten_facts_equal_one_forward_a_candidate(
    smollm2: CausalScorer, root: Path, tokenisation: Tokenisation
) -> None:
    asked = facts(root)
    assert len(asked) == 10
    scores = smollm2.score(asked, tokenisation=tokenisation)
    for score, expected in zip(scores, plain_scores(smollm2, asked, tokenisation), strict=True):
        for candidate, logprobs in zip(score.candidates, expected, strict=True):
            assert candidate.token_logprobs == pytest.approx(logprobs, abs=GAP)
            assert candidate.logprob == pytest.approx(sum(logprobs), abs=GAP)
        totals = [sum(logprobs) for logprobs in expected]
        order = sorted(range(len(totals)), key=lambda i, score=score: -score.candidates[i].logprob)
        assert all(
            totals[a] > totals[b] - NEIGHBOURS for a, b in zip(order, order[1:], strict=False)
        )


@pytest.mark.model
def test_embedded_model_takes_the_fast_path(smollm2: CausalScorer) -> None:
    description = smollm2.describe()
    assert (
        description.path,
        description.self_check["head"],
        description.self_check["refused"],
    ) == ("tree", "by hand", {})
    assert description.self_check["float32"]["largest_gap"] < GAP
    (score,) = smollm2.score(
        [Request("La capital de Francia es ", (Candidate("París"),))], tokenisation="separate"
    )
    assert smollm2.tokens(score.candidates[0].token_ids) == ["Par", "ís"]
