"""Small inputs that other scorers got wrong, and the right behaviour; each trial was a complaint about a peer."""

from __future__ import annotations

import itertools
import math
import os
import re
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fluent_mlama.console import UserError
from fluent_mlama.scoring import methods
from fluent_mlama.scoring import network as network_module
from fluent_mlama.scoring.causal import CausalScorer, add_up, check, make_plan
from fluent_mlama.scoring.contract import Candidate, CandidateScore, Request, RequestScore
from fluent_mlama.scoring.methods import NODE_LIMIT, build_tree, cut
from fluent_mlama.scoring.models import LoadedModel
from fluent_mlama.scoring.network import CACHED_KERNELS, give_back, mapped_ranges
from fluent_mlama.scoring.selfcheck import METHODS
from fluent_mlama.scoring.tokens import PromptTokeniser
from tests.tiny import ARCHITECTURES, byte_level_tokenizer, plain_scores, tiny_model, tiny_scorer

GAP = 5e-4


def request(prompt: str, *candidates: str) -> Request:
    return Request(prompt, tuple(map(Candidate, candidates)))


def test_piece_across_the_boundary_is_scored_and_flagged() -> None:
    scorer = tiny_scorer("gpt2", byte_level_tokenizer(words=("Answer", " world")))
    asked = [request("Ans", "wer"), request("hello wor", "ld"), request("Ans", "x")]
    merged, world, apart = scorer.score(asked, tokenisation="joint")
    assert scorer.tokens(merged.candidates[0].token_ids) == ["Answer"]
    assert scorer.tokens(world.candidates[0].token_ids) == [" world"]
    assert [score.candidates[0].straddles for score in (merged, world, apart)] == [
        True,
        True,
        False,
    ]
    for score, expected in zip(
        (merged, world, apart), plain_scores(scorer, asked, "joint"), strict=True
    ):
        assert score.candidates[0].token_logprobs == pytest.approx(expected[0], abs=GAP)
    separate = scorer.score(asked, tokenisation="separate")
    assert [score.candidates[0].straddles for score in separate] == [False] * 3
    assert scorer.tokens(separate[0].candidates[0].token_ids) == ["w", "e", "r"]
    assert scorer.tokens(scorer.tokeniser.tokenizer("é")["input_ids"][-2:]) == [
        "<0xC3>",
        "<0xA9>(é)",
    ]


def test_empty_prompt_needs_bos() -> None:
    asked = [request("", "Paris", "Rome"), request("a", "b", "c")]
    with_bos = tiny_scorer("llama", byte_level_tokenizer(bos=True))
    for tokenisation in ("separate", "joint"):
        score = with_bos.score(asked, tokenisation=tokenisation)[0]
        assert [len(candidate.token_logprobs) for candidate in score.candidates] == [5, 4]
        assert (score.prompt_token_ids, score.prompt_token_logprobs, score.prompt_logprob) == (
            (0,),
            (),
            0.0,
        )
    without = tiny_scorer("llama", byte_level_tokenizer(bos=False))
    plan = without.plan(asked, "separate")
    assert "puts no BOS in front" in plan.unscorable[0]
    assert [number for pack in plan.packs for number in pack] == [1]
    with pytest.raises(UserError, match="request 1 cannot be scored"):
        without.score(asked, tokenisation="joint")


def test_candidate_of_no_tokens_is_unscorable() -> None:
    scorer = tiny_scorer("llama", byte_level_tokenizer())
    plan = scorer.plan([request("a", "b", ""), request("a", "b")], "separate")
    assert set(plan.unscorable) == {0} and "no tokens" in plan.unscorable[0]


def test_too_long_a_prompt_is_unscorable() -> None:
    plan = tiny_scorer("llama", byte_level_tokenizer()).plan([request("a" * 200, "b")], "separate")
    assert "the model has 128 positions" in plan.unscorable[0]


