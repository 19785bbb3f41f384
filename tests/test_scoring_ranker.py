"""``fluent_mlama.load_scorer(...).rank``: a table that equals plain forwards, for causal and masked models."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import fluent_mlama
from fluent_mlama.console import UserError
from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.masked_contract import TypedQuery
from fluent_mlama.scoring.ranker import CandidateRanker
from tests.test_scoring_masked import naive, wordpiece_tokenizer
from tests.test_scoring_masked import scorer as masked_scorer
from tests.tiny import byte_level_tokenizer, tiny_scorer

FORMS = ["Paris", "Rome", "New York"]


@pytest.fixture(scope="module")
def causal() -> CandidateRanker:
    return CandidateRanker(tiny_scorer("llama", byte_level_tokenizer()))


@pytest.mark.model
def test_the_capital_of_france_equals_plain_forwards(smollm2: CausalScorer) -> None:
    prompt = "The capital of France is"
    table = CandidateRanker(smollm2).rank(prompt, ["Rome", "Paris", "New York"])
    assert list(table.columns) == ["candidate", "rank", "logprob", "prob_among_candidates"]
    assert table["candidate"][0] == "Paris" and table["rank"].tolist() == [1, 2, 3]
    for form, logprob in zip(table["candidate"], table["logprob"], strict=True):
        ids = [smollm2.tokeniser.bos] + smollm2.loaded.tokenizer(prompt)["input_ids"]
        own = smollm2.loaded.tokenizer(f" {form}")["input_ids"]
        with torch.inference_mode():
            rows = smollm2.loaded.model(torch.tensor([ids + own])).logits[0].log_softmax(-1)
        expected = sum(rows[len(ids) + i - 1, token].item() for i, token in enumerate(own))
        assert logprob == pytest.approx(expected, abs=5e-4)
    odds = [math.exp(logprob) for logprob in table["logprob"]]
    assert table["prob_among_candidates"].tolist() == pytest.approx([o / sum(odds) for o in odds])


def test_a_trailing_blank_is_left_out_with_a_note(
    causal: CandidateRanker, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = causal.rank("The city of", FORMS)
    assert "blank" not in capsys.readouterr().err
    assert causal.rank("The city of ", FORMS).equals(usual)
    assert "ends with a blank" in capsys.readouterr().err


def test_slot_and_tail_are_the_same_sentence(causal: CandidateRanker) -> None:
    assert causal.rank("The city of [Y].", FORMS).equals(
        causal.rank("The city of", FORMS, tail=".")
    )
    assert not causal.rank("The city of[Y].", FORMS).equals(causal.rank("The city of [Y].", FORMS))


def test_a_masked_model_ranks_by_its_typed_queries() -> None:
    probe = masked_scorer("bert")
    forms = ("ab", "abc", "d")
    table = CandidateRanker(probe).rank("a b", forms, tail=" c .")
    (typed,) = probe.typed([TypedQuery("a b ", " c .", forms)])
    means = {form: score.mean for form, score in zip(forms, typed.candidates, strict=True)}
    assert dict(zip(table["candidate"], table["logprob"], strict=True)) == means
    assert table.equals(CandidateRanker(probe).rank("a b [Y] c .", forms))
    # one mask: [CLS] a b [MASK] c . [SEP], the mask at place 3
    left, right = probe.pieces(["a b", "c ."])
    (token,) = probe.pieces(["d"])[0]
    assert means["d"] == pytest.approx(naive(probe, [2, *left, 4, *right, 3], 3, token), abs=1e-5)
    with pytest.raises(UserError, match="both sides"):
        CandidateRanker(probe).rank("a b", forms)


def test_a_masked_model_is_loaded_by_the_same_call(tmp_path: Path) -> None:
    probe = masked_scorer("bert")
    probe.loaded.model.save_pretrained(tmp_path)
    wordpiece_tokenizer().save_pretrained(tmp_path)
    table = fluent_mlama.load_scorer(str(tmp_path), device="cpu").rank("a [Y] c", ["ab", "d"])
    assert table["logprob"].tolist() == pytest.approx(
        CandidateRanker(probe).rank("a [Y] c", ["ab", "d"])["logprob"].tolist(), abs=1e-4
    )


@pytest.mark.parametrize(
    ("prompt", "candidates", "tail", "message"),
    [
        ("The", "Paris", "", "one string"),
        ("The", [], "", "no candidates"),
        ("The", ["Paris", " "], "", "empty"),
        ("The", ["Paris", "Paris"], "", "given twice"),
        ("[Y] and [Y]", ["Paris"], "", "once"),
        ("The [Y]", ["Paris"], ".", "no tail"),
    ],
)
def test_bad_input_is_one_line(
    causal: CandidateRanker, prompt: str, candidates: list[str], tail: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        causal.rank(prompt, candidates, tail)


def test_importing_the_package_imports_no_torch() -> None:
    code = "import sys, fluent_mlama; print('torch' in sys.modules, 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    with pytest.raises(AttributeError, match="no attribute"):
        _ = fluent_mlama.nothing_of_this_name
