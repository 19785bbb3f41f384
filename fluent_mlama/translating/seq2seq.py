"""Any Hugging Face translation model on this machine: NLLB, M2M-100, mBART, MADLAD (T5) and
OPUS-MT, in batches.

Greedy or beam search without sampling: the same model gives the same sentences. transformers is
imported when a model is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from fluent_mlama.console import UserError
from fluent_mlama.scoring.identity import model_identity, shown_name
from fluent_mlama.translating.backend import (
    OK,
    Answer,
    SourceSentence,
    TranslatorOptions,
    back_end,
    text_hash,
)
from fluent_mlama.translating.codes import opus_token, seq2seq_language

_SMOLLM2 = re.compile(
    r"[,;] or (try|use --device cpu with) --model smollm2(, which needs no download)?"
)


@contextmanager
def _own_advice() -> Iterator[None]:
    """The loader's errors without its advice to take smollm2, which does not translate."""
    try:
        yield
    except UserError as error:
        raise UserError(_SMOLLM2.sub("", str(error))) from error


class Seq2SeqTranslator:
    """model: a Hugging Face id or a folder; device: "auto", "cpu", "cuda" …; beams: 1 is greedy.

    max_new_tokens: a translation that has not ended by then gets the status ``cut``.
    """

    name = "seq2seq"
    costly = True

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        device: str = "auto",
        batch_size: int = 16,
        beams: int = 4,
        max_new_tokens: int = 128,
    ) -> None:
        if not model:
            raise UserError(
                "seq2seq needs a model: seq2seq:facebook/nllb-200-distilled-600M,"
                " seq2seq:Helsinki-NLP/opus-mt-en-ru …"
            )
        self._path, self._revision, self._device = model, revision, device
        self._batch_size, self._beams, self._max_new_tokens = batch_size, beams, max_new_tokens
        self._loaded: tuple[Any, Any] | None = None

    @cached_property
    def model(self) -> str:
        """Name and identity: other weights under the same name give other answers."""
        with _own_advice():
            return f"{shown_name(self._path)}@{model_identity(self._path, self._revision)}"

    def check(self, source: str, target: str, relation: str) -> None:
        tokenizer, model = self._load()
        _prefix_and_target(tokenizer, model, source, target)

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        return text_hash(f"beams {self._beams}", f"at most {self._max_new_tokens} tokens")

    def query(self, item: SourceSentence) -> str:
        return item.sentence

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        by_pair: dict[tuple[str, str], list[SourceSentence]] = {}
        for item in items:
            by_pair.setdefault((item.source, item.target), []).append(item)
        for (source, target), group in by_pair.items():
            tokenizer, model = self._load()
            prefix, options = _prefix_and_target(tokenizer, model, source, target)
            group.sort(key=lambda item: len(item.sentence))  # like lengths together: little padding
            for start in range(0, len(group), self._batch_size):
                batch = group[start : start + self._batch_size]
                yield from zip(
                    batch,
                    self._generate(
                        tokenizer, model, [prefix + item.sentence for item in batch], options
                    ),
                    strict=True,
                )

    def _generate(
        self, tokenizer: Any, model: Any, sentences: list[str], options: dict[str, int]
    ) -> list[Answer]:
        inputs = tokenizer(sentences, return_tensors="pt", padding=True, truncation=True).to(
            model.device
        )
        tokens = model.generate(
            **inputs,
            num_beams=self._beams,
            do_sample=False,
            max_new_tokens=self._max_new_tokens,
            **options,
        )
        ends = {model.generation_config.eos_token_id, tokenizer.eos_token_id}
        texts = tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return [
            Answer(text, OK if self._has_ended(row.tolist(), ends) else "cut")
            for text, row in zip(texts, tokens, strict=True)
        ]

    def _has_ended(self, row: list[int], ends: set[int]) -> bool:
        """Whether the model itself ended the sentence: many are made to write an end mark at the
        limit, which says nothing.

        row: the decoder's start token (it may be the end mark too), then what was generated,
        padded.
        """
        return bool(ends & set(row[1 : self._max_new_tokens]))

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            from fluent_mlama.scoring.models import load_model

            with _own_advice():
                loaded = load_model(
                    self._path, kind="translation", device=self._device, revision=self._revision
                )
            self._loaded = (loaded.tokenizer, loaded.model)
        return self._loaded


def _prefix_and_target(
    tokenizer: Any, model: Any, source: str, target: str
) -> tuple[str, dict[str, int]]:
    """What comes before each sentence, and the options of ``generate`` for the target language."""
    if hasattr(tokenizer, "supported_language_codes"):  # OPUS-MT (Marian)
        token = opus_token(tokenizer.supported_language_codes, target)
        return (f"{token} " if token else ""), {}
    if hasattr(
        tokenizer, "src_lang"
    ):  # M2M-100 and mBART list their languages, NLLB has a token for each
        ids = getattr(tokenizer, "lang_code_to_id", None) or {
            token: number
            for token, number in tokenizer.get_added_vocab().items()
            if re.fullmatch(r"[a-z]{3}_[A-Z][a-z]{3}", token)
        }
        tokenizer.src_lang = seq2seq_language(ids, source)
        return "", {"forced_bos_token_id": ids[seq2seq_language(ids, target)]}
    # MADLAD marks the target language inside the sentence.
    mark = f"<2{target}>"
    if mark in tokenizer.get_vocab():  # MADLAD
        return f"{mark} ", {}
    raise UserError(
        f"'{tokenizer.name_or_path}' is not a translation model that this back end knows (OPUS-MT,"
        " NLLB, M2M-100, mBART, MADLAD)"
    )


@back_end("seq2seq")
def _from_name(argument: str, options: TranslatorOptions) -> Seq2SeqTranslator:
    return Seq2SeqTranslator(argument, device=options.device)