@pytest.mark.parametrize("positions", [2, 3, 8, 24])
def test_a_model_of_few_positions_is_checked_with_what_fits(
    positions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        ARCHITECTURES, "gpt2", ("GPT2", {**ARCHITECTURES["gpt2"][1], "n_positions": positions})
    )
    scorer = tiny_scorer("gpt2", byte_level_tokenizer(bos=False))
    assert scorer.describe().path == "tree"
    assert (
        f"the model has {positions} positions"
        in scorer.plan([request("a" * 30, "b")], "separate").unscorable[0]
    )


FIFTY_TWO = [f"{'abcdefgh'[n % 8]}{'xyz' * (n % 4)}{n}" for n in range(52)]


@pytest.mark.parametrize("path", METHODS)
def test_path_budget_and_order_change_nothing(path: str) -> None:
    base = tiny_scorer("llama", byte_level_tokenizer(words=("ab", "xyz")))
    expected = {
        c: s.logprob
        for c, s in zip(
            FIFTY_TWO,
            base.score([request("a prompt", *FIFTY_TWO)], tokenisation="joint")[0].candidates,
            strict=True,
        )
    }
    for budget in (1, 60, 4096):
        scorer = tiny_scorer(
            "llama", byte_level_tokenizer(words=("ab", "xyz")), path=path, token_budget=budget
        )
        turned = FIFTY_TWO[::-1]
        neighbours = [request("a prompt", *turned), request("a prompt b", "c"), request("", "b")]
        scores = scorer.score(neighbours, tokenisation="joint")[0].candidates
        assert [score.logprob for score in scores] == pytest.approx(
            [expected[text] for text in turned], abs=GAP
        )


def test_bos_stands_exactly_once() -> None:
    tokenizer = byte_level_tokenizer(bos=True)
    for text, add_bos, how in itertools.product(
        ("ab", "<s>ab", "<s>"), (None, True), ("joint", "separate")
    ):
        tokens = PromptTokeniser(tokenizer, add_bos).tokenise([request(text, "c")], how)[0]
        assert tokens.prompt.count(0) == 1 == tokens.candidates[0].sequence.count(0)
    never = PromptTokeniser(tokenizer, False)
    assert never.prefix_name("separate") == "0"
    assert never.tokenise([request("ab", "c")], "separate")[0].prompt.count(0) == 0
    silent = byte_level_tokenizer(bos=True)
    silent._tokenizer.post_processor = byte_level_tokenizer(bos=False)._tokenizer.post_processor
    rule = PromptTokeniser(silent)
    assert (rule.prefix_name("separate"), rule.prefix_name("joint")) == ("0", "1")
    with pytest.raises(UserError, match="no BOS token"):
        PromptTokeniser(byte_level_tokenizer(bos=False), True)


def scored(*logprobs: float | tuple[float, ...], prompt: tuple[float, ...] = ()) -> RequestScore:
    """Scores of candidates with these log-probabilities, a number for each token."""
    values = [value if isinstance(value, tuple) else (value,) for value in logprobs]
    ids = [tuple(range(10 * i, 10 * i + len(value))) for i, value in enumerate(values)]
    return RequestScore(
        (0,),
        prompt,
        sum(prompt),
        tuple(CandidateScore(i, v, sum(v)) for i, v in zip(ids, values, strict=True)),
    )


