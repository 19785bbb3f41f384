"""The training text, a tokenizer made from it, and the run itself on Hugging Face's Trainer.

A token is a character, a word or a byte pair. Words are found by longest match in a word list, so
text without spaces has words too; without a list, words are what is between spaces.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_callback import PrinterCallback
from transformers.trainer_utils import get_last_checkpoint

from fluent_mlama.console import UserError, note, progress
from fluent_mlama.files import replacing, write_text
from fluent_mlama.scoring.tokens import tokenizer_identity
from fluent_mlama.zhoblimp.data import read_pairs
from fluent_mlama.zhoblimp.train import checkpoint_name
from fluent_mlama.zhoblimp.vocabulary import read_utf8

_BATCH = 2000
UNKNOWN, BOS, EOS, PAD = "<unk>", "<s>", "</s>", "<pad>"
SPECIAL = (UNKNOWN, BOS, EOS, PAD)
_LONG_WORD = 12


def read_lines(paths: Sequence[Path]) -> list[str]:
    """Lines of text files, one document each, or the good sentences of minimal pairs."""
    lines: list[str] = []
    for path in paths:
        if path.suffix == ".jsonl" or (path.is_dir() and any(path.glob("*.jsonl"))):
            lines += [row.good for rows in read_pairs(path).values() for row in rows]
        elif path.is_dir():
            files = sorted(path.glob("*.txt"))
            if not files:
                raise UserError(
                    f"{path}: no .txt or .jsonl files here; name a text file or a folder of them"
                )
            lines += [line for file in files for line in read_utf8(file).splitlines()]
        else:
            lines += read_utf8(path).splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    if not lines:
        raise UserError(
            f"{', '.join(map(str, paths))}: no text to train on; "
            "give one with one document per line"
        )
    return lines


def digest(lines: Sequence[str]) -> str:
    """SHA-256 of the text."""
    found = hashlib.sha256()
    for line in lines:
        found.update(line.encode("utf-8") + b"\n")
    return found.hexdigest()


def write_ids(path: Path, lines: Sequence[str], tokenizer: PreTrainedTokenizerFast) -> Counter[int]:
    """Write BOS, tokens, EOS of every line as 32-bit numbers; returns the tokens' counts."""
    counts: Counter[int] = Counter()
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    with replacing(path) as unfinished, unfinished.open("wb") as stream:
        starts = range(0, len(lines), _BATCH)
        for start in progress(starts, total=len(starts), unit="batches", label="tokenize"):
            batch = tokenizer(list(lines[start : start + _BATCH]), add_special_tokens=False)
            for ids in batch["input_ids"]:
                counts.update(ids)
                stream.write(np.array([bos, *ids, eos], dtype="<u4").tobytes())
    return counts


def write_unigrams(path: Path, counts: Counter[int], tokenizer: PreTrainedTokenizerFast) -> None:
    """``{"token id": probability}`` and the tokenizer's identity, for ``evaluate --unigrams``.

    One occurrence is added for every token; BOS and EOS are not counted.
    """
    size = len(tokenizer)
    total = sum(counts.values()) + size
    table: dict[str, Any] = {"tokenizer": tokenizer_identity(tokenizer)}
    table |= {str(token): (counts[token] + 1) / total for token in range(size)}
    write_text(path, json.dumps(table) + "\n")


class Blocks:
    """Equal stretches of the token file; labels are the tokens themselves (the model shifts them)."""

    def __init__(self, path: Path, context: int) -> None:
        self.ids = np.memmap(path, dtype="<u4", mode="r")
        self.context = context
        if len(self) == 0:
            raise UserError(
                f"the corpus has {len(self.ids)} tokens, fewer than one sequence "
                f"of --context {context}; shorten --context"
            )

    def __len__(self) -> int:
        return len(self.ids) // self.context

    def __getitem__(self, index: int) -> dict[str, Any]:
        ids = torch.from_numpy(
            self.ids[index * self.context : (index + 1) * self.context].astype(np.int64)
        )
        return {"input_ids": ids, "labels": ids}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(len(self)))


def make_tokenizer(
    kind: str, lines: Sequence[str], vocabulary_size: int, words: Iterable[str] = ()
) -> PreTrainedTokenizerFast:
    """A tokenizer over ``lines`` with the most frequent ``vocabulary_size`` tokens at most.

    Special tokens count. words: the list for kind ``word``. It adds no BOS or EOS by itself.
    """
    if kind == "bpe":
        made = _bpe(lines, vocabulary_size)
    elif kind == "char":
        made = _characters(lines, vocabulary_size)
    else:
        made = _words(lines, vocabulary_size, set(words))
    return PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token=UNKNOWN, bos_token=BOS, eos_token=EOS, pad_token=PAD
    )


def _numbered(counts: Counter[str], vocabulary_size: int) -> dict[str, int]:
    """Token -> id: special tokens first, then by frequency, ties in code point order."""
    ranked = sorted(counts, key=lambda token: (-counts[token], token))[
        : max(0, vocabulary_size - len(SPECIAL))
    ]
    return {token: number for number, token in enumerate([*SPECIAL, *ranked])}


def _characters(lines: Sequence[str], vocabulary_size: int) -> Tokenizer:
    counts = Counter(character for line in lines for character in line)
    made = Tokenizer(models.WordLevel(_numbered(counts, vocabulary_size), unk_token=UNKNOWN))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    made.decoder = decoders.Fuse()
    return made


