"""``train``: a model from scratch on a corpus, with checkpoints by tokens, to see when it learns which contrast.

The same command goes on where it was interrupted. Several GPUs: ``accelerate launch -m probes.zhoblimp train …``.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from fluent_mlama.console import UserError, note
from fluent_mlama.json_text import parse_json
from fluent_mlama.options import Count, File, Files, Seed
from fluent_mlama.records.atomic import check_writable, new_folders, write_text
from fluent_mlama.zhoblimp.training.sizes import (
    SIZES,
    checkpoint_name,
    checkpoint_steps,
    configuration,
    parse_tokens,
)
from fluent_mlama.zhoblimp.vocabulary import read_utf8

Size = Annotated[str, Parameter(choices=tuple(SIZES), help="GPT-NeoX shape, named as in Pythia")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What to train, on what, and how long."""

    corpus: Files
    """text, a document per line; or pairs (their good sentences); may be repeated"""
    out: File
    """folder for the checkpoints (tokens-N), the tokenizer's unigrams and the state"""
    size: Size = "14M"
    tokenizer: Literal["char", "word", "bpe"] = "char"
    """what a token is"""
    vocabulary_size: Count = 20000
    """tokens at most"""
    words: File | None = None
    """for --tokenizer word: a word list, a word per line (a vocabulary.tsv will do)"""
    tokens: str = "10M"
    """how many tokens to train on, e.g. 3B; the corpus is repeated"""
    checkpoints: str = ""
    """after how many tokens to keep the model, e.g. 1M,2M,5M; the end always"""
    context: Count = 512
    """tokens per stretch"""
    batch: Count = 16
    """stretches per device and forward pass"""
    accumulate: Count = 1
    """forward passes per step"""
    learning_rate: float | None = None
    """peak (default: the size's own)"""
    save_every: Count = 200
    """steps between states to resume from"""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: bfloat16 on a GPU that has it"""
    seed: Seed = 0


def train_model(*, options: TrainOptions) -> None:
    """Train a model from scratch on a corpus, with checkpoints by tokens; the same command goes on after a stop.

    fluent-mlama zhoblimp train --corpus corpus.txt --tokens 100M --checkpoints 10M,50M --out models/zh
    """
    budget = parse_tokens(options.tokens)
    if options.learning_rate is not None and not 0 < options.learning_rate < math.inf:
        raise UserError(f"--learning-rate {options.learning_rate}: a number above 0")
    checkpoint_steps(options.checkpoints, budget, 1)
    check_writable(options.out, "--out")
    from fluent_mlama.zhoblimp.training.corpus import Blocks, digest, read_lines

    lines = read_lines(options.corpus)
    import torch
    from accelerate import PartialState
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    machines = PartialState(cpu=not torch.cuda.is_available())
    tokens_per_step = options.context * options.batch * options.accumulate * machines.num_processes
    steps = checkpoint_steps(options.checkpoints, budget, tokens_per_step)
    settings = {
        **_settings(options),
        "corpus_sha256": digest(lines),
        "tokens_per_step": tokens_per_step,
    }
    with machines.main_process_first():
        _prepare(options, settings, lines)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(options.out / "tokenizer")
    blocks = Blocks(options.out / "corpus.ids", options.context)
    config = configuration(
        options.size,
        len(tokenizer),
        options.context,
        tokenizer.bos_token_id,
        tokenizer.eos_token_id,
    )
    if all(
        (options.out / checkpoint_name(tokens) / "config.json").is_file()
        for tokens in steps.values()
    ):
        note("every checkpoint is there already; nothing to train")
        return
    from fluent_mlama.zhoblimp.training.loop import Recipe, train

    rate = options.learning_rate or SIZES[options.size].learning_rate
    recipe = Recipe(
        options.batch,
        options.accumulate,
        rate,
        options.seed,
        options.save_every,
        options.dtype,
    )
    if machines.is_main_process:
        note(
            f"{len(blocks.ids):,} tokens in the corpus, {max(steps):,} steps of {tokens_per_step:,}, vocabulary of {len(tokenizer):,}"
        )
    loss = train(config, blocks, tokenizer, options.out, steps, recipe)
    if not machines.is_main_process:
        return
    print(
        f"loss {loss:z.4f}; {len(steps)} checkpoints in {options.out}. Next: fluent-mlama zhoblimp evaluate",
        end=" ",
    )
    print(
        f"--model {options.out} --revisions ALL --unigrams {options.out / 'unigram.json'} --data PAIRS --out RESULTS"
    )


def _settings(options: TrainOptions) -> dict[str, Any]:
    """What must not change between a run and its continuation. More checkpoints and another batch of states may."""
    names = (
        "size",
        "tokenizer",
        "vocabulary_size",
        "tokens",
        "context",
        "batch",
        "accumulate",
        "learning_rate",
        "dtype",
        "seed",
    )
    return {name: getattr(options, name) for name in names}


def _prepare(options: TrainOptions, settings: dict[str, Any], lines: list[str]) -> None:
    """Tokenizer, token file and unigrams, unless an earlier run of the same settings made them."""
    from fluent_mlama.zhoblimp.training.corpus import Blocks, write_ids, write_unigrams
    from fluent_mlama.zhoblimp.training.tokenizer import make_tokenizer

    record = options.out / "train.json"
    if record.is_file():
        before = read_record(record)
        changed = [name for name, value in settings.items() if before.get(name) != value]
        if changed:
            name = changed[0]
            raise UserError(
                f"{options.out} was begun with {name} {before.get(name)}, not {settings[name]}; choose another --out"
            )
        return
    words = (
        [line.split("\t")[0].strip() for line in read_utf8(options.words).splitlines()]
        if options.words
        else []
    )
    if options.words and options.tokenizer != "word":
        raise UserError(
            f"--words goes with --tokenizer word, not {options.tokenizer}; leave it out"
        )
    tokenizer = make_tokenizer(
        options.tokenizer, lines, options.vocabulary_size, filter(None, words)
    )
    with new_folders(options.out):
        counts = write_ids(options.out / "corpus.ids", lines, tokenizer)
        try:
            Blocks(options.out / "corpus.ids", options.context)
        except UserError:
            (options.out / "corpus.ids").unlink()
            raise
    tokenizer.save_pretrained(options.out / "tokenizer")
    write_unigrams(options.out / "unigram.json", counts, tokenizer)
    write_text(record, json.dumps(settings, indent=1) + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """The settings that a folder was begun with."""
    try:
        return dict(parse_json(read_utf8(path), path.name))
    except (ValueError, TypeError):
        raise UserError(
            f"{path} is damaged, and says what the checkpoints beside it were made with; choose another --out"
        ) from None