@pytest.mark.parametrize(
    ("score", "trouble"),
    [
        (scored(-1.0, math.nan, -2.0), "NaN for candidate 'y' after prompt 'a prompt'"),
        (scored(-1.0, (-2.0, math.nan), -2.0), "NaN for candidate 'y' after prompt 'a prompt'"),
        (scored(-1.0, prompt=(math.nan,)), "NaN for prompt 'a prompt'"),
        (
            scored(-1.0, 0.25, -2.0),
            "0.25 as the log-probability of candidate 'y' after prompt 'a prompt'",
        ),
        (scored(-1.0, math.inf, -2.0), "inf as the log-probability of candidate 'y'"),
        (scored((-3.0, 0.5), -2.0), "0.5 as the log-probability of candidate 'x'"),
        (scored(-1.0, -2.0, prompt=(3.0,)), "3 as the log-probability of prompt 'a prompt'"),
        (
            scored(-1.0, -1.0, -1.0),
            "'x' and 2 more candidates after prompt 'a prompt' all have the same score",
        ),
        (
            scored(-1.0, -1.0),
            "'x' and 1 more candidate after prompt 'a prompt' all have the same score",
        ),
        (
            scored(0.0, 0.0),
            "'x' and 1 more candidate after prompt 'a prompt' all have the same score",
        ),
        (
            scored((-2.5, -2.5), -2.5, prompt=(-2.5,)),
            "every token of prompt 'a prompt' and its candidates has the same score, -2.5",
        ),
        (scored((-2.5, -2.5, -2.5000001)), "every token of prompt 'a prompt'"),
        (scored((0.0, 0.0, 0.0)), "every token of prompt 'a prompt'"),
    ],
)
def test_scores_that_cannot_be_log_probabilities_of_a_model_are_errors(
    score: RequestScore, trouble: str
) -> None:
    with pytest.raises(UserError, match=re.escape(trouble)):
        check(request("a prompt", *"xyz"[: len(score.candidates)]), score)


@pytest.mark.parametrize(
    ("score", "exact"),
    [
        (scored(-1.0, -2.0, -2.0), True),
        (scored(-math.inf, -math.inf, -math.inf), True),
        (scored((-math.inf, -1.0), (-math.inf, -1.0)), True),
        (scored(-1.0), True),
        (scored(0.0), True),  # nothing else can follow, says a model that was planted
        (scored(1e-6, -20.0), True),  # rounding
        (scored(-1.0, -1.0), False),  # two logits of 16 bit can be equal
        (scored((-1.0, -1.0), prompt=(-3.0,)), True),
        (scored(), True),
    ],
)
def test_scores_that_a_model_can_give_are_none(score: RequestScore, exact: bool) -> None:
    check(request("a prompt", *"xyz"[: len(score.candidates)]), score, exact=exact)


def test_candidates_of_the_same_tokens_may_have_the_same_score() -> None:
    check(
        request("a prompt", "x", "x", "x"),
        RequestScore((0,), (), 0.0, (CandidateScore((1,), (-1.0,), -1.0),) * 3),
    )


def test_a_model_that_gives_every_token_the_same_probability_is_an_error() -> None:
    tokenizer = byte_level_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.lm_head.weight.data.zero_()
    scorer = CausalScorer(
        LoadedModel("constant", "random", model, tokenizer, torch.device("cpu"), "float32")
    )
    with pytest.raises(
        UserError, match="every token of prompt 'a prompt' and its candidates has the same score"
    ):
        scorer.score([request("a prompt", "x", "yz")], tokenisation="separate")


def test_model_that_gives_nan_is_refused_at_load() -> None:
    tokenizer = byte_level_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.model.norm.weight.data.fill_(math.nan)
    with pytest.raises(UserError, match="NaN"):
        CausalScorer(
            LoadedModel("broken", "random", model, tokenizer, torch.device("cpu"), "float32")
        )


def test_padding_side_of_the_tokenizer_changes_nothing() -> None:
    results = []
    for side in ("left", "right"):
        tokenizer = byte_level_tokenizer()
        tokenizer.padding_side = side
        scorer = tiny_scorer("gpt2", tokenizer, path="padded")
        results.append(
            [
                s.logprob
                for s in scorer.score([request("ab", "c", "cdefg")], tokenisation="separate")[
                    0
                ].candidates
            ]
        )
    assert results[0] == results[1]


def test_prompts_that_share_their_beginning_do_not_disturb_each_other() -> None:
    scorer = tiny_scorer("llama", byte_level_tokenizer(), path="shared-prefix")
    first, second = request("abcdefghijklmn", "x", "yz"), request("abcdefghijklmo", "x", "yz")
    together = scorer.score([first, second, first], tokenisation="separate")
    fresh = [scorer.score([asked], tokenisation="separate")[0] for asked in (first, second)]
    for mine, alone in zip(together, (*fresh, fresh[0]), strict=True):
        assert [c.logprob for c in mine.candidates] == pytest.approx(
            [c.logprob for c in alone.candidates], abs=GAP
        )


