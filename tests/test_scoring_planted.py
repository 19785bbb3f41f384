"""Planted knowledge: models that were taught half of the starter's facts must rank those first, and only those.

The whole chain is meant: benchmark file, protocol, tokenisation, engine, ranks, dump.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from fluent_mlama.files import open_source
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.benchmark import Benchmark, read_benchmark
from fluent_mlama.records.results import read_dump
from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.masked import MaskedScorer
from fluent_mlama.scoring.masked_contract import TypedQuery
from fluent_mlama.scoring.models import LoadedModel
from fluent_mlama.scoring.tokens import PromptTokeniser

SEEN, UNSEEN = 0, 1
LEARNT, CHANCE = 0.95, 0.2


@pytest.fixture(scope="module")
def capitals(root: Path) -> Benchmark:
    return read_benchmark(open_source(root / "fixed_data" / "starter"), "es", "P36")


def half(benchmark: Benchmark, which: int) -> list[int]:
    return [row for row in benchmark.table.index if row % 2 == which]


def causal_tokenizer(sentences: Sequence[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        sentences,
        trainers.BpeTrainer(
            vocab_size=500, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet
        ),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


def teach(model: Any, batch: dict[str, torch.Tensor], steps: int) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(steps):
        optimiser.zero_grad()
        model(**batch).loss.backward()
        optimiser.step()
    model.eval()
    torch.set_num_threads(threads)


def padded(
    sequences: Sequence[tuple[int, ...]], labels: Sequence[tuple[int, ...]], pad: int
) -> dict[str, torch.Tensor]:
    width = max(map(len, sequences))
    fill = [width - len(sequence) for sequence in sequences]
    return {
        "input_ids": torch.tensor([[*s, *[pad] * n] for s, n in zip(sequences, fill, strict=True)]),
        "attention_mask": torch.tensor(
            [[1] * len(s) + [0] * n for s, n in zip(sequences, fill, strict=True)]
        ),
        "labels": torch.tensor([[*s, *[-100] * n] for s, n in zip(labels, fill, strict=True)]),
    }


@pytest.mark.parametrize("protocol", ["paper", "corrected"])
def test_llama_ranks_what_it_was_taught_first(
    capitals: Benchmark, protocol: Any, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    tokenizer = causal_tokenizer(capitals.table["phrasebook_translation"].tolist())
    processor = Processor(
        capitals, Settings(model="planted", protocol=protocol, out=tmp_path / "stats")
    )
    task = processor.task()
    lessons = set()
    for question in task.questions:
        if question.row in half(capitals, SEEN):
            (tokens,) = PromptTokeniser(tokenizer).tokenise([question.request], task.tokenisation)
            own = [
                c.sequence
                for choice, c in zip(question.choices, tokens.candidates, strict=True)
                if choice.role == "correct" and choice.own
            ]
            lessons.update(own)
    sequences = sorted(lessons)
    assert len(sequences) >= len(half(capitals, SEEN))
    sizes = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
    }
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=1, pad_token_id=1, **sizes
        )
    )
    teach(model, padded(sequences, sequences, 1), steps=60)
    scorer = CausalScorer(
        LoadedModel("planted", "random", model, tokenizer, torch.device("cpu"), "float32")
    )
    processor.rank(scorer)
    table = read_dump(open_source(tmp_path / "stats"), processor.outputs.dumps()[0].name).table
    for verbalisation in processor.verbalisations:
        first = table[f"{verbalisation}_top1_correct"].astype(int)
        assert first[first.index.isin(half(capitals, SEEN))].mean() >= LEARNT
        assert first[first.index.isin(half(capitals, UNSEEN))].mean() <= CHANCE


def masked_tokenizer(sentences: Sequence[str]) -> PreTrainedTokenizerFast:
    """Whole words that are common, single characters for the others (a trained WordPiece vocabulary differs from run to run)."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    words = Counter(word for sentence in sentences for word, _ in split(sentence))
    characters = sorted(set("".join(words)))
    common = [word for word in sorted(words) if words[word] > 1 and len(word) > 1]
    pieces = [*special, *characters, *(f"##{character}" for character in characters), *common]
    tokenizer = Tokenizer(
        models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {
        name: f"[{name[:-6].upper()}]"
        for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    }
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def test_bert_ranks_what_it_was_taught_first(capitals: Benchmark) -> None:
    torch.manual_seed(0)
    table = capitals.table
    tokenizer = masked_tokenizer(table["phrasebook_translation"].tolist())
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
    objects = tuple(dict.fromkeys(table["phrasebook_infl_object"]))
    queries = {
        row: TypedQuery(
            table.loc[row, "phrasebook_prompt"], table.loc[row, "phrasebook_tail"], objects
        )
        for row in table.index
    }
    masked, labels = [], []
    for row in half(capitals, SEEN):
        left, pieces, right = scorer.pieces(
            [queries[row].left, table.loc[row, "phrasebook_infl_object"], queries[row].right]
        )
        masked.append((2, *left, *[4] * len(pieces), *right, 3))
        labels.append((*[-100] * (1 + len(left)), *pieces, *[-100] * (len(right) + 1)))
    assert max(len(scorer.pieces([text])[0]) for text in objects) > 1
    teach(model, padded(masked, labels, 0), steps=80)
    first = {}
    for row, result in zip(queries, scorer.typed(list(queries.values())), strict=True):
        best = max(range(len(objects)), key=lambda number: result.candidates[number].mean)
        first[row] = objects[best] == table.loc[row, "phrasebook_infl_object"]
    seen, unseen = ([first[row] for row in half(capitals, which)] for which in (SEEN, UNSEEN))
    assert sum(seen) / len(seen) >= LEARNT
    assert sum(unseen) / len(unseen) <= CHANCE
