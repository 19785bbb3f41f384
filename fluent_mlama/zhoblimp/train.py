"""``train``: a model from scratch on a corpus, with checkpoints by tokens, to see when it learns which contrast.

The same command goes on where it was interrupted. Several GPUs: ``accelerate launch -m probes.zhoblimp train …``.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from fluent_mlama.console import UserError, note, seed_number, whole_number
from fluent_mlama.json_text import parse_json
from fluent_mlama.records.atomic import check_writable, new_folders, write_text
from fluent_mlama.zhoblimp.training.sizes import (
    SIZES,
    checkpoint_name,
    checkpoint_steps,
    configuration,
    parse_tokens,
)
from fluent_mlama.zhoblimp.vocabulary import read_utf8

_KINDS = ("char", "word", "bpe")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``train``."""
    parser.add_argument(
        "--corpus",
        type=Path,
        action="append",
        required=True,
        help="text, a document a line; or pairs (their good sentences)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="folder for the checkpoints (tokens-N), the tokenizer's unigrams and the state",
    )
    parser.add_argument(
        "--size",
        choices=list(SIZES),
        default="14M",
        help="GPT-NeoX shape, named as in Pythia (default 14M)",
    )
    parser.add_argument(
        "--tokenizer", choices=_KINDS, default="char", help="what a token is (default char)"
    )
    parser.add_argument(
        "--vocabulary-size",
        type=whole_number(1),
        default=20000,
        help="tokens at most (default 20000)",
    )
    parser.add_argument(
        "--words",
        type=Path,
        help="for --tokenizer word: a word list, a word a line (a vocabulary.tsv will do)",
    )
    parser.add_argument(
        "--tokens",
        default="10M",
        help="how many tokens to train on, e.g. 3B (default 10M); the corpus is repeated",
    )
    parser.add_argument(
        "--checkpoints",
        default="",
        help="after how many tokens to keep the model, e.g. 1M,2M,5M; the end always",
    )
    parser.add_argument(
        "--context", type=whole_number(1), default=512, help="tokens a stretch (default 512)"
    )
    parser.add_argument(
        "--batch",
        type=whole_number(1),
        default=16,
        help="stretches a device and forward (default 16)",
    )
    parser.add_argument(
        "--accumulate", type=whole_number(1), default=1, help="forwards a step (default 1)"
    )
    parser.add_argument("--learning-rate", type=float, help="peak (default: the size's own)")
    parser.add_argument(
        "--save-every",
        type=whole_number(1),
        default=200,
        help="steps between states to resume from (default 200)",
    )
    parser.add_argument(
        "--dtype",
        choices=("auto", "float32", "bfloat16"),
        default="auto",
        help="auto: bfloat16 on a GPU that has it",
    )
    parser.add_argument("--seed", type=seed_number, default=0)


def run(arguments: argparse.Namespace) -> int:
    """Check, prepare (once), train, and say what to do next."""
    budget = parse_tokens(arguments.tokens)
    if arguments.learning_rate is not None and not 0 < arguments.learning_rate < math.inf:
        raise UserError(f"--learning-rate {arguments.learning_rate}: a number above 0")
    checkpoint_steps(arguments.checkpoints, budget, 1)
    check_writable(arguments.out, "--out")
    from fluent_mlama.zhoblimp.training.corpus import Blocks, digest, read_lines

    lines = read_lines(arguments.corpus)
    import torch
    from accelerate import PartialState
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    machines = PartialState(cpu=not torch.cuda.is_available())
    tokens_per_step = (
        arguments.context * arguments.batch * arguments.accumulate * machines.num_processes
    )
    steps = checkpoint_steps(arguments.checkpoints, budget, tokens_per_step)
    settings = {
        **_settings(arguments),
        "corpus_sha256": digest(lines),
        "tokens_per_step": tokens_per_step,
    }
    with machines.main_process_first():
        _prepare(arguments, settings, lines)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(arguments.out / "tokenizer")
    blocks = Blocks(arguments.out / "corpus.ids", arguments.context)
    config = configuration(
        arguments.size,
        len(tokenizer),
        arguments.context,
        tokenizer.bos_token_id,
        tokenizer.eos_token_id,
    )
    if all(
        (arguments.out / checkpoint_name(tokens) / "config.json").is_file()
        for tokens in steps.values()
    ):
        note("every checkpoint is there already; nothing to train")
        return 0
    from fluent_mlama.zhoblimp.training.loop import Recipe, train

    rate = arguments.learning_rate or SIZES[arguments.size].learning_rate
    recipe = Recipe(
        arguments.batch,
        arguments.accumulate,
        rate,
        arguments.seed,
        arguments.save_every,
        arguments.dtype,
    )
    if machines.is_main_process:
        note(
            f"{len(blocks.ids):,} tokens in the corpus, {max(steps):,} steps of {tokens_per_step:,}, vocabulary of {len(tokenizer):,}"
        )
    loss = train(config, blocks, tokenizer, arguments.out, steps, recipe)
    if not machines.is_main_process:
        return 0
    print(
        f"loss {loss:z.4f}; {len(steps)} checkpoints in {arguments.out}. Next: python -m probes.zhoblimp evaluate",
        end=" ",
    )
    print(
        f"--model {arguments.out} --revisions ALL --unigram {arguments.out / 'unigram.json'} --data PAIRS --out RESULTS"
    )
    return 0


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
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
    return {name: getattr(arguments, name) for name in names}


def _prepare(arguments: argparse.Namespace, settings: dict[str, Any], lines: list[str]) -> None:
    """Tokenizer, token file and unigrams, unless an earlier run of the same settings made them."""
    from fluent_mlama.zhoblimp.training.corpus import Blocks, write_ids, write_unigrams
    from fluent_mlama.zhoblimp.training.tokenizer import make_tokenizer

    record = arguments.out / "train.json"
    if record.is_file():
        before = read_record(record)
        changed = [name for name, value in settings.items() if before.get(name) != value]
        if changed:
            name = changed[0]
            raise UserError(
                f"{arguments.out} was begun with {name} {before.get(name)}, not {settings[name]}; choose another --out"
            )
        return
    words = (
        [line.split("\t")[0].strip() for line in read_utf8(arguments.words).splitlines()]
        if arguments.words
        else []
    )
    if arguments.words and arguments.tokenizer != "word":
        raise UserError(
            f"--words goes with --tokenizer word, not {arguments.tokenizer}; leave it out"
        )
    tokenizer = make_tokenizer(
        arguments.tokenizer, lines, arguments.vocabulary_size, filter(None, words)
    )
    with new_folders(arguments.out):
        counts = write_ids(arguments.out / "corpus.ids", lines, tokenizer)
        try:
            Blocks(arguments.out / "corpus.ids", arguments.context)
        except UserError:
            (arguments.out / "corpus.ids").unlink()
            raise
    tokenizer.save_pretrained(arguments.out / "tokenizer")
    write_unigrams(arguments.out / "unigram.json", counts, tokenizer)
    write_text(record, json.dumps(settings, indent=1) + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """The settings that a folder was begun with."""
    try:
        return dict(parse_json(read_utf8(path), path.name))
    except (ValueError, TypeError):
        raise UserError(
            f"{path} is damaged, and says what the checkpoints beside it were made with; choose another --out"
        ) from None