def test_logits_never_exist_for_more_rows_than_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    original = network_module._log_probabilities
    monkeypatch.setattr(
        network_module,
        "_log_probabilities",
        lambda logits, *more: seen.append(len(logits)) or original(logits, *more),
    )
    scorer = tiny_scorer("llama", byte_level_tokenizer())
    monkeypatch.setattr(network_module, "HEAD_ROWS", 16)
    monkeypatch.setattr(network_module, "SLICED_ROWS", 16)
    seen.clear()
    asked = request("a prompt of some length", *FIFTY_TWO)
    scorer.score([asked], tokenisation="separate")
    assert max(seen) == 16 and sum(seen) == scorer.plan([asked], "separate").state.packs[0][0].size
    assert sum(seen) < sum(len(asked.prompt) + len(text) for text in FIFTY_TWO) / 10


def test_large_candidate_sets_are_cut_and_score_the_same() -> None:
    prompt = tuple(range(300, 320))
    candidates = [(*prompt, n % 7, n, n + 1, n % 5) for n in range(600)]
    parts = cut(prompt, candidates)
    assert len(parts) == 3 and max(part.size for part in parts) <= NODE_LIMIT
    assert sorted(s for part in parts for s in part.sequences[1:]) == sorted(set(candidates))
    assert [build_tree(part.sequences).size for part in parts] == [part.size for part in parts]


def test_plan_is_made_of_all_requests_and_equal_prompts_share_a_tree() -> None:
    scorer = tiny_scorer("llama", byte_level_tokenizer(), token_budget=40)
    asked = [request(f"prompt {n % 3}", "x", f"y{n}") for n in range(9)]
    plan = scorer.plan(asked, "separate")
    assert sorted(number for pack in plan.packs for number in pack) == list(range(9))
    assert sum(len(pack) for pack in plan.state.packs) == 3
    assert scorer.plan(asked, "separate").packs == plan.packs
    apart = make_plan(
        asked, "separate", scorer.tokeniser, token_budget=40, max_length=None, share_prompts=False
    )
    assert sum(len(pack) for pack in apart.state.packs) == 9
    by_pack = {
        number: score
        for n in range(len(plan.packs))
        for number, score in scorer.score_pack(plan, n).items()
    }
    assert [by_pack[n] for n in range(9)] == scorer.score(asked, tokenisation="separate")


def test_out_of_memory_halves_the_forward_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = tiny_scorer("llama", byte_level_tokenizer())
    asked = [request("a prompt", *FIFTY_TWO), request("another", "x", "y")]
    expected = scorer.score(asked, tokenisation="separate")
    run = scorer.runner.method.run

    def small_machine(trees: list, arithmetic: str) -> list:
        if sum(tree.size for tree in trees) > 40:
            raise RuntimeError(
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes"
            )
        return run(trees, arithmetic)

    monkeypatch.setattr(scorer.runner.method, "run", small_machine)
    for mine, whole in zip(scorer.score(asked, tokenisation="separate"), expected, strict=True):
        assert [c.logprob for c in mine.candidates] == pytest.approx(
            [c.logprob for c in whole.candidates], abs=GAP
        )
    assert scorer.describe().self_check["halved_for_memory"] > 1
    monkeypatch.setattr(
        scorer.runner.method, "run", lambda *_: (_ for _ in ()).throw(MemoryError())
    )
    with pytest.raises(UserError, match="too little memory for even one candidate"):
        scorer.score(asked, tokenisation="separate")


