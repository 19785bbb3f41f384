"""The mLAMA probe on published candidate lists and facts, and on a model that was taught half of the starter's facts."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import BertConfig, BertForMaskedLM

from fluent_mlama.files import open_source
from fluent_mlama.mlama.items import CandidateLists, make_questions
from fluent_mlama.mlama.measures import coverage_table
from fluent_mlama.mlama.query import Options, query
from fluent_mlama.mlama.results import read_result
from fluent_mlama.reader import MLama
from fluent_mlama.scoring.masked import MaskedScorer
from fluent_mlama.scoring.models import LoadedModel
from tests.test_scoring_planted import CHANCE, LEARNT, masked_tokenizer, padded, teach

TREX = 41


def test_published_lists_are_sorted_and_hold_every_relation(published: Path) -> None:
    source = open_source(published / "mlama_objects.zip")
    totals = {}
    for name in source.names():
        lists = json.loads(source.read(name).decode("utf-8"))
        assert len(lists) == TREX
        for part in lists.values():
            assert part["objects"] == sorted(set(part["objects"])) and part["subjects"] == sorted(
                set(part["subjects"])
            )
        totals[name] = sum(len(part["objects"]) for part in lists.values())
    assert len(totals) == 13
    expected = {
        "en": 6175,
        "fr": 5889,
        "nl": 5631,
        "de": 5605,
        "es": 5531,
        "it": 5305,
        "ja": 5277,
        "zh": 5168,
        "ru": 5110,
    }
    assert {lang: totals[f"{lang}.json"] for lang in expected} == expected
    english = json.loads(source.read("en.json").decode("utf-8"))
    assert sum(len(part["subjects"]) for part in english.values()) == 31425
    candidates = CandidateLists([published / "mlama_objects.zip"])
    sizes = {
        relation: len(candidates.of("en", relation, ()))
        for relation in ("P17", "P30", "P279", "P527")
    }
    assert sizes == {"P17": 109, "P30": 6, "P279": 431, "P527": 268}


def test_published_facts_are_counted_and_their_objects_are_candidates(published: Path) -> None:
    data = MLama(published / "mlama1.1_subset.zip")
    table = coverage_table(data).set_index("language")
    assert {lang: int(table.at[lang, "triples"]) for lang in ("en", "ru")} == {
        "en": 11307,
        "ru": 9063,
    }
    candidates = CandidateLists([published / "mlama_objects.zip"])
    for relation in data.relations("ru"):
        objects = {triple.obj_label for triple in data.triples("ru", relation).values()}
        assert objects <= set(candidates.of("ru", relation, ()))


def test_a_bert_that_was_taught_half_of_the_facts_knows_that_half(
    root: Path, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    data = MLama(root / "fluent_mlama" / "data" / "starter")
    asked = make_questions(data, "es", "P36").questions
    tokenizer = masked_tokenizer([one.left + one.triple.obj_label + one.right for one in asked])
    sizes = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
    }
    model = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **sizes)).eval()
    scorer = MaskedScorer(
        LoadedModel("planted", "random", model, tokenizer, torch.device("cpu"), "float32")
    )
    masked, labels = [], []
    for one in asked[::2]:
        left, pieces, right = scorer.pieces([one.left, one.triple.obj_label, one.right])
        masked.append((2, *left, *[4] * len(pieces), *right, 3))
        labels.append((*[-100] * (1 + len(left)), *pieces, *[-100] * (len(right) + 1)))
    teach(model, padded(masked, labels, 0), steps=80)
    (path,) = query(data, Options("planted", "tyq", tmp_path), ["es"], ["P36"], scorer)
    right = read_result(path)[0]["correct"].tolist()
    assert sum(right[::2]) / len(right[::2]) >= LEARNT
    assert sum(right[1::2]) / len(right[1::2]) <= CHANCE


def test_a_roberta_that_knows_all_capitals_is_found_to_know_them(
    root: Path, published: Path, tmp_path: Path
) -> None:
    model = published / "failing" / "planted-roberta-en"
    (path,) = query(
        MLama(root / "fluent_mlama" / "data" / "starter"),
        Options(str(model), "tyq", tmp_path),
        ["en"],
        ["P36"],
    )
    frame, record = read_result(path)
    assert frame["correct"].mean() == 1.0 and len(frame) == 32
    assert "|tok:joint|bos:1|" in record.signature
