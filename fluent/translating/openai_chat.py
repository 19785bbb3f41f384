"""The paper's constrained translation by a chat model: few-shot examples, and the translated subject and object given.

Any OpenAI-compatible server will do (``OPENAI_BASE_URL``). Unlike the published run the query is a user's turn with the keys
of the examples, temperature is 0 and a seed is sent; ``published_role`` restores the published turn for reproduction.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import openai

from fluent.console import UserError
from fluent.languages import language
from fluent.records.few_shot import FewShot, format_few_shot
from fluent.translating.backend import FAILED, OK, Answer, Item, text_hash
from fluent.translating.patience import Pace, Patience, RowFault, TryLater, retry_after

DEFAULT_MODEL = "gpt-4o-mini"
KEY_FILE = Path("openai-api-key.txt")
MAX_TOKENS = 256

FewShotSource = Callable[[str, str], FewShot | None]
"""Gives the few-shot text for a (target language, relation), or None."""

_FINISHES = {"length": "cut", "content_filter": "filtered"}


def instruction(target: str) -> str:
    """What the model is told before any example; five short lines, as the published text has."""
    name = language(target).name
    return "\n".join((
        f"You translate English sentences into {name}, as a professional would.",
        f"Beside each sentence you are given its subject and its object in {name}: use these translations.",
        "Inflect them, and make the words around them agree, as the grammar demands.",
        f"Answer with the {name} sentence alone, in one line, without quotes.",
        "Follow the examples, if there are any:",
    ))  # fmt: skip


class OpenAITranslator:
    """A chat model behind the OpenAI interface.

    few_shot: gives the examples; seed: sent with each request; workers: requests under way at a time.
    """

    name = "openai"
    costly = True

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        few_shot: FewShotSource | None = None,
        base_url: str | None = None,
        seed: int = 0,
        published_role: bool = False,
        workers: int = 4,
        patience: Patience | None = None,
    ) -> None:
        self.model = model
        self._few_shot = few_shot or (lambda target, relation: None)
        self._base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._seed = seed
        self._published_role = published_role
        self._workers = max(1, workers)
        self._patience = patience or Patience(per_second=20.0, read=60.0)
        self._pace = Pace(self._patience.per_second)

    def check(self, source: str, target: str, relation: str) -> None:
        _api_key(self._base_url)
        for code in (source, target):
            language(code)

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        role = "published" if self._published_role else "user"
        return text_hash(self._system(target, relation), role, str(self._seed), "temperature 0", str(MAX_TOKENS))

    def query(self, item: Item) -> str:
        if self._published_role:
            keys = ("Source sentence", "Subject", "Object", "Sentence")
        else:
            keys = ("Source sentence", "Subject translation", "Object translation", "Translation")
        values = (item.sentence, item.sub_label, item.obj_label, "")
        return "\n".join(f"{key}: {value}".rstrip() for key, value in zip(keys, values, strict=True))

    def translate(self, items: Sequence[Item]) -> Iterator[tuple[Item, Answer]]:
        timeout = openai.Timeout(self._patience.read, connect=self._patience.connect)
        with (
            openai.OpenAI(api_key=_api_key(self._base_url), base_url=self._base_url, timeout=timeout, max_retries=0) as client,
            ThreadPoolExecutor(self._workers) as pool,
        ):
            ended = threading.Event()
            tasks = {pool.submit(self._answer, client, item, ended): item for item in items}
            try:
                yield from _finished(tasks)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _system(self, target: str, relation: str) -> str:
        few_shot = self._few_shot(target, relation)
        return format_few_shot(few_shot) if few_shot else instruction(target)

    def _answer(self, client: openai.OpenAI, item: Item, ended: threading.Event) -> Answer:
        if ended.is_set():
            raise CancelledError
        try:
            return self._patience.persist(self.name, lambda: self._ask(client, item))
        except RowFault as fault:
            return Answer(None, FAILED, detail=str(fault))
        except UserError:
            ended.set()  # before any other worker takes its next row
            raise

    def _ask(self, client: openai.OpenAI, item: Item) -> Answer:
        """One request. Raises TryLater, RowFault, or UserError for what no other row would survive."""
        self._pace.wait()
        messages: Any = [
            {"role": "system", "content": self._system(item.target, item.relation)},
            {"role": "assistant" if self._published_role else "user", "content": self.query(item)},
        ]
        try:
            completion = client.chat.completions.create(
                model=self.model, messages=messages, temperature=0, seed=self._seed, max_completion_tokens=MAX_TOKENS
            )
        except openai.APIConnectionError as error:
            raise TryLater(f"no answer ({type(error).__name__})") from None
        except openai.APIStatusError as error:
            raise self._explain(error) from None
        except (openai.APIError, ValueError) as error:
            raise TryLater(f"unreadable answer ({type(error).__name__})") from None
        return _read(completion)

    def _explain(self, error: openai.APIStatusError) -> Exception:
        status, code = error.status_code, str(error.code or "")
        if "quota" in code or code == "billing_hard_limit_reached":
            return UserError(f"openai: the quota is used up ({code}); what was finished is kept")
        if status in {401, 403}:
            return UserError(f"openai refuses the key (HTTP {status}): check OPENAI_API_KEY or {KEY_FILE}")
        if status == 404:
            return UserError(f"openai knows no model '{self.model}' (HTTP 404): give another model, or check OPENAI_BASE_URL")
        if status in {408, 409, 429} or status >= 500:
            return TryLater(f"HTTP {status}", retry_after(error.response.headers.get("Retry-After")))
        return RowFault(f"HTTP {status} {code}".rstrip())


def _finished(tasks: dict[Future[Answer], Item]) -> Iterator[tuple[Item, Answer]]:
    """Answers as they come. When the service ends the work, those under way are still handed over before the error is."""
    ended: UserError | None = None
    for task in as_completed(tasks):
        try:
            yield tasks[task], task.result()
        except CancelledError:
            continue
        except UserError as error:
            ended = ended or error
    if ended:
        raise ended


def _read(completion: Any) -> Answer:
    """The answer in a completion; a server that sends something else is asked again."""
    try:
        choice = completion.choices[0]
        message, finish = choice.message, choice.finish_reason
        text, refusal = message.content, getattr(message, "refusal", None)
    except (AttributeError, IndexError, TypeError):
        raise TryLater("unreadable answer (no choices)") from None
    if text is not None and not isinstance(text, str):
        raise TryLater("unreadable answer (content is no text)")
    detail = " ".join(str(part) for part in (completion.model, getattr(completion, "system_fingerprint", None)) if part)
    if refusal:
        return Answer(text, "refusal", detail=detail)
    return Answer(text, _FINISHES.get(finish, OK), detail=detail)


def _api_key(base_url: str | None) -> str:
    """The key from OPENAI_API_KEY, else from the file; a server of one's own may need none."""
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and KEY_FILE.is_file():
        key = KEY_FILE.read_text(encoding="utf-8-sig", errors="replace").strip()
        if not key.isascii() or len(key.split()) != 1:
            raise UserError(f"{KEY_FILE} holds no key (one line, no blanks): put the key there or set OPENAI_API_KEY")
    if not key and base_url is None:
        raise UserError(f"openai needs a key: set OPENAI_API_KEY, or write it into {KEY_FILE}")
    return key or "none"
