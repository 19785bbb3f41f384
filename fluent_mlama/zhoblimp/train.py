"""``train``: a model from scratch on a corpus, with checkpoints by tokens.

Shows when a model learns which contrast. Several GPUs:
``accelerate launch -m fluent_mlama.zhoblimp train …``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fluent_mlama.console import UserError, note
from fluent_mlama.files import check_writable, new_folders, parse_json, write_text
from fluent_mlama.options import Count, File, Files, Name, Names, Seed
from fluent_mlama.zhoblimp.vocabulary import read_utf8

if TYPE_CHECKING:
    from transformers import GPTNeoXConfig


@dataclass(frozen=True)
class Size:
    """Layers, width, attention heads, and the learning rate's peak.

    The shapes and names are Pythia's (Biderman et al. 2023, table 1). What a size really counts
    depends on the vocabulary, and is printed when training starts.
    """

    layers: int
    width: int
    heads: int
    learning_rate: float


SIZES: dict[str, Size] = {
    "tiny": Size(2, 128, 4, 2e-3),
    "14M": Size(6, 128, 4, 1e-3),
    "70M": Size(6, 512, 8, 1e-3),
    "160M": Size(12, 768, 12, 6e-4),
    "410M": Size(24, 1024, 16, 3e-4),
    "1B": Size(16, 2048, 8, 3e-4),
    "1.4B": Size(24, 2048, 16, 2e-4),
}
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9}


def configuration(
    size: str, vocabulary_size: int, context: int, bos: int, eos: int
) -> GPTNeoXConfig:
    """The transformers configuration of a named size."""
    from transformers import GPTNeoXConfig

    shape = SIZES[size]
    return GPTNeoXConfig(
        vocab_size=vocabulary_size,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
        max_position_embeddings=context,
        bos_token_id=bos,
        eos_token_id=eos,
        tie_word_embeddings=False,
    )


def parse_tokens(text: str) -> int:
    """``3B``, ``100M``, ``50k`` or a plain number of tokens, at least 1."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmb]?)", text.strip().lower())
    amount = round(float(match[1]) * _UNITS[match[2]]) if match else 0
    if amount < 1:
        raise UserError(f"'{text}' is not an amount of tokens; write e.g. 3B, 100M, 50k or 20000")
    return amount


