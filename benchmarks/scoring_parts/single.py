"""Measurements that stand alone, each in a process of its own: kernels, large pools, host work, growth.

python benchmarks/scoring_parts/single.py WHAT INPUTS.json     prints one JSON line
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks.scoring_parts.own import joined, unjoined
from benchmarks.scoring_parts.worker import measured, peak_memory
from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.contract import Candidate, Request
from fluent_mlama.scoring.methods import Blocks, build_tree
from fluent_mlama.scoring.models import load_model
from fluent_mlama.scoring.network import SLICE, SLICED_ROWS, PackedLinear

ROWS = 1024
"""Rows of a typical pack, for the body's matrices."""


def load(inputs: dict[str, Any], **options: Any) -> CausalScorer:
    """The engine on the CPU."""
    return CausalScorer(load_model(inputs["folder"], device="cpu"), **options)


def kernels(inputs: dict[str, Any]) -> dict[str, Any]:
    """GFLOP/s of F.linear and of the packed product at the model's own shapes, and of the faster one, weighted by FLOP.

    The head is timed in the slices of the vocabulary that the engine reads: they are faster than whole rows.
    """
    model = load_model(inputs["folder"], device="cpu").model
    head = model.get_output_embeddings()
    shapes: dict[tuple[int, int, int], float] = {}
    for module in model.modules():
        if type(module) is nn.Linear:
            rows, outer = (SLICED_ROWS, SLICE) if module is head else (ROWS, module.out_features)
            shape = (rows, module.in_features, outer)
            shapes[shape] = shapes.get(shape, 0) + module.out_features / outer
    seconds = {"linear": 0.0, "packed": 0.0, "faster": 0.0}
    flop = 0.0
    table = []
    with torch.inference_mode():
        for (rows, inner, outer), count in shapes.items():
            x, layer = torch.randn(rows, inner), nn.Linear(inner, outer, bias=False)
            packed = PackedLinear(layer.weight, layer.bias)
            per_row = {
                "linear": _median_seconds(lambda x=x, w=layer.weight: functional.linear(x, w)),
                "packed": _median_seconds(lambda x=x, p=packed: p(x)),
            }
            work = 2.0 * rows * inner * outer
            table.append(
                [
                    rows,
                    inner,
                    outer,
                    count,
                    *(work / per_row[name] / 1e9 for name in ("linear", "packed")),
                ]
            )
            share = count / rows  # seconds for one row through all layers of this shape
            flop += work * share
            for name in ("linear", "packed"):
                seconds[name] += per_row[name] * share
            seconds["faster"] += min(per_row.values()) * share
    return {
        "flop_per_node": flop,
        "shapes": table,
        **{name: flop / value / 1e9 for name, value in seconds.items()},
    }


def _median_seconds(work: Callable[[], Any], tries: int = 15) -> float:
    """The median, as of the engine's own timings: a kernel's luckiest call is nothing that a whole pass can be held against."""
    work()
    seconds = []
    for _ in range(tries):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def needed(inputs: dict[str, Any]) -> dict[str, Any]:
    """What the engine computes on each set: nodes fed, and FLOP of attention between nodes that see each other.

    A pair of nodes costs a product and a weighted sum of ``head_dim`` numbers in every head of every layer.
    """
    scorer = load(inputs)
    config = scorer.loaded.model.config
    a_pair = 4 * config.num_hidden_layers * config.num_attention_heads * config.head_dim
    found = {}
    for name in ("es20", "ru20"):
        plan = scorer.plan(list(map(unjoined, inputs["sets"][name])), "separate")
        trees = [
            build_tree(part.sequences)
            for pack in plan.state.packs
            for group in pack
            for part in group.parts
        ]
        pairs = sum(int((tree.depths + 1).sum()) for tree in trees)
        found[name] = {
            "nodes": sum(tree.size for tree in trees),
            "attention_flop": float(a_pair * pairs),
        }
    return found


def many(inputs: dict[str, Any]) -> dict[str, Any]:
    """940 candidates of one prompt at once."""
    scorer = load(inputs)
    scorer.score([unjoined(inputs["sets"]["warm"][0])], tokenisation="separate")
    asked = [unjoined(inputs["sets"]["many"][0])]
    runs = [measured(lambda: scorer.score(asked, tokenisation="separate")) for _ in range(3)]
    seconds = float(np.median([seconds for _, seconds, _ in runs]))
    count = len(asked[0].candidates)
    foreign = max(share for *_, share in runs)
    return {
        "candidates": count,
        "seconds": seconds,
        "per_second": count / seconds,
        "memory": peak_memory(),
        "foreign": foreign,
    }


def host(inputs: dict[str, Any]) -> dict[str, Any]:
    """Everything but the model: planning, tries, attention blocks, putting scores together; milliseconds a fact."""
    scorer = load(inputs)
    result = {}
    for name in ("es20", "ru20"):
        for tokenisation, form in (("separate", unjoined), ("joint", joined)):
            requests = list(map(form, inputs["sets"][name]))

            def no_model(trees: Any, _arithmetic: str) -> list[Any]:
                Blocks.of(trees)
                return [-1.0 - np.arange(len(tree.edge_rows)) / 7 for tree in trees]

            run, scorer.runner.method.run = scorer.runner.method.run, no_model
            scorer.score(requests, tokenisation=tokenisation)
            runs = [
                measured(
                    lambda asked=requests, how=tokenisation: scorer.score(asked, tokenisation=how)
                )
                for _ in range(5)
            ]
            scorer.runner.method.run = run
            seconds = float(np.median([seconds for _, seconds, _ in runs]))
            result[f"{name} {tokenisation}"] = {
                "ms_per_fact": 1000 * seconds / 20,
                "foreign": max(share for *_, share in runs),
            }
    return result


def growth(inputs: dict[str, Any], pool: str, length: str, budget: str) -> dict[str, Any]:
    """One prompt of ``length`` tokens, ``pool`` candidates, a token budget: seconds and peak memory."""
    scorer = load(inputs, token_budget=int(budget))
    base = peak_memory()
    words = scorer.loaded.tokenizer.decode(list(range(400, 400 + int(length))))
    texts = inputs["sets"]["pool"][0]["candidates"][: int(pool)]
    request = Request(words, tuple(map(Candidate, texts)))
    scorer.score([Request("a", (Candidate("b"), Candidate("cd")))], tokenisation="separate")
    _, seconds, foreign = measured(lambda: scorer.score([request], tokenisation="separate"))
    plan = scorer.plan([request], "separate")
    nodes = sum(group.size for pack in plan.state.packs for group in pack)
    prompt = len(plan.state.tokens[0].prompt)
    settings = {"pool": int(pool), "prompt": prompt, "budget": int(budget)}
    return {
        **settings,
        "seconds": seconds,
        "nodes": nodes,
        "memory": peak_memory(),
        "loaded": base,
        "foreign": foreign,
    }


if __name__ == "__main__":
    what, path, *more = sys.argv[1:]
    given = json.loads(Path(path).read_text(encoding="utf-8"))
    measurements: dict[str, Callable[..., dict[str, Any]]] = {
        "kernels": kernels,
        "needed": needed,
        "many": many,
        "host": host,
        "growth": growth,
    }
    print(json.dumps(measurements[what](given, *more)))
