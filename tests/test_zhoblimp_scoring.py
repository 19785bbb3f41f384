"""Pairs through the real engine: BOS exactly once, the same numbers in any batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from tokenizers.processors import TemplateProcessing
from transformers import GPTNeoXForCausalLM, PreTrainedTokenizerFast

from fluent_mlama.console import UserError
from fluent_mlama.linking import parse_linking
from fluent_mlama.options import LoadOptions
from fluent_mlama.zhoblimp.data import PairRow, read_pairs
from fluent_mlama.zhoblimp.evaluate import chosen_rows
from fluent_mlama.zhoblimp.measures import make_result
from fluent_mlama.zhoblimp.page import ModelOnDemand
from fluent_mlama.zhoblimp.scores import Place, Target, load, requests_of, score_pairs
from fluent_mlama.zhoblimp.train import configuration
from fluent_mlama.zhoblimp.training import make_tokenizer

if TYPE_CHECKING:
    from fluent_mlama.scoring.causal import CausalScorer

CPU = LoadOptions(device="cpu", dtype="float32")
TEXTS = ["我把书看完了。", "我看完了书把。", "他看书。", "我们看书了。", "我们书看了。"]
ROWS = [
    PairRow("a", "p", good, bad, n, {})
    for n, (good, bad) in enumerate(
        [(TEXTS[0], TEXTS[1]), (TEXTS[3], TEXTS[4]), (TEXTS[2], TEXTS[0])]
    )
]


def model_folder(folder: Path, kind: str, context: int = 32) -> Path:
    """A small random model whose tokenizer adds BOS by itself, does not, or has none."""
    tokenizer = make_tokenizer("char", TEXTS, 100)
    torch.manual_seed(1)
    config = configuration(
        "tiny", len(tokenizer), context, tokenizer.bos_token_id, tokenizer.eos_token_id
    )
    GPTNeoXForCausalLM(config).save_pretrained(folder)
    inner = tokenizer.backend_tokenizer
    if kind == "adds":
        inner.post_processor = TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.bos_token_id)]
        )
    names = {"eos_token": "</s>", "unk_token": "<unk>"} | (
        {} if kind == "none" else {"bos_token": "<s>"}
    )
    PreTrainedTokenizerFast(tokenizer_object=inner, **names).save_pretrained(folder)
    return folder


def plainly(scorer: Any, text: str, first: int) -> float:
    """Log-probability of a sentence behind token ``first``, one forward, nothing clever."""
    ids = torch.tensor(
        [[first, *scorer.loaded.tokenizer(text, add_special_tokens=False)["input_ids"]]]
    )
    with torch.inference_mode():
        logprobs = torch.log_softmax(scorer.loaded.model(ids).logits.double(), -1)[0]
    return float(sum(logprobs[place, token] for place, token in enumerate(ids[0, 1:].tolist())))


@pytest.mark.parametrize("kind", ["adds", "leaves", "none"])
def test_bos_stands_once_in_front_and_eos_where_there_is_no_bos(kind: str, tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model", kind)
    scorer = load(Target(str(folder), str(folder)), CPU)
    first = 2 if kind == "none" else 1
    frame = score_pairs(scorer, ROWS, Place(tmp_path / "out", "main"), "tiny")
    for row in frame.itertuples():
        for text, ids, logprobs in (
            (row.good, row.good_ids, row.good_logprobs),
            (row.bad, row.bad_ids, row.bad_logprobs),
        ):
            assert len(ids) == len(logprobs) == len(text)
            assert sum(logprobs) == pytest.approx(plainly(scorer, text, first), abs=1e-4)
    alone = score_pairs(scorer, ROWS[1:2], Place(tmp_path / "alone", "main"), "tiny")
    assert sum(alone["good_logprobs"][0]) == pytest.approx(sum(frame["good_logprobs"][1]), abs=1e-5)


def test_the_page_scores_with_a_model_that_it_loads_once(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model", "leaves")
    score = ModelOnDemand(str(folder))
    first = score(ROWS)
    loaded = score.scorer
    again = score(ROWS[:1])
    assert score.scorer is loaded and first.frame["length"].tolist() == [
        "equal length",
        "equal length",
        "bad is longer",
    ]
    assert again.good.total[0] == pytest.approx(first.good.total[0], abs=1e-5)
    assert first.good.total[0] == pytest.approx(plainly(loaded, ROWS[0].good, 1), abs=1e-4)


def test_a_sentence_too_long_for_the_model_is_named_and_not_cut(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model", "leaves", context=6)
    scorer = load(Target(str(folder), str(folder)), CPU)
    with pytest.raises(UserError, match="a: pair 0 cannot be scored by tiny"):
        score_pairs(scorer, ROWS, Place(tmp_path / "out", "main"), "tiny")


@pytest.mark.model
def test_the_embedded_model_scores_pairs_as_one_forward_each_does(smollm2: CausalScorer) -> None:
    rows = [PairRow("a", "p", "王强把那本书看完了。", "王强把那本书没看完。", 0, {})]
    (score,) = smollm2.score(requests_of(rows), tokenisation="joint")
    bos = smollm2.loaded.tokenizer.bos_token_id
    for text, candidate in zip((rows[0].good, rows[0].bad), score.candidates, strict=True):
        assert candidate.logprob == pytest.approx(plainly(smollm2, text, bos), abs=5e-4)


@pytest.mark.slow
@pytest.mark.model
def test_the_embedded_model_on_eight_pairs_of_each_published_paradigm(
    smollm2: CausalScorer, published: Path, tmp_path: Path
) -> None:
    rows = chosen_rows(read_pairs(published / "zhoblimp" / "ZhoBLiMP.tar.gz"), 8)
    result = make_result("smollm2", score_pairs(smollm2, rows, Place(tmp_path, "main"), "smollm2"))
    accuracy = {
        name: float(result.correct(parse_linking(name)).mean())
        for name in ("lp", "mean", "slln:0.5")
    }
    assert len(rows) == 944 and accuracy == pytest.approx(
        {"lp": 0.6038, "mean": 0.5869, "slln:0.5": 0.6112}, abs=0.01
    )
