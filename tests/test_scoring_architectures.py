"""Engine equals plain, one forward a candidate, on tiny random models of many architectures, whatever is asked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.contract import Candidate, Request, Tokenisation
from fluent_mlama.scoring.selfcheck import METHODS
from tests.tiny import ARCHITECTURES, byte_level_tokenizer, plain_scores, tiny_scorer

WORDS = ("ab", "cd", " ab", "abc", "ba", " ba")
EXPECTED_PATH = {
    "bloom": "shared-prefix",
    "falcon-alibi": "shared-prefix",
    "mamba": "padded",
    "mamba2": "padded",
}
GAP = 5e-4

texts = st.text(alphabet="abcd ж", max_size=8)
candidates = st.lists(
    st.builds(Candidate, texts.filter(bool), st.sampled_from(["", ".", " d."])),
    min_size=1,
    max_size=6,
)
requests = st.lists(
    st.builds(lambda p, c: Request(p, tuple(c)), texts, candidates), min_size=1, max_size=4
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny matrices are fastest on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@cache
def scorer_for(architecture: str) -> CausalScorer:
    return tiny_scorer(architecture, byte_level_tokenizer(words=WORDS), token_budget=48)


def largest_gap(scorer: CausalScorer, asked: list[Request], tokenisation: Tokenisation) -> float:
    scores = scorer.score(asked, tokenisation=tokenisation)
    gap = 0.0
    for score, expected in zip(scores, plain_scores(scorer, asked, tokenisation), strict=True):
        for candidate, logprobs in zip(score.candidates, expected, strict=True):
            assert len(candidate.token_logprobs) == len(candidate.token_ids) == len(logprobs) > 0
            gap = max(
                gap, *(abs(a - b) for a, b in zip(candidate.token_logprobs, logprobs, strict=True))
            )
            gap = max(gap, abs(candidate.logprob - sum(logprobs)))
    return gap


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_chosen_path_is_the_fastest_that_is_right(architecture: str) -> None:
    description = scorer_for(architecture).describe()
    assert description.path == EXPECTED_PATH.get(architecture, "tree")
    assert description.self_check["float32"]["largest_gap"] < GAP
    assert description.self_check["float32"]["rank_changes"] == 0
    assert ("refused" in description.path_reason) == (architecture in EXPECTED_PATH)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(asked=requests, tokenisation=st.sampled_from(["separate", "joint"]))
def test_engine_equals_plain(
    architecture: str, asked: list[Request], tokenisation: Tokenisation
) -> None:
    assert largest_gap(scorer_for(architecture), asked, tokenisation) < GAP


@pytest.mark.parametrize("path", METHODS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(asked=requests, tokenisation=st.sampled_from(["separate", "joint"]))
def test_every_path_equals_plain(
    path: str, asked: list[Request], tokenisation: Tokenisation
) -> None:
    assert largest_gap(_llama_on(path), asked, tokenisation) < GAP


@cache
def _llama_on(path: str) -> CausalScorer:
    return tiny_scorer("llama", byte_level_tokenizer(words=WORDS), token_budget=48, path=path)


@pytest.mark.parametrize("architecture", ["gemma2", "cohere"])
def test_models_that_change_their_logits_keep_their_own_head(architecture: str) -> None:
    assert scorer_for(architecture).describe().self_check["head"] == "model's own"


def test_model_has_its_own_attention_back_after_scoring() -> None:
    scorer = scorer_for("llama")
    before = scorer.loaded.model.config._attn_implementation
    scorer.score([Request("ab", (Candidate("cd"),))], tokenisation="separate")
    assert scorer.loaded.model.config._attn_implementation == before == "sdpa"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bit_models_give_numbers_and_a_recorded_gap(dtype: torch.dtype) -> None:
    scorer = tiny_scorer("llama", byte_level_tokenizer(words=WORDS), dtype=dtype)
    check = scorer.describe().self_check
    assert check["float32_checked_on"] == "its first 2 of 2 layers"
    assert check["float32"]["largest_gap"] < GAP
    assert 0 <= check[str(dtype).removeprefix("torch.")]["largest_gap"] < 1.0
    asked = [Request("ab cd", (Candidate("a"), Candidate("abcdabcdabcd"), Candidate("ж")))]
    for score in scorer.score(asked, tokenisation="joint")[0].candidates:
        assert -1e3 < score.logprob < 0
