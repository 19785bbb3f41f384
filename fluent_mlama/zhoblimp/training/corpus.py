"""The training text: lines in, one long file of token ids out, and the tokens' frequencies."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fluent_mlama.console import UserError, progress
from fluent_mlama.records.atomic import replacing, write_text
from fluent_mlama.scoring.text_tokens import tokenizer_identity
from fluent_mlama.zhoblimp.data import read_pairs
from fluent_mlama.zhoblimp.vocabulary import read_utf8

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_BATCH = 2000


def read_lines(paths: Sequence[Path]) -> list[str]:
    """Lines of text files, a document each; of minimal pairs (.jsonl, or a folder of them) the good sentences."""
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
            f"{', '.join(map(str, paths))}: no text to train on; give one with a document a line"
        )
    return lines


def digest(lines: Sequence[str]) -> str:
    """SHA-256 of the text."""
    found = hashlib.sha256()
    for line in lines:
        found.update(line.encode("utf-8") + b"\n")
    return found.hexdigest()


def write_ids(path: Path, lines: Sequence[str], tokenizer: PreTrainedTokenizerFast) -> Counter[int]:
    """Every line as BOS, its tokens, EOS, one behind the other, as 32-bit numbers. Counts of the lines' own tokens."""
    counts: Counter[int] = Counter()
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    with replacing(path) as unfinished, unfinished.open("wb") as stream:
        for start in progress(
            range(0, len(lines), _BATCH),
            total=-(-len(lines) // _BATCH),
            unit="batches",
            label="tokenise",
        ):
            for ids in tokenizer(list(lines[start : start + _BATCH]), add_special_tokens=False)[
                "input_ids"
            ]:
                counts.update(ids)
                stream.write(np.array([bos, *ids, eos], dtype="<u4").tobytes())
    return counts


def write_unigrams(path: Path, counts: Counter[int], tokenizer: PreTrainedTokenizerFast) -> None:
    """``{"token id": probability}`` and the tokenizer's identity, for ``evaluate --unigram``.

    One occurrence is added for every token; BOS and EOS are not counted.
    """
    size = len(tokenizer)
    total = sum(counts.values()) + size
    table: dict[str, Any] = {"tokenizer": tokenizer_identity(tokenizer)}
    table |= {str(token): (counts[token] + 1) / total for token in range(size)}
    write_text(path, json.dumps(table) + "\n")


class Blocks:
    """A data set of equal stretches of the token file; labels are the tokens themselves (the model shifts them)."""

    def __init__(self, path: Path, context: int) -> None:
        self.ids = np.memmap(path, dtype="<u4", mode="r")
        self.context = context
        if len(self) == 0:
            raise UserError(
                f"the corpus has {len(self.ids)} tokens, fewer than one stretch of --context {context}; shorten --context"
            )

    def __len__(self) -> int:
        return len(self.ids) // self.context

    def __getitem__(self, index: int) -> dict[str, Any]:
        import torch

        ids = torch.from_numpy(
            self.ids[index * self.context : (index + 1) * self.context].astype(np.int64)
        )
        return {"input_ids": ids, "labels": ids}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(len(self)))
