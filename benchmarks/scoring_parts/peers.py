"""Variants that run in the peers' environment: lm-evaluation-harness, minicons, LM-Pub-Quiz, as their users call them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from worker import serve

Requests = list[dict[str, Any]]
BATCH = 64


def harness_ids(batch_size: int) -> Callable[[dict[str, Any]], Any]:
    """lm-evaluation-harness on the reference's own token ids (``_loglikelihood_tokens``)."""

    def make(inputs: dict[str, Any]) -> Callable[[Requests], Any]:
        model = _harness(inputs, batch_size)

        def score(requests: Requests) -> list[list[float]]:
            asked, lengths = [], []
            for request in requests:
                prompt = model.tokenizer(request["prompt"])["input_ids"]
                forms = model.tokenizer(request["candidates"], add_special_tokens=False)[
                    "input_ids"
                ]
                asked += [
                    ((request["prompt"], text), prompt, form)
                    for text, form in zip(request["candidates"], forms, strict=True)
                ]
                lengths.append(len(forms))
            return _by_request(
                [value for value, _ in model._loglikelihood_tokens(asked, disable_tqdm=True)],
                lengths,
            )

        return score

    return make


def harness_text(inputs: dict[str, Any]) -> Callable[[Requests], Any]:
    """lm-evaluation-harness on text: prompt and candidate tokenised together."""
    from lm_eval.api.instance import Instance

    model = _harness(inputs, BATCH)

    def score(requests: Requests) -> list[list[float]]:
        pairs = [
            (request["prompt"], text) for request in requests for text in request["candidates"]
        ]
        asked = [Instance("loglikelihood", {}, pair, number) for number, pair in enumerate(pairs)]
        values = [value for value, _ in model.loglikelihood(asked, disable_tqdm=True)]
        return _by_request(values, [len(request["candidates"]) for request in requests])

    return score


def _harness(inputs: dict[str, Any], batch_size: int) -> Any:
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=inputs["folder"], device="cpu", dtype="float32", batch_size=batch_size)


def minicons(inputs: dict[str, Any]) -> Callable[[Requests], Any]:
    """minicons' conditional_score in batches of 64; trailing blanks go to its separator (it loses a token otherwise)."""
    from minicons import scorer

    model = scorer.IncrementalLMScorer(inputs["folder"], "cpu")

    def score(requests: Requests) -> list[list[float]]:
        result = []
        for request in requests:
            prompt = request["prompt"].rstrip()
            blank = request["prompt"][len(prompt) :]
            values: list[float] = []
            for start in range(0, len(request["candidates"]), BATCH):
                texts = request["candidates"][start : start + BATCH]
                values += model.conditional_score(
                    [prompt] * len(texts),
                    texts,
                    separator=blank,
                    reduction=lambda x: x.sum(0).item(),
                )
            result.append([float("nan"), *values])
        return result

    return score


def pub_quiz(inputs: dict[str, Any]) -> Callable[[Requests], Any]:
    """LM-Pub-Quiz' score_answers in batches of 64: whole sentences, BOS added."""
    from lm_pub_quiz import Evaluator

    evaluator = Evaluator.from_model(inputs["folder"], model_type="CLM", device="cpu")

    def score(requests: Requests) -> list[list[float]]:
        result = []
        for request in requests:
            template = request["prompt"].replace("[X]", "") + "[Y]"
            values = evaluator.score_answers(
                template=template, answers=request["candidates"], reduction="sum", batch_size=BATCH
            )
            result.append([float("nan"), *map(float, values)])
        return result

    return score


def _by_request(values: list[float], lengths: list[int]) -> list[list[float]]:
    result, start = [], 0
    for length in lengths:
        result.append([float("nan"), *values[start : start + length]])
        start += length
    return result


VARIANTS = {
    "lm-eval, same ids": harness_ids(BATCH),
    "lm-eval, same ids, batch 1": harness_ids(1),
    "lm-eval, text": harness_text,
    "minicons": minicons,
    "LM-Pub-Quiz": pub_quiz,
}

if __name__ == "__main__":
    serve(VARIANTS)
