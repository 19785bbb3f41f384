"""A toy mLAMA (invented facts) and a tiny masked model with its own WordPiece vocabulary, for the tests of the mLAMA probe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from fluent_mlama.scoring.masked import MaskedScorer
from fluent_mlama.scoring.models import LoadedModel

TEMPLATES = {
    "en": {
        "P36": "The capital of [X] is [Y] .",
        "P37": "[X] speaks [Y] .",
        "P1412": "[X] talks in [Y] .",
    },
    "it": {
        "P36": "La capitale di [X] è [Y].",
        "P37": "[X] parla [Y].",
        "P1412": "[X] parla in [Y].",
    },
    "ja": {"P36": "[X]の首都は[Y]です。", "P37": "[X]の言語は[Y]です。"},
}
FACTS = {
    ("en", "P36"): {0: ("Ardland", "Q1", "Ostby", "Q11"), 1: ("Belmia", "Q2", "Tarnow Hill", "Q12"), 2: ("Corvia", "Q3", "Lumen", "Q13"),
                    3: ("Dorn", "Q4", "Ostby", "Q11")},
    ("en", "P37"): {0: ("Ardland", "Q1", "Ardish", "Q21"), 1: ("Belmia", "Q2", "Bel", "Q22"), 4: ("Corvia", "Q3", "Ardish", "Q21")},
    ("en", "P1412"): {7: ("Jean Ardish", "Q5", "Ardish", "Q21"), 8: ("Mo Lum", "Q6", "Bel", "Q22")},
    ("it", "P36"): {0: ("Ardlandia", "Q1", "Ostbia", "Q11"), 2: ("Corvia", "Q3", "Lumene", "Q13"), 5: ("Esto", "Q7", "Ostbia", "Q11")},
    ("it", "P37"): {1: ("Belmia", "Q2", "bel", "Q22"), 4: ("Corvia", "Q3", "ardese", "Q21")},
    ("ja", "P36"): {0: ("東国", "Q1", "東京", "Q11"), 2: ("西国", "Q3", "西京", "Q13")},
}  # fmt: skip


def write_toy(
    folder: Path,
    facts: Mapping[Any, Any] = FACTS,
    templates: Mapping[str, Mapping[str, str]] = TEMPLATES,
) -> Path:
    """The toy data in the mLAMA 1.1 layout."""
    for lang, by_relation in templates.items():
        write_lines(
            folder / lang / "templates.jsonl",
            [{"relation": relation, "template": text} for relation, text in by_relation.items()],
        )
    for (lang, relation), triples in facts.items():
        write_lines(folder / lang / f"{relation}.jsonl", [
            {"lineid": lineid, "sub_label": sub, "sub_uri": sub_uri, "obj_label": obj, "obj_uri": obj_uri}
            for lineid, (sub, sub_uri, obj, obj_uri) in triples.items()
        ])  # fmt: skip
    return folder


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )


def wordpiece(words: Sequence[str]) -> PreTrainedTokenizerFast:
    """BERT's tokeniser with these words whole; other words fall into letters."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZè"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = dict.fromkeys(
        [
            *special,
            *words,
            *letters,
            *(f"##{letter}" for letter in letters),
            *".,'()",
            "。",
            *"東京西国言語の首都はです",
        ]
    )
    tokenizer = Tokenizer(
        models.WordPiece({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {
        name: f"[{name[:-6].upper()}]"
        for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    }
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


WORDS = ("The", "capital", "of", "is", "speaks", "talks", "in", "Ardland", "Ost", "##by", "Ostby", "Tarnow", "Hill", "Lumen", "Ardish",
         "Bel", "Jean", "l", "né", "は", "の")  # fmt: skip


def tiny_masked(
    words: Sequence[str] = WORDS, seed: int = 0, token_budget: int = 2048
) -> MaskedScorer:
    """A seeded random BERT whose weights are large enough for its scores to differ."""
    torch.manual_seed(seed)
    tokenizer = wordpiece(words)
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                        max_position_embeddings=64)  # fmt: skip
    model = BertForMaskedLM(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(std=0.3)
    return MaskedScorer(
        LoadedModel("tiny-bert", "random", model, tokenizer, torch.device("cpu"), "float32"),
        token_budget=token_budget,
    )
