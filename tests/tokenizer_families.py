"""A trained tokenizer of every family that matters, on the starter's capitals in several languages, made in the process."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    GPTSw3Tokenizer,
    PreTrainedTokenizerFast,
    T5Tokenizer,
    XGLMTokenizer,
    XLMRobertaTokenizer,
)
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

from fluent_mlama.mlama.items import make_questions
from fluent_mlama.reader import MLama
from tests.conftest import ROOT

Fact = tuple[str, str, str]
"""Text left of the object, object, text right of it."""
FACTS_A_LANGUAGE = 10
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@cache
def facts() -> dict[str, tuple[Fact, ...]]:
    """Language -> capitals; the last three have no blank around the object, or the object first."""
    data = MLama(ROOT / "fluent_mlama" / "data" / "starter")
    found = {}
    for lang in ("en", "es", "ru", "zh", "vi"):
        asked = make_questions(data, lang, "P36").questions[:FACTS_A_LANGUAGE]
        found[lang] = tuple((one.left, one.triple.obj_label, one.right) for one in asked)
    names = {
        lang: [
            (q.triple.sub_label, q.triple.obj_label)
            for q in make_questions(data, lang, "P36").questions
        ]
        for lang in found
    }
    few = slice(FACTS_A_LANGUAGE)
    found["ja"] = tuple(
        (f"{country}の首都は", city, "です。") for country, city in names["zh"][few]
    )
    found["th"] = tuple(
        (f"เมืองหลวงของ{country}คือ", city, "ครับ") for country, city in names["en"][few]
    )
    found["first"] = tuple(
        ("", city, f" est la capitale de {country} ; l'{country}.")
        for country, city in names["es"][few]
    )
    return found


def sentences() -> list[str]:
    """Every fact as its sentence."""
    return ["".join(fact) for its in facts().values() for fact in its]


def _bpe(
    pre: Any = None, normalizer: Any = None, decoder: Any = None, *, byte_level: bool = True
) -> Tokenizer:
    tokenizer = Tokenizer(
        models.BPE(
            unk_token=None if byte_level else "<unk>",
            byte_fallback=not byte_level,
            fuse_unk=not byte_level,
        )
    )
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoder or decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    more = [] if byte_level else [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=SPECIAL + more,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    return tokenizer


@cache
def _sentencepiece() -> bytes:
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences() * 3), model_writer=made, vocab_size=420, character_coverage=1.0, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    return made.getvalue()


@cache
def _unigram() -> tuple[list[tuple[str, float]], bytes]:
    """Pieces with scores, and the normaliser's table, of a SentencePiece model."""
    model = sentencepiece_model_pb2.ModelProto.FromString(_sentencepiece())
    pieces = [
        (piece.piece, piece.score)
        for piece in model.pieces
        if piece.piece not in {"<unk>", "<s>", "</s>"}
    ]
    return pieces, model.normalizer_spec.precompiled_charsmap


def _wrap(
    tokenizer: Tokenizer, around: str, *, greedy_mask: bool = False
) -> PreTrainedTokenizerFast:
    """``around``: the template of special tokens, ``"<s> $A </s>"``."""
    named = [word for word in around.split() if word != "$A"]
    ids = [(word, tokenizer.token_to_id(word)) for word in dict.fromkeys(named)]
    tokenizer.post_processor = processors.TemplateProcessing(single=around, special_tokens=ids)
    names: dict[str, Any] = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    }
    if greedy_mask:
        from tokenizers import AddedToken

        names["mask_token"] = AddedToken("<mask>", lstrip=True, special=True)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def _byte_level(prefix_space: bool) -> Tokenizer:
    return _bpe(pre_tokenizers.ByteLevel(add_prefix_space=prefix_space))


def _split_regex(pattern: str) -> Tokenizer:
    steps = [
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    return _bpe(pre_tokenizers.Sequence(steps))


def _pieces_decoder() -> Any:
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])


def _llama2_legacy() -> Tokenizer:
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return _bpe(None, normalizer, _pieces_decoder(), byte_level=False)


def _llama2() -> Tokenizer:
    return _bpe(
        pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
        None,
        _pieces_decoder(),
        byte_level=False,
    )


def _gemma() -> Tokenizer:
    pre = pre_tokenizers.Split(" ", "merged_with_previous")
    return _bpe(pre, normalizers.Replace(" ", "▁"), _pieces_decoder(), byte_level=False)


def _metaspace(scheme: str, split: bool = True) -> Tokenizer:
    pieces, table = _unigram()
    tokenizer = Tokenizer(models.Unigram([(token, 0.0) for token in SPECIAL] + pieces, unk_id=3))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(table), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return tokenizer


