"""``ask``: a model writes its answers to the few-shot prompts, greedily: a local causal model or an OpenAI-compatible endpoint.

Answers are kept batch by batch; the same command goes on where it stopped. Nothing is read into them here (see ``score``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cyclopts import Parameter

from fluent_mlama.console import UserError, note, progress_bar
from fluent_mlama.cpopqa.answers import Store
from fluent_mlama.cpopqa.items import Item
from fluent_mlama.cpopqa.rank import AskOptions
from fluent_mlama.options import Count, LoadOptions
from fluent_mlama.ranking.settings import without_home
from fluent_mlama.runner.models import each_model, require_all
from fluent_mlama.runner.run import locked
from fluent_mlama.scoring.identity import model_identity

METHOD = "written"
TOKENS_A_NAME = 16
STOPS = ("\nQ:", "\n\n")
KEPT_AT_A_TIME = 20
FAILURES_IN_A_ROW = 20


@Parameter(name="*", group="endpoint")
@dataclass(frozen=True, kw_only=True)
class EndpointOptions:
    """An OpenAI-compatible service."""

    endpoint: bool = False
    """ask the OpenAI interface for --model (key: OPENAI_API_KEY)"""
    base_url: str | None = None
    """of an OpenAI-compatible server; turns --endpoint on (default: OPENAI_BASE_URL)"""
    workers: Count = 4
    """requests under way at a time"""


def ask(
    *,
    options: AskOptions,
    batch: Count = 16,
    loading: LoadOptions = LoadOptions(),
    service: EndpointOptions = EndpointOptions(),
) -> None:
    """Let a model write its answers: a local causal model or an OpenAI-compatible endpoint.

        fluent-mlama cpopqa ask --data popularity --model smollm2

    Args:
        batch: local model: questions per forward pass
    """
    url = service.base_url
    if url and not url.startswith(("http://", "https://")):
        raise UserError(
            f"--base-url {url}: give the address of a server, for example http://127.0.0.1:8000/v1"
        )
    items = options.items()
    remote = service.endpoint or bool(url)

    def one(turn: tuple[str, Store]) -> None:
        model, store = turn
        settings: dict[str, Any] = {
            "model": without_home(model),
            "asked_revision": loading.revision or "",
            "method": METHOD,
            "endpoint": remote,
        }
        if not remote:
            settings |= {
                "identity": model_identity(model, loading.revision),
                "device": loading.device,
                "dtype": loading.dtype,
            }
        with locked(store.lines):
            done = store.begin(settings)
            left = [item for item in items if item.id not in done]
            if left:
                started = time.perf_counter()
                facts = (
                    ask_endpoint(model, left, store, service)
                    if remote
                    else ask_local(model, left, store, loading, batch)
                )
                last_run = [len(left), round(time.perf_counter() - started, 1)]
                store.note(facts | {"last_run": last_run})
        print(f"{len(items)} questions are asked of {store.label}: {store.lines}")

    turns = list(options.stores(METHOD).items())
    _, failed = each_model(
        turns, one, model=lambda turn: turn[0], place=lambda turn: turn[1].lines.parent
    )
    require_all(failed, len(turns))


def ask_local(
    model: str, items: Sequence[Item], store: Store, loading: LoadOptions, batch_size: int
) -> dict[str, object]:
    """Answers of a model on this machine; returns what it was."""
    from fluent_mlama.cpopqa.writing import Writer
    from fluent_mlama.scoring.models import load_model

    loaded = load_model(
        model,
        device=loading.device,
        dtype=loading.dtype,
        revision=loading.revision,
        device_map=loading.device_map,
        trust_remote_code=loading.trust_remote_code,
        quantization=loading.quantization,
    )
    writer = Writer(loaded)
    with progress_bar(total=len(items), unit="questions", label=store.label) as bar:
        for batch in batches(items, batch_size):
            texts = writer.write([item.prompt for item in batch], budget(batch[0]))
            store.add(
                {"id": item.id, "text": text} for item, text in zip(batch, texts, strict=True)
            )
            bar.update(len(batch))
    return {"revision": loaded.revision, "dtype": loaded.dtype, "device": str(loaded.device)}


def ask_endpoint(
    model: str, items: Sequence[Item], store: Store, service: EndpointOptions
) -> dict[str, object]:
    """Answers of a service; a question it fails on stays open for the next run, a refusal is kept as an empty answer."""
    from fluent_mlama.translating.backend import FAILED
    from fluent_mlama.translating.openai_chat import ChatClient

    client = ChatClient(model, base_url=service.base_url, seed=0, workers=service.workers)
    client.check()
    details: dict[str, int] = {}
    failed: list[str] = []
    in_a_row = 0
    waiting: list[dict[str, object]] = []
    try:
        with progress_bar(total=len(items), unit="questions", label=store.label) as bar:
            for item, answer in client.converse(
                items, lambda one: [{"role": "user", "content": one.prompt}], budget
            ):
                bar.update(1)
                if answer.status == FAILED:
                    failed.append(f"{item.id}: {answer.detail}")
                    in_a_row += 1
                    if in_a_row == FAILURES_IN_A_ROW:
                        raise UserError(
                            f"{in_a_row} questions failed in a row ({answer.detail}); finished ones are kept: try again later"
                        )
                    continue
                in_a_row = 0
                details[answer.detail] = details.get(answer.detail, 0) + 1
                waiting.append(
                    {
                        "id": item.id,
                        "text": "" if answer.status == "refusal" else answer.text or "",
                        "status": answer.status,
                    }
                )
                if len(waiting) >= KEPT_AT_A_TIME:
                    store.add(waiting)
                    waiting = []
    finally:
        store.add(waiting)
    if failed:
        note(
            f"{len(failed)} questions failed and are asked again by the next run, e.g. {failed[0]}"
        )
    return {"answered_by": details}


def batches(items: Sequence[Item], size: int) -> list[list[Item]]:
    """Questions of the same n, by prompt length, so that a forward holds little padding."""
    found = []
    for n in sorted({item.n for item in items}):
        ordered = sorted((item for item in items if item.n == n), key=lambda item: len(item.prompt))
        found += [ordered[start : start + size] for start in range(0, len(ordered), size)]
    return found


def budget(item: Item) -> int:
    """The most tokens of an answer."""
    return TOKENS_A_NAME * item.n
