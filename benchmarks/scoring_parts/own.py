"""Variants that run in the project's own environment: the reference, and the engine in all its settings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.scoring_parts.worker import serve
from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.contract import Candidate, Request, Tokenisation
from fluent_mlama.scoring.models import load_model

Requests = list[dict[str, Any]]


def reference(inputs: dict[str, Any]) -> Callable[[Requests], Any]:
    """One forward a candidate and one a prompt, batch 1, no cache, full logits, fp32: the published scorer's way."""
    tokenizer = AutoTokenizer.from_pretrained(inputs["folder"])
    model = AutoModelForCausalLM.from_pretrained(inputs["folder"], dtype=torch.float32).eval()

    def total(ids: list[int], start: int) -> float:
        if len(ids) < 2:
            return 0.0
        tensor = torch.tensor([ids])
        logprobs = torch.log_softmax(
            model(input_ids=tensor, use_cache=False).logits[0, :-1].float(), dim=-1
        )
        chosen = logprobs.gather(1, tensor[0, 1:, None])[start - 1 :, 0]
        return float(chosen.double().sum())

    @torch.inference_mode()
    def score(requests: Requests) -> list[list[float]]:
        result = []
        for request in requests:
            prompt = tokenizer(request["prompt"])["input_ids"]
            forms = [
                tokenizer(text, add_special_tokens=False)["input_ids"]
                for text in request["candidates"]
            ]
            result.append(
                [total(prompt, 1), *(total(prompt + form, len(prompt)) for form in forms)]
            )
        return result

    return score


def engine(
    tokenisation: Tokenisation = "separate", dtype: str = "float32", **options: Any
) -> Callable[[dict[str, Any]], Any]:
    """The engine; the first number of a list is the prompt's log-probability."""

    def make(inputs: dict[str, Any]) -> Callable[[Requests], Any]:
        scorer = CausalScorer(load_model(inputs["folder"], device="cpu", dtype=dtype), **options)
        print(scorer.describe(), file=sys.stderr)

        def score(requests: Requests) -> list[list[float]]:
            asked = [
                joined(request) if tokenisation == "joint" else unjoined(request)
                for request in requests
            ]
            scores = scorer.score(asked, tokenisation=tokenisation)
            return [
                [found.prompt_logprob, *(candidate.logprob for candidate in found.candidates)]
                for found in scores
            ]

        return score

    return make


def unjoined(request: dict[str, Any]) -> Request:
    """Prompt and candidates as published."""
    return Request(request["prompt"], tuple(map(Candidate, request["candidates"])))


def joined(request: dict[str, Any]) -> Request:
    """The same text with the prompt's trailing blanks in front of the candidate, as lm-evaluation-harness cuts it."""
    prompt = request["prompt"].rstrip()
    blank = request["prompt"][len(prompt) :]
    return Request(prompt, tuple(Candidate(blank + text) for text in request["candidates"]))


VARIANTS = {
    "reference": reference,
    "padded batch": engine(path="padded", packed=False, share_prompts=False),
    "shared prefix": engine(path="shared-prefix", packed=False, share_prompts=False),
    "ours": engine(),
    "ours, equal prompts apart": engine(share_prompts=False),
    "ours, public API only": engine(packed=False),
    "ours, joint": engine("joint", add_bos=False),
    "ours, joint, equal prompts apart": engine("joint", add_bos=False, share_prompts=False),
    "ours, bfloat16": engine(dtype="bfloat16"),
    "ours, float16": engine(dtype="float16"),
    "ours, budget 512": engine(token_budget=512),
}

if __name__ == "__main__":
    serve(VARIANTS)
