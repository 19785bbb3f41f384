"""What was loaded is what the files hold: one line for weights that are lacking, left over or misshapen, for adapters, for tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    LlamaForSequenceClassification,
    PreTrainedModel,
)

from fluent_mlama.console import UserError
from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.contract import Candidate, Request
from fluent_mlama.scoring.identity import model_identity
from fluent_mlama.scoring.models import Kind, load_model
from fluent_mlama.translating.seq2seq import Seq2SeqTranslator
from tests.tiny import byte_level_tokenizer, tiny_model

Change = Callable[[dict[str, torch.Tensor]], object]
PREFIX = "model.layers.0.self_attn."


def save(model: PreTrainedModel, folder: Path) -> Path:
    model.save_pretrained(folder)
    byte_level_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save(tiny_model("llama", len(byte_level_tokenizer())), tmp_path / "model")


def change_weights(folder: Path, change: Change) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path, {"format": "pt"})


@pytest.mark.parametrize(("change", "words"), [
    (lambda w: w.pop(f"{PREFIX}q_proj.weight"), f"no weights for 1 of its parts .{PREFIX}q_proj.weight …., which would be random"),
    (lambda w: w.update({f"{PREFIX}q_proj.bias": torch.ones(32)}), f"hold 1 weights that its config has no place for .{PREFIX}q_proj.bias"),
    (lambda w: w.update({"lm_head.bias": torch.ones(258)}), "no place for .lm_head.bias"),
    (lambda w: w.update({"model.layers.2.mlp.up_proj.weight": torch.ones(48, 32)}), "no place for .model.layers.2.mlp"),
    (lambda w: w.update({f"{PREFIX}q_norm.weight": torch.ones(8)}), "no place for .*q_norm"),
    (lambda w: w.update({"model.norm.weight": torch.ones(16)}), r"another shape than its config says .model.norm.weight: \(16,\) and"),
])  # fmt: skip
def test_weights_that_do_not_fit_are_one_line(change: Change, words: str, folder: Path) -> None:
    change_weights(folder, change)
    with pytest.raises(UserError, match=words) as raised:
        load_model(str(folder), device="cpu")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", [
    "model.layers.0.self_attn.rotary_emb.inv_freq", "classifier.weight", "score.weight", "qa_outputs.bias", "v_head.summary.weight",
])  # fmt: skip
def test_what_changes_no_score_may_be_left_over(name: str, folder: Path) -> None:
    before = load_model(str(folder), device="cpu").model(torch.tensor([[1, 2, 3]])).logits
    change_weights(folder, lambda weights: weights.update({name: torch.ones(4)}))
    assert torch.equal(
        load_model(str(folder), device="cpu").model(torch.tensor([[1, 2, 3]])).logits, before
    )


def test_a_classifier_has_no_head_for_words(tmp_path: Path) -> None:
    config = tiny_model("llama", len(byte_level_tokenizer())).config
    folder = save(LlamaForSequenceClassification(config), tmp_path / "model")
    with pytest.raises(UserError, match="no weights for 1 of its parts .lm_head.weight"):
        load_model(str(folder), device="cpu")


def test_two_heads_where_the_config_says_one_are_read_as_the_file_has_them(folder: Path) -> None:
    config = folder / "config.json"
    before = load_model(str(folder), device="cpu").model(torch.tensor([[1, 2, 3]])).logits
    config.write_text(
        json.dumps(json.loads(config.read_text(encoding="utf-8")) | {"tie_word_embeddings": True}),
        encoding="utf-8",
    )
    assert torch.equal(
        load_model(str(folder), device="cpu").model(torch.tensor([[1, 2, 3]])).logits, before
    )


def bert(whole: bool) -> PreTrainedModel:
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    config = BertConfig(vocab_size=len(byte_level_tokenizer()), **sizes)
    model: PreTrainedModel = BertForPreTraining(config) if whole else BertForMaskedLM(config)
    model.config.architectures = ["BertForMaskedLM"]
    return model


def test_berts_second_task_may_be_left_over(tmp_path: Path) -> None:
    folder = save(bert(whole=True), tmp_path / "model")
    change_weights(
        folder,
        lambda weights: weights.update({"bert.embeddings.position_ids": torch.arange(512)[None]}),
    )
    assert {"bert.pooler.dense.weight", "cls.seq_relationship.weight"} <= set(
        load_file(folder / "model.safetensors")
    )
    config = folder / "config.json"
    config.write_text(
        config.read_text(encoding="utf-8").replace("BertForPreTraining", "BertForMaskedLM"),
        encoding="utf-8",
    )
    assert load_model(str(folder), kind="masked", device="cpu").model.config.model_type == "bert"


@pytest.mark.parametrize(("change", "words"), [
    (lambda w: w.pop("cls.predictions.transform.dense.weight"), "no weights for 1 of its parts"),
    (lambda w: w.update({"bert.encoder.layer.1.output.dense.bias": torch.ones(16)}), "no place for"),
])  # fmt: skip
def test_masked_models_are_held_to_the_same(change: Change, words: str, tmp_path: Path) -> None:
    folder = save(bert(whole=False), tmp_path / "model")
    change_weights(folder, change)
    with pytest.raises(UserError, match=words):
        load_model(str(folder), kind="masked", device="cpu")


def test_gpt_neos_old_masks_may_be_left_over(tmp_path: Path) -> None:
    config = GPTNeoConfig(
        vocab_size=len(byte_level_tokenizer()),
        hidden_size=16,
        num_layers=2,
        num_heads=2,
        attention_types=[[["global", "local"], 1]],
    )
    folder = save(GPTNeoForCausalLM(config), tmp_path / "model")
    masks = {
        f"transformer.h.0.attn.attention.{name}": torch.ones(1) for name in ("bias", "masked_bias")
    }
    change_weights(folder, lambda weights: weights.update(masks))
    assert load_model(str(folder), device="cpu").model.config.model_type == "gpt_neo"
    change_weights(
        folder,
        lambda weights: weights.update(
            {"transformer.h.0.attn.attention.q_proj.bias": torch.ones(16)}
        ),
    )
    with pytest.raises(UserError, match="no place for .*q_proj.bias"):
        load_model(str(folder), device="cpu")


@pytest.mark.parametrize("kind", ["causal", "masked", "translation"])
def test_an_adapter_is_named_and_how_to_merge_it(kind: Kind, tmp_path: Path, folder: Path) -> None:
    alone = tmp_path / "adapter"
    alone.mkdir()
    for place in (alone, folder):
        (place / "adapter_config.json").write_text(
            '{"base_model_name_or_path": "org/base", "peft_type": "LORA"}', encoding="utf-8"
        )
    with pytest.raises(
        UserError,
        match=r"is an adapter of org/base .adapter_config.json., not a model: merge it with peft: .*'org/base'.*merge_and_unload",
    ):
        load_model(str(alone), kind=kind, device="cpu")
    with pytest.raises(
        UserError,
        match="has an adapter beside it .*would be left out: merge it.*move adapter_config.json away",
    ):
        load_model(str(folder), kind=kind, device="cpu")
    with pytest.raises(UserError, match="is an adapter"):
        model_identity(str(alone))


def test_ordinary_tokens_beyond_the_rows_are_one_line(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = len(tokenizer)
    tokenizer.add_tokens(["Paris", "Berlin"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(
        UserError,
        match=rf"has {rows} rows of embeddings and its tokenizer 2 tokens beyond them .the first: 'Paris', {rows}",
    ):
        load_model(str(folder), device="cpu")


def test_special_tokens_beyond_the_rows_matter_only_in_a_text_that_holds_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"pad_token": "<pad>", "additional_special_tokens": ["<image>"]})
    tokenizer.save_pretrained(folder)
    loaded = load_model(str(folder), device="cpu")
    assert (
        "has no embedding for the special tokens <pad>, <image>: a text that holds one"
        in capsys.readouterr().err
    )
    assert loaded.tokenizer.pad_token_id < loaded.model.get_input_embeddings().weight.shape[0]
    scorer = CausalScorer(loaded)
    asked = [
        Request("One", (Candidate(" two"), Candidate(" three, four"))),
        Request("One", (Candidate(" <image>"),)),
    ]
    plan = scorer.plan(asked, "joint")
    assert plan.unscorable == {1: "the model has no embedding for the token <image>"}
    assert scorer.score_pack(plan, 0)[0].candidates[0].logprob < 0


def test_a_tokenizer_that_puts_such_a_token_in_front_is_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = tiny_model("llama", len(byte_level_tokenizer()))
    model.resize_token_embeddings(200)
    model.save_pretrained(folder)
    assert config["vocab_size"] > 200
    with pytest.raises(UserError, match="has 200 rows of embeddings and its tokenizer"):
        load_model(str(folder), device="cpu")


@pytest.mark.data
@pytest.mark.parametrize(("name", "words"), [
    ("llama-bias-dropped", r"hold 8 weights that its config has no place for \(model.layers.0.self_attn.k_proj.bias"),
    ("llama-more-tokens-than-rows", "has 3000 rows of embeddings and its tokenizer 2 tokens beyond them .the first: 'Париж', 3000"),
])  # fmt: skip
def test_failing_inputs(name: str, words: str, published: Path) -> None:
    with pytest.raises(UserError, match=words):
        load_model(str(published / "failing" / name), device="cpu")


@pytest.mark.data
def test_a_translation_model_that_lacks_a_layer(published: Path) -> None:
    with pytest.raises(
        UserError, match="no weights for 16 of its parts .model.encoder.layers"
    ) as raised:
        Seq2SeqTranslator(str(published / "failing" / "nllb-layer-missing")).check(
            "en", "ru", "P19"
        )
    assert "smollm2" not in str(raised.value)
