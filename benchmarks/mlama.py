"""Typed queries: our batches against the published evaluator's way on the same model, facts and candidates, in the same run.

    python benchmarks/mlama.py [--facts 16] [--candidates 300] [--rounds 3] [--vocabulary 119547] [--plot mlama_growth]

The published way: every fact at every number of masks from one to the longest candidate, four sentences a batch, padded,
log-softmax over the whole vocabulary at every position, then candidate by candidate the mean at its masks. The model has
BERT-base's size and random weights; its WordPiece vocabulary of invented pieces is made here, as large as that of the model
the evaluator was written for (multilingual BERT, 119,547; English BERT: --vocabulary 30522). Both ways take turns for
some rounds and the fastest round of each counts, since others may use the machine. With --plot: our time for more and
more candidates. Exit status 1 unless ours is at least 5 times as fast and all scores agree within 1e-4 nats.
"""

from __future__ import annotations

import copy
import random
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fluent_mlama.console import run_main
from fluent_mlama.scoring.masked import MaskedScorer
from fluent_mlama.scoring.masked_contract import TypedQuery
from fluent_mlama.scoring.models import LoadedModel

MULTILINGUAL_BERT = 119_547
TOLERANCE = 1e-4
FASTER = 5.0
BATCH = 4
LONGEST = 5
GROWTH = (100, 300, 1000, 3000)


