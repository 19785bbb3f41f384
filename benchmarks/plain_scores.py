"""Scores of the engine against the plain way, on 60 facts of three languages with the embedded model.

    python benchmarks/plain_scores.py [--data ../shared/data/fluent_mlama/fixed_data.zip] [--facts 20]

The plain way: one forward a candidate, batch 1, float32, no cache, prompt and candidate tokenised separately, log-softmax
of the full logits, sums in float64. Agreement: within 5e-4 nats, and every ranked list equal but for neighbours closer
than 1e-3, which are counted. Exit status 1 where that does not hold.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fluent_mlama.console import progress, run_main, split_list
from fluent_mlama.files import open_source
from fluent_mlama.ranking.paper import paper_task
from fluent_mlama.ranking.task import stable_ranks
from fluent_mlama.records.benchmark import read_benchmark
from fluent_mlama.scoring.causal import CausalScorer, load_scorer
from fluent_mlama.scoring.contract import Request, RequestScore

FILES = "es_P36,ru_P19,zh_P103"
TOLERANCE = 5e-4
NEIGHBOURS = 1e-3


@dataclass
class Comparison:
    """What two ways of scoring the same requests agree on. gap: largest difference in nats, prompts included."""

    gap: float = 0.0
    candidates: int = 0
    lists: int = 0
    equal_lists: int = 0
    swapped_neighbours: int = 0
    wrong_lists: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return self.gap <= TOLERANCE and not self.wrong_lists

    def add(
        self, request: Request, ours: RequestScore, plain_prompt: float, plain: Sequence[float]
    ) -> None:
        scores = [part.logprob for part in ours.candidates]
        gaps = [
            abs(ours.prompt_logprob - plain_prompt),
            *(abs(a - b) for a, b in zip(scores, plain, strict=True)),
        ]
        self.gap = max(self.gap, *gaps)
        self.candidates += len(plain)
        self.lists += 1
        if stable_ranks(scores) == stable_ranks(plain):
            self.equal_lists += 1
            return
        for better, worse in _inversions(scores, plain):
            if plain[better] - plain[worse] < NEIGHBOURS:
                self.swapped_neighbours += 1
            else:
                self.wrong_lists.append(request.prompt)


def _inversions(ours: Sequence[float], plain: Sequence[float]) -> list[tuple[int, int]]:
    """Pairs that stand the other way round in our list than in the plain one (better in plain first)."""
    order, rank = np.argsort(-np.asarray(plain), kind="stable"), stable_ranks(ours)
    return [
        (int(a), int(b))
        for number, a in enumerate(order)
        for b in order[number + 1 :]
        if rank[a] > rank[b]
    ]


def plain_scores(scorer: CausalScorer, request: Request) -> tuple[float, list[float]]:
    """Prompt log-probability and each candidate's, natural logs, one forward a candidate and nothing shared."""
    tokenizer, model = scorer.loaded.tokenizer, scorer.loaded.model
    prompt = tokenizer(request.prompt)["input_ids"]
    scores = []
    for candidate in request.candidates:
        form = tokenizer(candidate.text, add_special_tokens=False)["input_ids"]
        logprobs = _token_logprobs(model, [*prompt, *form])
        scores.append(float(sum(logprobs[len(prompt) - 1 :])))
    return float(sum(_token_logprobs(model, prompt))), scores


def _token_logprobs(model: torch.nn.Module, token_ids: list[int]) -> list[float]:
    """Log-probability of tokens 2..n."""
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([token_ids]), use_cache=False).logits[0].float()
    chosen = torch.log_softmax(logits[:-1], dim=-1).gather(1, torch.tensor(token_ids[1:])[:, None])
    return [float(value) for value in chosen[:, 0].double()]


def compare(scorer: CausalScorer, requests: Sequence[Request]) -> Comparison:
    """The engine's scores of these requests beside the plain ones."""
    comparison, known = Comparison(), {}
    answers = scorer.score(requests, tokenisation="separate")
    for request, ours in progress(
        zip(requests, answers, strict=True), total=len(requests), unit="prompts", label="plain"
    ):
        if request not in known:  # equal prompts of one fact need no second look
            known[request] = plain_scores(scorer, request)
        comparison.add(request, ours, *known[request])
    return comparison


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("../shared/data/fluent_mlama/fixed_data.zip"),
        metavar="FOLDER|ZIP",
    )
    parser.add_argument("--facts", type=int, default=20, metavar="N", help="facts of each language")
    parser.add_argument(
        "--files", type=split_list, default=FILES, metavar="NAMES", help=f"default: {FILES}"
    )
    asked = parser.parse_args(arguments)
    scorer, source, holds = load_scorer("smollm2", device="cpu"), open_source(asked.data), True
    print(f"path {scorer.describe().path}, {torch.get_num_threads()} threads")
    for name in asked.files:
        lang, relation = name.split("_")
        benchmark = read_benchmark(source, lang, relation)
        task = paper_task(benchmark, benchmark.verbalisations, limit=asked.facts)
        result = compare(scorer, task.requests())
        holds &= result.holds
        print(
            f"{name}: {len(task.rows)} facts, {result.lists} prompts, {result.candidates} candidates: "
            f"largest gap {result.gap:.1e}, {result.equal_lists} ranked lists equal, "
            f"{result.swapped_neighbours} swaps of neighbours closer than {NEIGHBOURS}, "
            f"{len(result.wrong_lists)} other swaps"
        )
    return int(not holds)


if __name__ == "__main__":
    run_main(main)