def test_published_arithmetic_is_softmax_then_log_then_running_sum_in_half_precision() -> None:
    scorer = tiny_scorer("llama", byte_level_tokenizer())
    asked = [request("ab c", "defg", "ж", "defh")]
    (score,) = scorer.score(asked, tokenisation="separate", arithmetic="published-fp16")
    (tokens,) = scorer.tokeniser.tokenise(asked, "separate")
    for candidate, ids in zip(
        score.candidates, (candidate.sequence for candidate in tokens.candidates), strict=True
    ):
        with torch.inference_mode():
            logits = scorer.loaded.model(torch.tensor([ids])).logits[0].half()
        start = len(tokens.prompt)
        values = [
            torch.softmax(logits[i - 1], dim=-1)[ids[i]].log() for i in range(start, len(ids))
        ]
        total = torch.tensor(0.0, dtype=torch.float16)
        for value in values:
            total = total + value
        assert candidate.logprob == pytest.approx(float(total), abs=2e-2)
        assert all(float(torch.tensor(v).half()) == v for v in candidate.token_logprobs)
    assert add_up([-10.03125, -0.00390625], "published-fp16") == -10.03125
    assert add_up([-70000.0, -1.0], "published-fp16") == -math.inf
    assert add_up([], "float32") == add_up([], "published-fp16") == 0.0


def test_tail_tokens_are_counted_from_the_end() -> None:
    scorer = tiny_scorer("llama", byte_level_tokenizer(words=("ab", "b.")))
    asked = [Request("x ", (Candidate("ab", "."), Candidate("a", "b."), Candidate("ab", " c.")))]
    for tokenisation in ("separate", "joint"):
        assert [
            c.tail_tokens for c in scorer.score(asked, tokenisation=tokenisation)[0].candidates
        ] == [1, 1, 3]


def test_order_of_candidates_never_shows() -> None:
    scorer = tiny_scorer("qwen2", byte_level_tokenizer())
    texts = ("a", "ab", "abc", "b")
    seen = set()
    for order in permutations(texts):
        scores = scorer.score([request("p", *order)], tokenisation="separate")[0].candidates
        seen.add(
            tuple(
                sorted(
                    (text, round(score.logprob, 3))
                    for text, score in zip(order, scores, strict=True)
                )
            )
        )
    assert len(seen) == 1


def test_unknown_path_is_a_user_error() -> None:
    with pytest.raises(UserError, match="choose auto, tree"):
        tiny_scorer("llama", byte_level_tokenizer(), path="warp")
    with pytest.raises(UserError, match="does not work with this model"):
        tiny_scorer("bloom", byte_level_tokenizer(), path="tree")


def test_pages_of_a_mapped_file_are_given_back_and_come_again(tmp_path: Path) -> None:
    save_file({"a": torch.arange(1 << 16, dtype=torch.float32)}, tmp_path / "file.safetensors")
    tensor = load_file(tmp_path / "file.safetensors")["a"]
    own = torch.arange(1 << 16, dtype=torch.float32)
    assert not give_back(own, mapped_ranges())
    if sys.platform == "linux":
        assert give_back(tensor, mapped_ranges())
    assert torch.equal(tensor, own)


def test_freed_memory_goes_back_every_few_forwards(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = tiny_scorer("llama", byte_level_tokenizer(), token_budget=8)
    given: list[int] = []
    monkeypatch.setattr(methods, "give_back_freed", lambda: given.append(scorer.runner.forwards))
    requests = [
        Request(f"prompt {number}", (Candidate("ab"), Candidate("cd")))
        for number in range(2 * methods.GIVE_BACK_EVERY)
    ]
    scorer.score(requests, tokenisation="separate")
    assert scorer.runner.forwards == len(requests)
    assert given == [methods.GIVE_BACK_EVERY, 2 * methods.GIVE_BACK_EVERY]


def test_kernels_kept_for_forwards_of_other_sizes_are_few() -> None:
    names = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
    read = f"import os, fluent_mlama.scoring.network; print(*map(os.environ.get, {names}))"
    clean = {name: value for name, value in os.environ.items() if name not in names}
    found = subprocess.run(
        [sys.executable, "-c", read],
        env=clean,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    assert found.stdout.split() == [str(CACHED_KERNELS)] * 2