def make_tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    """WordPiece over invented syllables: w0, w1, … begin words, ##p0, ##p1, … go on."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."]
    half = (vocabulary - len(special)) // 2
    words = [
        *special,
        *(f"w{number}x" for number in range(vocabulary - len(special) - half)),
        *(f"##p{number}x" for number in range(half)),
    ]
    tokenizer = Tokenizer(
        models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]")
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


def make_candidates(number: int, draw: random.Random) -> tuple[str, ...]:
    """Objects of one to ``LONGEST`` pieces, all lengths alike."""
    found: dict[str, None] = {}
    while len(found) < number:
        pieces = 1 + len(found) % LONGEST
        found[
            f"w{draw.randrange(14_000)}x"
            + "".join(f"p{draw.randrange(14_000)}x" for _ in range(pieces - 1))
        ] = None
    return tuple(found)


def published_scores(
    model: BertForMaskedLM, tokenizer: PreTrainedTokenizerFast, queries: Sequence[TypedQuery]
) -> np.ndarray:
    """Scores ``[facts, candidates]`` in the published way."""
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in queries[0].candidates]
    scores = np.full((len(queries), len(ids)), np.nan)
    jobs = []
    for fact, query in enumerate(queries):
        left, right = (
            tokenizer(text, add_special_tokens=False)["input_ids"]
            for text in (query.left, query.right)
        )
        jobs += [
            (fact, k, [2, *left, *[4] * k, *right, 3], 1 + len(left))
            for k in range(1, max(map(len, ids)) + 1)
        ]
    for start in range(0, len(jobs), BATCH):
        batch = jobs[start : start + BATCH]
        width = max(len(job[2]) for job in batch)
        inputs = torch.tensor([[*job[2], *[0] * (width - len(job[2]))] for job in batch])
        mask = torch.tensor([[1] * len(job[2]) + [0] * (width - len(job[2])) for job in batch])
        with torch.inference_mode():
            logprobs = torch.log_softmax(
                model(input_ids=inputs, attention_mask=mask).logits, dim=-1
            ).numpy()
        for row, (fact, k, _, first) in enumerate(batch):
            for place, pieces in enumerate(ids):
                if len(pieces) == k:
                    scores[fact, place] = np.mean(
                        [logprobs[row, first + index, piece] for index, piece in enumerate(pieces)]
                    )
    return scores


def our_scores(scorer: MaskedScorer, queries: Sequence[TypedQuery]) -> np.ndarray:
    """The same by ``MaskedScorer.typed``."""
    return np.array(
        [[score.mean for score in result.candidates] for result in scorer.typed(queries)]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both ways, print the comparison, then the growth."""
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--facts", type=int, default=16)
    parser.add_argument("--candidates", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--vocabulary", type=int, default=MULTILINGUAL_BERT, help="pieces (at least 30,000)"
    )
    parser.add_argument(
        "--plot", type=Path, help="file name without ending for the growth as PDF and PNG"
    )
    parsed = parser.parse_args(arguments)
    torch.manual_seed(0)
    draw = random.Random(0)
    tokenizer = make_tokenizer(parsed.vocabulary)
    model = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer))).eval().requires_grad_(False)
    contexts = [
        ("".join(f"w{draw.randrange(14_000)}x " for _ in range(4 + fact % 5)), " .")
        for fact in range(parsed.facts)
    ]
    candidates = make_candidates(parsed.candidates, draw)
    queries = [TypedQuery(left, right, candidates) for left, right in contexts]
    packed = copy.deepcopy(model)  # the published way keeps the plain weights
    scorer = MaskedScorer(
        LoadedModel("bert-base-sized", "random", packed, tokenizer, torch.device("cpu"), "float32"),
        packed=True,
    )
    ways = {
        "published": lambda: published_scores(model, tokenizer, queries),
        "ours": lambda: our_scores(scorer, queries),
    }
    scores, wall, cpu = {}, dict.fromkeys(ways, float("inf")), dict.fromkeys(ways, float("inf"))
    for way in ways.values():
        way()  # the first call of a process pays for threads and buffers
    for _ in range(parsed.rounds):
        for name, way in ways.items():
            start, start_cpu = time.perf_counter(), time.process_time()
            scores[name] = way()
            wall[name] = min(wall[name], time.perf_counter() - start)
            cpu[name] = min(cpu[name], time.process_time() - start_cpu)
    theirs, ours, theirs_seconds, ours_seconds = (
        scores["published"],
        scores["ours"],
        wall["published"],
        wall["ours"],
    )
    gap = float(np.abs(ours - theirs).max())
    print(f"{len(tokenizer)} pieces in all, {torch.get_num_threads()} threads")
    print(f"{parsed.facts} facts, {len(candidates)} candidates of 1 to {LONGEST} pieces")
    print(
        f"published way {theirs_seconds:.2f} s, ours {ours_seconds:.2f} s: {theirs_seconds / ours_seconds:.2f} times as fast"
    )
    print(
        f"CPU time: {cpu['published']:.2f} s and {cpu['ours']:.2f} s, {cpu['published'] / cpu['ours']:.2f} times"
    )
    print(f"largest difference {gap:.2e} nats", flush=True)
    if parsed.plot:
        draw_growth(parsed.plot, growth(scorer, contexts, parsed.rounds))
    return 0 if theirs_seconds / ours_seconds >= FASTER and gap <= TOLERANCE else 1


def growth(scorer: MaskedScorer, contexts: Sequence[tuple[str, str]], rounds: int) -> list[float]:
    """Our seconds a fact for each number of candidates, the fastest of some rounds."""
    seconds = []
    for number in GROWTH:
        more = make_candidates(number, random.Random(number))
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            our_scores(scorer, [TypedQuery(left, right, more) for left, right in contexts])
            times.append((time.perf_counter() - start) / len(contexts))
        seconds.append(min(times))
        print(f"{number} candidates: {seconds[-1] * 1000:.0f} ms a fact", flush=True)
    return seconds


def draw_growth(stem: Path, seconds: Sequence[float]) -> None:
    """Seconds a fact over the number of candidates."""
    from fluent_mlama.reporting.plotting import COLOURS, logarithmic_x, look, panels, save_stem

    with look():
        figure, (axis,) = panels(["typed queries, BERT-base's size"], width=5)
        axis.plot(GROWTH, seconds, marker="o", color=COLOURS[0])
        logarithmic_x(axis)
        axis.set_ylim(0, 1.1 * max(seconds))
        axis.set_xlabel("candidates")
        axis.set_ylabel("seconds a fact")
        save_stem(stem, figure)


if __name__ == "__main__":
    run_main(main)
