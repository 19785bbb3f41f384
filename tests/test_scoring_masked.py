"""Masked models: typed queries and pseudo-log-likelihood against naive loops, on a tiny random BERT and RoBERTa."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

from fluent_mlama.console import UserError
from fluent_mlama.scoring.masked import MaskedScorer
from fluent_mlama.scoring.masked_contract import PieceScore, TypedQuery
from fluent_mlama.scoring.models import LoadedModel
from tests.tiny import byte_level_tokenizer

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"abcdefg",
    "##a",
    "##b",
    "##c",
    "##d",
    ".",
    "l",
    "'",
    "東",
    "京",
    "は",
    "の",
    "首",
    "都",
]
QUERIES = [
    TypedQuery("a b ", " c .", ("ab", "abc", "d", "g", "dabc")),
    TypedQuery("東 京 は ", " の 首 都 .", ("d", "ab")),
    TypedQuery("", " e", ("abcd", "z", "f")),
]


def wordpiece_tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {piece: number for number, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


@cache
def scorer(kind: str, token_budget: int = 40) -> MaskedScorer:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
    }
    tokenizer = wordpiece_tokenizer()
    common = {"vocab_size": len(PIECES), "max_position_embeddings": 40, "pad_token_id": 0, **sizes}
    model = (
        BertForMaskedLM(BertConfig(**common))
        if kind == "bert"
        else RobertaForMaskedLM(RobertaConfig(**common))
    )
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.4)
    return MaskedScorer(
        LoadedModel(kind, "random", model.eval(), tokenizer, torch.device("cpu"), "float32"),
        token_budget=token_budget,
    )


def naive(scorer: MaskedScorer, ids: list[int], position: int, token: int) -> float:
    with torch.inference_mode():
        logits = scorer.loaded.model(torch.tensor([ids])).logits[0, position]
    return float(logits.log_softmax(-1)[token])


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_typed_query_equals_a_loop_over_candidates(kind: str) -> None:
    probe = scorer(kind)
    assert probe.network.rows_first
    for query, result in zip(QUERIES, probe.typed(QUERIES), strict=True):
        for text, score in zip(query.candidates, result.candidates, strict=True):
            left, pieces, right = probe.pieces([query.left, text, query.right])
            ids = [2, *left, *[4] * len(pieces), *right, 3]
            expected = [
                naive(probe, ids, 1 + len(left) + i, piece) for i, piece in enumerate(pieces)
            ]
            assert score.token_ids == pieces
            assert score.token_logprobs == pytest.approx(expected, abs=1e-5)
            assert score.mean == pytest.approx(sum(expected) / len(expected), abs=1e-5)


def test_batch_size_neighbours_and_order_change_nothing() -> None:
    together = scorer("bert").typed(QUERIES)
    alone = [scorer("bert", token_budget=1).typed([query])[0] for query in QUERIES]
    turned = scorer("bert").typed(
        [TypedQuery(q.left, q.right, q.candidates[::-1]) for q in QUERIES[::-1]]
    )[::-1]
    for a, b, c in zip(together, alone, turned, strict=True):
        means = [score.mean for score in a.candidates]
        assert [score.mean for score in b.candidates] == pytest.approx(means, abs=1e-5)
        assert [score.mean for score in c.candidates[::-1]] == pytest.approx(means, abs=1e-5)


def test_untyped_prediction_is_the_best_piece_at_each_mask() -> None:
    probe = scorer("bert")
    result = probe.typed([TypedQuery("a b ", " c .", ("ab", "d"))])[0]
    assert set(result.untyped) == {1, 2}
    left, right = probe.pieces(["a b", "c ."])
    ids = [2, *left, 4, 4, *right, 3]
    rows = [
        [naive(probe, ids, 1 + len(left) + i, token) for token in range(len(PIECES))]
        for i in range(2)
    ]
    assert result.untyped[2].token_ids == tuple(row.index(max(row)) for row in rows)
    assert result.untyped[2].mean == pytest.approx(sum(max(row) for row in rows) / 2, abs=1e-5)


def test_masks_stand_for_what_overlaps_the_candidate_in_its_sentence() -> None:
    probe = scorer("bert")
    fed: list[list[int]] = []
    run = probe.network.run
    probe.network.run = lambda copies, on_batch: (
        fed.extend(copy.ids for copy in copies),
        run(copies, on_batch),
    )[1]
    probe.typed(
        [
            TypedQuery("東京は ", " の首都.", ("ab",)),
            TypedQuery("l'", ".", ("a",)),
            TypedQuery("a c", "b ", ("b",)),
        ]
    )
    del probe.network.run
    spelt = [probe.loaded.tokenizer.convert_ids_to_tokens(ids) for ids in fed]
    assert spelt[0] == [
        "[CLS]",
        "東",
        "京",
        "は",
        "[MASK]",
        "[MASK]",
        "の",
        "首",
        "都",
        ".",
        "[SEP]",
    ]
    assert spelt[1] == ["[CLS]", "l", "'", "[MASK]", ".", "[SEP]"]
    assert spelt[2] == [
        "[CLS]",
        "a",
        "c",
        "[MASK]",
        "##b",
        "[SEP]",
    ]  # inside a word: "cbb" is c ##b ##b


def test_unknown_and_empty_candidates_are_told() -> None:
    result = scorer("bert").typed([TypedQuery("a ", " b", ("z", "x", "", "c"))])[0].candidates
    assert [score.unknown for score in result] == [True, True, False, False]
    assert result[0] == result[1]
    assert math.isnan(result[2].mean) and result[2].token_ids == ()


@pytest.mark.parametrize("within_word", [False, True])
def test_pseudo_log_likelihood_equals_a_loop_over_positions(within_word: bool) -> None:
    probe = scorer("bert")
    texts = ["abc d", "", "e dab ."]
    words = {"abc d": [0, 0, 0, 1], "e dab .": [0, 1, 1, 1, 2]}
    for text, score in zip(
        texts, probe.pseudo_log_likelihood(texts, within_word=within_word), strict=True
    ):
        ids = list(probe.pieces([text])[0])
        expected = []
        for i, token in enumerate(ids):
            masked = [
                4 if j == i or (within_word and j > i and words[text][j] == words[text][i]) else t
                for j, t in enumerate(ids)
            ]
            expected.append(naive(probe, [2, *masked, 3], 1 + i, token))
        assert score.token_logprobs == pytest.approx(expected, abs=1e-5)
        assert score.total == pytest.approx(sum(expected), abs=1e-5)


def test_pseudo_log_likelihood_of_a_span_scores_its_tokens_only() -> None:
    probe = scorer("bert")
    whole, part = (
        probe.pseudo_log_likelihood(["e dab ."])[0],
        probe.pseudo_log_likelihood(["e dab ."], spans=[(2, 5)])[0],
    )
    assert part.token_ids == whole.token_ids[1:4]
    assert part.token_logprobs == pytest.approx(whole.token_logprobs[1:4], abs=1e-5)


def test_worked_typed_query_values() -> None:
    a, c = PieceScore((0,), (math.log(0.2),)), PieceScore((2, 3), (math.log(0.3), math.log(0.6)))
    b = PieceScore((1, 2), (math.log(0.5), math.log(0.08)))
    assert [round(score.mean, 6) for score in (a, b, c)] == [-1.609438, -1.609438, -0.857399]
    assert round(PieceScore((1, 2), (math.log(0.5), math.log(0.6))).mean, 6) == -0.601986


def test_tokenizer_without_mask_and_too_long_sentences_are_told() -> None:
    probe = scorer("bert")
    with pytest.raises(UserError, match="no mask token"):
        MaskedScorer(
            LoadedModel(
                "x",
                "random",
                probe.loaded.model,
                byte_level_tokenizer(),
                torch.device("cpu"),
                "float32",
            )
        )
    with pytest.raises(UserError, match="longer than the 40 positions"):
        probe.typed([TypedQuery("a " * 50, " b", ("c",))])


@pytest.mark.parametrize(
    "kind, positions", [("bert", 40), ("roberta", 39)]
)  # RoBERTa's padding id is 0: it keeps one row
def test_the_first_length_that_does_not_fit_is_one_clear_line(kind: str, positions: int) -> None:
    probe = scorer(kind)
    query = TypedQuery("a " * (positions - 3), "", ("c",))  # with [CLS], [MASK] and [SEP]
    assert math.isfinite(probe.typed([query])[0].candidates[0].mean)
    with pytest.raises(
        UserError,
        match=f"a sentence of {positions + 1} tokens is longer than the {positions} positions",
    ):
        probe.typed([TypedQuery(query.left + "a ", "", ("c",))])