def _words(lines: Sequence[str], vocabulary_size: int, listed: set[str]) -> Tokenizer:
    spaced = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]
    )
    counts: Counter[str] = Counter()
    for line in lines:
        for piece, _ in spaced.pre_tokenize_str(line):
            counts.update(_longest_match(piece, listed) if listed else [piece])
    longest = max(map(len, counts), default=0)
    if not listed and longest > 4 * _LONG_WORD:
        raise UserError(
            f"--tokenizer word: the corpus has 'words' of {longest} characters, "
            "so it has no spaces; give a word list with --words"
        )
    counts.update({character: 0 for word in counts for character in word} if listed else {})
    vocabulary = _numbered(counts, vocabulary_size)
    if not listed:
        made = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
        made.pre_tokenizer = spaced
        return made
    made = Tokenizer(
        models.WordPiece(
            vocabulary,
            unk_token=UNKNOWN,
            continuing_subword_prefix="",
            max_input_chars_per_word=10_000,
        )
    )
    known = "".join(re.escape(token) for token in vocabulary if len(token) == 1)
    # WordPiece calls a whole piece unknown for one strange character: set such characters apart.
    strange = pre_tokenizers.Split(Regex(f"[^{known}]"), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([spaced, strange])
    return made


def _longest_match(text: str, listed: set[str]) -> list[str]:
    """Left to right, the longest listed word, else one character (as WordPiece does)."""
    found, start = [], 0
    longest = max(map(len, listed))
    while start < len(text):
        end = min(len(text), start + longest)
        while end > start + 1 and text[start:end] not in listed:
            end -= 1
        found.append(text[start:end])
        start = end
    return found


def _bpe(lines: Sequence[str], vocabulary_size: int) -> Tokenizer:
    made = Tokenizer(models.BPE(unk_token=None))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if vocabulary_size < len(SPECIAL) + len(alphabet):
        raise UserError(
            f"--vocabulary-size {vocabulary_size}: "
            f"byte-level BPE needs at least {len(SPECIAL) + len(alphabet)}"
        )
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=list(SPECIAL),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    made.train_from_iterator(lines, trainer)
    return made


@dataclass(frozen=True)
class Recipe:
    """batch: sequences per device and forward pass; accumulate: forward passes per step.

    save_every: steps between states to resume from.
    """

    batch: int
    accumulate: int
    learning_rate: float
    seed: int
    save_every: int
    dtype: str


class Checkpoints(TrainerCallback):
    """Writes the model as it is after each wanted step, loadable by itself, whole or not at all."""

    def __init__(
        self, folder: Path, steps: Mapping[int, int], tokenizer: PreTrainedTokenizerFast
    ) -> None:
        self.folder, self.steps, self.tokenizer = folder, steps, tokenizer

    def on_step_end(
        self, args: TrainingArguments, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        """Called by the Trainer after each optimizer step."""
        if state.global_step in self.steps and state.is_world_process_zero:
            final = self.folder / checkpoint_name(self.steps[state.global_step])
            unfinished = final.with_name(f".{final.name}.partial")
            shutil.rmtree(unfinished, ignore_errors=True)
            inner = getattr(model, "module", model)
            inner.save_pretrained(unfinished)
            self.tokenizer.save_pretrained(unfinished)
            shutil.rmtree(final, ignore_errors=True)
            unfinished.rename(final)
            note(f"checkpoint {final.name}")


class ResumingTrainer(Trainer):
    """A Trainer whose model comes with its weights.

    transformers 5.24 saves GPT-NeoX's head as ``embed_out``, and its Trainer looks for ``lm_head``:
    a resumed run would continue with a fresh head. ``from_pretrained`` knows both names.
    """

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """Nothing to do: ``run_training`` has loaded the weights. The Trainer restores the rest."""


def run_training(
    config: GPTNeoXConfig,
    blocks: Blocks,
    tokenizer: PreTrainedTokenizerFast,
    out: Path,
    steps: Mapping[int, int],
    recipe: Recipe,
) -> float:
    """Train from the last kept state, if any, to the last of ``steps``; returns the final loss."""
    state_folder = out / "state"
    on_gpu = torch.cuda.is_available()
    bf16 = recipe.dtype == "bfloat16" or (
        recipe.dtype == "auto" and on_gpu and torch.cuda.is_bf16_supported()
    )
    torch.manual_seed(recipe.seed)
    last = get_last_checkpoint(str(state_folder)) if state_folder.is_dir() else None
    model = (
        GPTNeoXForCausalLM.from_pretrained(last, use_safetensors=True)
        if last
        else GPTNeoXForCausalLM(config)
    )
    arguments = TrainingArguments(
        output_dir=str(state_folder),
        max_steps=max(steps),
        per_device_train_batch_size=recipe.batch,
        gradient_accumulation_steps=recipe.accumulate,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr_rate": 0.1},
        warmup_steps=max(1, max(steps) // 100),
        adam_beta2=0.95,
        weight_decay=0.1,
        max_grad_norm=1.0,
        bf16=bf16,
        use_cpu=not on_gpu,
        save_strategy="steps",
        save_steps=recipe.save_every,
        save_total_limit=2,
        logging_steps=max(1, max(steps) // 50),
        report_to=[],
        disable_tqdm=not sys.stderr.isatty(),
        seed=recipe.seed,
        dataloader_drop_last=True,
        remove_unused_columns=False,
    )
    trainer = ResumingTrainer(
        model=model,
        args=arguments,
        train_dataset=blocks,
        callbacks=[Checkpoints(out, steps, tokenizer)],
    )
    trainer.remove_callback(PrinterCallback)
    if last:
        note(f"going on from {Path(last).name.replace('checkpoint-', 'step ')} of {max(steps)}")
    return float(trainer.train(resume_from_checkpoint=last).training_loss)
