"""``ask``: a model writes its answers to the few-shot prompts, greedily: a local causal model or an OpenAI-compatible endpoint.

Answers are kept batch by batch; the same command goes on where it stopped. Nothing is read into them here (see ``score``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from fluent_mlama.console import UserError, note, progress_bar, whole_number
from fluent_mlama.cpopqa.answers import Store
from fluent_mlama.cpopqa.items import Item, read_items
from fluent_mlama.cpopqa.rank import add_common, chosen, default_label
from fluent_mlama.ranking.settings import without_home
from fluent_mlama.runner.locks import locked
from fluent_mlama.scoring.identity import model_identity

METHOD = "written"
TOKENS_A_NAME = 16
STOPS = ("\nQ:", "\n\n")
KEPT_AT_A_TIME = 20
FAILURES_IN_A_ROW = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``ask``."""
    add_common(parser)
    local = parser.add_argument_group("local model")
    local.add_argument(
        "--batch", type=whole_number(1), default=16, help="questions a forward (default 16)"
    )
    local.add_argument("--device", default="auto")
    local.add_argument("--dtype", default="auto")
    service = parser.add_argument_group("endpoint")
    service.add_argument(
        "--endpoint",
        action="store_true",
        help="ask the OpenAI interface for --model (key: OPENAI_API_KEY)",
    )
    service.add_argument(
        "--base-url",
        help="of an OpenAI-compatible server; turns --endpoint on (default: OPENAI_BASE_URL)",
    )
    service.add_argument(
        "--workers",
        type=whole_number(1),
        default=4,
        help="requests under way at a time (default 4)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask what is not yet answered."""
    if arguments.base_url and not arguments.base_url.startswith(("http://", "https://")):
        raise UserError(
            f"--base-url {arguments.base_url}: give the address of a server, for example http://127.0.0.1:8000/v1"
        )
    items = chosen(read_items(arguments.data), arguments.per_round)
    endpoint = arguments.endpoint or bool(arguments.base_url)
    store = Store(arguments.data, arguments.label or default_label(arguments.model, METHOD))
    settings = {
        "model": without_home(arguments.model),
        "asked_revision": arguments.revision or "",
        "method": METHOD,
        "endpoint": endpoint,
    }
    if not endpoint:
        settings |= {
            "identity": model_identity(arguments.model, arguments.revision),
            "device": arguments.device,
            "dtype": arguments.dtype,
        }
    with locked(store.lines):
        done = store.begin(settings)
        left = [item for item in items if item.id not in done]
        if left:
            started = time.perf_counter()
            ask = ask_endpoint if endpoint else ask_local
            facts = ask(arguments, left, store)
            store.note(facts | {"last_run": [len(left), round(time.perf_counter() - started, 1)]})
    print(f"{len(items)} questions are asked of {store.label}: {store.lines}")
    return 0


def ask_local(
    arguments: argparse.Namespace, items: Sequence[Item], store: Store
) -> dict[str, object]:
    """Answers of a model on this machine; returns what it was."""
    from fluent_mlama.cpopqa.writing import Writer
    from fluent_mlama.scoring.models import load_model

    loaded = load_model(
        arguments.model, device=arguments.device, dtype=arguments.dtype, revision=arguments.revision
    )
    writer = Writer(loaded)
    with progress_bar(total=len(items), unit="questions", label=store.label) as bar:
        for batch in batches(items, arguments.batch):
            texts = writer.write([item.prompt for item in batch], budget(batch[0]))
            store.add(
                {"id": item.id, "text": text} for item, text in zip(batch, texts, strict=True)
            )
            bar.update(len(batch))
    return {"revision": loaded.revision, "dtype": loaded.dtype, "device": str(loaded.device)}


def ask_endpoint(
    arguments: argparse.Namespace, items: Sequence[Item], store: Store
) -> dict[str, object]:
    """Answers of a service; a question it fails on stays open for the next run, a refusal is kept as an empty answer."""
    from fluent_mlama.translating.backend import FAILED
    from fluent_mlama.translating.openai_chat import ChatClient

    client = ChatClient(
        arguments.model, base_url=arguments.base_url, seed=0, workers=arguments.workers
    )
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