def _unigram_bytes() -> Tokenizer:
    """Unigram that writes what it does not know as bytes (llm-jp and other Japanese models), with few pieces beside the alphabet."""
    pieces = (
        [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
        + [("▁", -2.0)]
        + [(letter, -3.0) for letter in "abcdeilmnoprstuLP"]
    )
    tokenizer = Tokenizer(
        models.Unigram([(token, 0.0) for token in SPECIAL] + pieces, unk_id=3, byte_fallback=True)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    tokenizer.decoder = _pieces_decoder()
    return tokenizer


def unknown_is_bos() -> PreTrainedTokenizerFast:
    """Words, with one token for begin, end and unknown."""
    words = ["<e>", *sorted({word for sentence in sentences() for word in sentence.split()})]
    tokenizer = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<e>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<e> $A", special_tokens=[("<e>", 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<e>", eos_token="<e>", unk_token="<e>"
    )


def _wordpiece(lowercase: bool) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=700, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(sentences(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {
        name: f"[{name[:-6].upper()}]"
        for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    }
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def _slow_bert() -> Any:
    """A tokenizer in Python, which gives no offsets."""
    pieces = sorted(family("bert-cased").get_vocab().items(), key=lambda entry: entry[1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("".join(f"{piece}\n" for piece, _ in pieces), encoding="utf-8")
        return BertTokenizerLegacy(str(path), do_lower_case=False)


def _slow_pieces() -> Any:
    """SentencePiece itself behind the library, without offsets."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spiece.model"
        path.write_bytes(_sentencepiece())
        return GPTSw3Tokenizer(
            str(path),
            bos_token="<s>",
            eos_token="</s>",
            unk_token="<unk>",
            pad_token="</s>",
            mask_token="<mask>",
        )


def _library(kind: Callable[..., Any]) -> Any:
    """A tokenizer that the library builds from SentencePiece's pieces and normaliser."""
    pieces, table = _unigram()
    first = [(token, 0.0) for token in SPECIAL]
    if kind is T5Tokenizer:
        first = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
        return kind(
            vocab=first + pieces, _spm_precompiled_charsmap=table, extra_ids=0, mask_token="<mask>"
        )
    order = ["<s>", "<pad>", "</s>", "<unk>"]
    return kind(
        vocab=[(token, 0.0) for token in order] + pieces + [("<mask>", 0.0)],
        _spm_precompiled_charsmap=table,
        mask_token="<mask>",
    )


FAMILIES: dict[str, Callable[[], Any]] = {
    "gpt2": lambda: _wrap(_byte_level(False), "$A"),
    "roberta": lambda: _wrap(_byte_level(False), "<s> $A </s>", greedy_mask=True),
    "roberta-prefix-space": lambda: _wrap(_byte_level(True), "<s> $A </s>", greedy_mask=True),
    "llama3": lambda: _wrap(_split_regex(LLAMA3), "<s> $A"),
    "llama2-legacy": lambda: _wrap(_llama2_legacy(), "<s> $A"),
    "llama2-end-mark": lambda: _wrap(_llama2_legacy(), "<s> $A </s>"),
    "llama2": lambda: _wrap(_llama2(), "<s> $A"),
    "gemma": lambda: _wrap(_gemma(), "<s> $A"),
    "metaspace-always": lambda: _wrap(_metaspace("always"), "<s> $A </s>"),
    "metaspace-first": lambda: _wrap(_metaspace("first"), "<s> $A </s>"),
    "metaspace-never": lambda: _wrap(_metaspace("never"), "<s> $A </s>"),
    "metaspace-unsplit": lambda: _wrap(_metaspace("always", split=False), "</s> <s> $A </s>"),
    "unigram-bytes": lambda: _wrap(_unigram_bytes(), "<s> $A"),
    "xlm-roberta": lambda: _library(XLMRobertaTokenizer),
    "xglm": lambda: _library(XGLMTokenizer),
    "t5": lambda: _library(T5Tokenizer),
    "bert-cased": lambda: _wordpiece(False),
    "bert-uncased": lambda: _wordpiece(True),
    "slow-bert": _slow_bert,
    "slow-pieces": _slow_pieces,
}


@cache
def family(name: str) -> Any:
    """The tokenizer of a family, made once."""
    return FAMILIES[name]()


def natural(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """What a model trained with this tokenizer saw of each text."""
    return [list(ids) for ids in tokenizer(list(texts))["input_ids"]]
