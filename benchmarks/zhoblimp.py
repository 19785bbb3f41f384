"""Minimal pairs: our pass against the published way on the same model and pairs, and the time that generation takes.

    python benchmarks/zhoblimp.py [--data ../shared/data/zhoblimp] [--per-paradigm 1] [--model smollm2]

The published way: every sentence alone in a batch that is padded to 64 tokens, log-softmax of the full logits at every
position, then the gathered log-probabilities with the padding set to 0. Both ways run in this process, on the same
sentences, in float32. Exit status 1 unless ours is at least 2.5 times as fast, all token counts agree, all sums agree
within 5e-4 nats, and the 131 published templates give 300 pairs each in under 30 s.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fluent_mlama.console import UserError, progress, run_main
from fluent_mlama.options import LoadOptions
from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.zhoblimp.data import read_pairs
from fluent_mlama.zhoblimp.evaluate import chosen_rows
from fluent_mlama.zhoblimp.generator import Generator
from fluent_mlama.zhoblimp.paradigm import read_paradigms, read_phrases
from fluent_mlama.zhoblimp.scores import Target, load, requests_of
from fluent_mlama.zhoblimp.vocabulary import read_vocabulary

TOLERANCE = 5e-4
FASTER = 2.5
GENERATION_LIMIT = 30.0
PADDED_LENGTH = 64
BATCH = 16


def published_scores(scorer: CausalScorer, sentences: Sequence[str]) -> list[tuple[int, float]]:
    """Tokens and log-probability of each sentence in the published way."""
    tokenizer, model, bos = scorer.loaded.tokenizer, scorer.loaded.model, scorer.tokeniser.bos
    results = []
    batches = [sentences[start : start + BATCH] for start in range(0, len(sentences), BATCH)]
    for batch in progress(batches, total=len(batches), unit="batches", label="published way"):
        ids = [[bos, *tokenizer(text, add_special_tokens=False)["input_ids"]] for text in batch]
        if max(map(len, ids)) > PADDED_LENGTH:
            raise UserError(
                f"a sentence has more than {PADDED_LENGTH} tokens with this model; the published way would cut it off"
            )
        inputs = torch.zeros((len(ids), PADDED_LENGTH), dtype=torch.long)
        mask = torch.zeros_like(inputs)
        for row, one in enumerate(ids):
            inputs[row, : len(one)] = torch.tensor(one)
            mask[row, : len(one)] = 1
        inputs, mask = inputs.to(scorer.loaded.device), mask.to(scorer.loaded.device)
        with torch.inference_mode():
            logprobs = torch.log_softmax(
                model(input_ids=inputs, attention_mask=mask).logits.float(), dim=-1
            )
        gathered = logprobs[:, :-1].gather(-1, inputs[:, 1:, None]).squeeze(-1) * mask[:, 1:]
        results += list(
            zip((mask.sum(1) - 1).tolist(), gathered.double().sum(1).tolist(), strict=True)
        )
    return results


def generation_seconds(folder: Path) -> tuple[int, int, float]:
    """Templates, those with 300 pairs, and the seconds for all of them."""
    assets = folder / "assets"
    vocabulary, phrases = (
        read_vocabulary(assets / "zh_vocab_saved.tsv"),
        read_phrases(assets / "zh_phrase.json"),
    )
    templates = read_paradigms(folder / "projects.zip")
    start = time.perf_counter()
    full = sum(
        len(Generator(one, vocabulary, phrases).generate(300).pairs) == 300 for one in templates
    )
    return len(templates), full, time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both ways, print the comparison."""
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/zhoblimp"))
    parser.add_argument("--per-paradigm", type=int, default=1)
    parser.add_argument("--model", default="smollm2")
    parsed = parser.parse_args(arguments)
    templates, full, seconds = generation_seconds(parsed.data)
    print(
        f"generation: {full} of {templates} templates gave 300 pairs in {seconds:.1f} s", flush=True
    )
    rows = chosen_rows(read_pairs(parsed.data / "ZhoBLiMP.tar.gz"), parsed.per_paradigm)
    scorer = load(Target(parsed.model, parsed.model), LoadOptions(dtype="float32"))
    sentences = [text for row in rows for text in (row.good, row.bad)]
    for _ in (
        scorer.score(requests_of(rows[:8]), tokenisation="joint"),
        published_scores(scorer, sentences[:BATCH]),
    ):
        pass  # the first call of either way allocates and is not timed
    start = time.perf_counter()
    scores = scorer.score(requests_of(rows), tokenisation="joint")
    ours_seconds = time.perf_counter() - start
    start = time.perf_counter()
    theirs = published_scores(scorer, sentences)
    theirs_seconds = time.perf_counter() - start
    ours = [
        (len(candidate.token_ids), candidate.logprob)
        for score in scores
        for candidate in score.candidates
    ]
    gap = max(abs(one[1] - other[1]) for one, other in zip(ours, theirs, strict=True))
    counts_agree = [one[0] for one in ours] == [one[0] for one in theirs]
    decisions = [
        np.sign(side[0::2] - side[1::2])
        for side in (np.array([one[1] for one in way]) for way in (ours, theirs))
    ]
    flips = int((decisions[0] != decisions[1]).sum())
    ratio = theirs_seconds / ours_seconds
    tokens, path = sum(count for count, _ in ours), scorer.describe("joint").path
    print(f"{len(rows)} pairs, {tokens} tokens, path {path}, {torch.get_num_threads()} threads")
    print(
        f"published way {theirs_seconds:.1f} s, ours {ours_seconds:.1f} s: {ratio:.2f} times as fast"
    )
    print(
        f"largest difference {gap:.2e} nats, token counts {'agree' if counts_agree else 'DIFFER'}, {flips} decisions differ"
    )
    fine = (
        ratio >= FASTER
        and gap <= TOLERANCE
        and counts_agree
        and full == templates
        and seconds < GENERATION_LIMIT
    )
    return 0 if fine else 1


if __name__ == "__main__":
    run_main(main)