def checkpoint_steps(
    checkpoints: Sequence[str], budget: int, tokens_per_step: int
) -> dict[int, int]:
    """Step -> tokens seen, for every wanted checkpoint and the end of the budget.

    Tokens are rounded up to whole steps.
    """
    wanted = sorted({parse_tokens(part) for part in checkpoints} | {budget})
    if wanted[-1] > budget:
        raise UserError(
            f"--checkpoints asks for {wanted[-1]} tokens, --tokens allows {budget}; "
            "raise --tokens or leave it out"
        )
    steps = {-(-amount // tokens_per_step) for amount in wanted}
    return {step: step * tokens_per_step for step in sorted(steps)}


def checkpoint_name(tokens: int) -> str:
    """Folder name of the checkpoint after so many tokens; sorts by number."""
    return f"tokens-{tokens:012d}"


def tokens_of(name: str) -> int | None:
    """Tokens seen, from a checkpoint's folder name; None for any other name."""
    match = re.fullmatch(r"tokens-(\d+)", name)
    return int(match[1]) if match else None


@Parameter(name="*", group="the training")
@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What must not change between a run and its continuation."""

    size: Literal["tiny", "14M", "70M", "160M", "410M", "1B", "1.4B"] = "14M"
    """GPT-NeoX shape, named as in Pythia"""
    tokenizer: Literal["char", "word", "bpe"] = "char"
    """what a token is"""
    vocabulary_size: Count = 20000
    """tokens at most"""
    tokens: Name = "10M"
    """how many tokens to train on, e.g. 3B; the corpus is repeated"""
    context: Count = 512
    """tokens per sequence"""
    batch: Count = 16
    """sequences per device and forward pass"""
    accumulate: Count = 1
    """forward passes per step"""
    learning_rate: float | None = None
    """peak (default: the size's own)"""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: bfloat16 on a GPU that has it"""
    seed: Seed = 0


TRAINING = TrainingOptions()


def train(
    *,
    corpus: Annotated[Files, Parameter(help="text, one document per line; or pairs (good ones)")],
    out: Annotated[File, Parameter(help="folder for checkpoints (tokens-N), unigrams, state")],
    words: File | None = None,
    checkpoints: Names = (),
    save_every: Count = 200,
    training: TrainingOptions = TRAINING,
) -> int:
    """Train a model from scratch, with checkpoints by tokens.

        fluent-mlama zhoblimp train --corpus corpus.txt --tokens 100M --out suite/14M
        accelerate launch -m fluent_mlama.zhoblimp train …

    The same command continues an interrupted run.

    Args:
        words: for --tokenizer word: a list, one word per line (a vocabulary.tsv will do)
        checkpoints: after how many tokens to keep the model, e.g. 1M,2M,5M; the end always
        save_every: steps between states to resume from
    """
    budget = parse_tokens(training.tokens)
    rate = training.learning_rate
    if rate is not None and not 0 < rate < math.inf:
        raise UserError(f"--learning-rate {rate}: a number above 0")
    checkpoint_steps(checkpoints, budget, 1)
    check_writable(out, "--out")
    from fluent_mlama.zhoblimp.training import Blocks, digest, read_lines

    lines = read_lines(corpus)
    import torch
    from accelerate import PartialState
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    machines = PartialState(cpu=not torch.cuda.is_available())
    tokens_per_step = (
        training.context * training.batch * training.accumulate * machines.num_processes
    )
    steps = checkpoint_steps(checkpoints, budget, tokens_per_step)
    settings = {
        **asdict(training),
        "corpus_sha256": digest(lines),
        "tokens_per_step": tokens_per_step,
    }
    with machines.main_process_first():
        _prepare(out, training, settings, lines, words)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(out / "tokenizer")
    blocks = Blocks(out / "corpus.ids", training.context)
    config = configuration(
        training.size,
        len(tokenizer),
        training.context,
        tokenizer.bos_token_id,
        tokenizer.eos_token_id,
    )
    names = [checkpoint_name(tokens) for tokens in steps.values()]
    if all((out / name / "config.json").is_file() for name in names):
        note("every checkpoint is there already; nothing to train")
        return 0
    from fluent_mlama.zhoblimp.training import Recipe, run_training

    recipe = Recipe(
        training.batch,
        training.accumulate,
        rate or SIZES[training.size].learning_rate,
        training.seed,
        save_every,
        training.dtype,
    )
    if machines.is_main_process:
        note(
            f"{len(blocks.ids):,} tokens in the corpus, {max(steps):,} steps "
            f"of {tokens_per_step:,}, vocabulary of {len(tokenizer):,}"
        )
    loss = run_training(config, blocks, tokenizer, out, steps, recipe)
    if machines.is_main_process:
        print(
            f"loss {loss:z.4f}; {len(steps)} checkpoints in {out}. "
            f"Next: fluent-mlama zhoblimp evaluate --model {out} --revisions ALL "
            f"--unigrams {out / 'unigram.json'} --data PAIRS --out RESULTS"
        )
    return 0


def _prepare(
    out: Path,
    training: TrainingOptions,
    settings: dict[str, Any],
    lines: list[str],
    words: Path | None,
) -> None:
    """Tokenizer, token file and unigrams, unless an earlier run of the same settings made them."""
    from fluent_mlama.zhoblimp.training import Blocks, make_tokenizer, write_ids, write_unigrams

    record = out / "train.json"
    if record.is_file():
        before = read_record(record)
        for name, value in settings.items():
            if before.get(name) != value:
                raise UserError(
                    f"{out} was begun with {name} {before.get(name)}, not {value}; "
                    "choose another --out"
                )
        return
    if words and training.tokenizer != "word":
        raise UserError(
            f"--words goes with --tokenizer word, not {training.tokenizer}; leave it out"
        )
    listed = (
        [line.split("\t")[0].strip() for line in read_utf8(words).splitlines()] if words else []
    )
    tokenizer = make_tokenizer(
        training.tokenizer, lines, training.vocabulary_size, filter(None, listed)
    )
    with new_folders(out):
        counts = write_ids(out / "corpus.ids", lines, tokenizer)
        try:
            Blocks(out / "corpus.ids", training.context)
        except UserError:
            (out / "corpus.ids").unlink()
            raise
    tokenizer.save_pretrained(out / "tokenizer")
    write_unigrams(out / "unigram.json", counts, tokenizer)
    write_text(record, json.dumps(settings, indent=1) + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """The settings that a folder was begun with."""
    try:
        return dict(parse_json(read_utf8(path), path.name))
    except (ValueError, TypeError):
        raise UserError(
            f"{path} is damaged, and says what the checkpoints beside it were made with; "
            "choose another --out"
        ) from None
