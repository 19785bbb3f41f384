"""A chat service behind the OpenAI interface, asked patiently: many conversations at a time, each answered once.

What cannot be mended by asking again (a bad key, an unknown model, a used-up quota) ends the work with one line; a
conversation that the service refuses gets an answer with its status, and the others go on.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

import openai

from fluent_mlama.console import UserError
from fluent_mlama.patience import Patience, RequestFailed, TryLater, may_pass
from fluent_mlama.translating.backend import FAILED, OK, Answer

KEY_FILE = Path("openai-api-key.txt")
_FINISHES = {"length": "cut", "content_filter": "filtered"}

Asked = TypeVar("Asked")
Messages = list[dict[str, str]]


class ChatClient:
    """One model of one service. Temperature is 0 and ``seed`` is sent; workers: requests under way at a time.

    base_url: None for OPENAI_BASE_URL or the service's own. The key comes from OPENAI_API_KEY or the key file.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        seed: int,
        workers: int,
        patience: Patience | None = None,
    ) -> None:
        self.model = model
        self.base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._seed = seed
        self._workers = max(1, workers)
        self._patience = patience or Patience(per_second=20.0, read=60.0)

    def check(self) -> None:
        """UserError where there is no key and the service needs one."""
        _api_key(self.base_url)

    def converse(
        self,
        asked: Sequence[Asked],
        messages: Callable[[Asked], Messages],
        max_tokens: Callable[[Asked], int],
    ) -> Iterator[tuple[Asked, Answer]]:
        """Each thing asked with its answer, as they come; ``messages`` and ``max_tokens`` are called when its turn comes."""
        timeout = openai.Timeout(self._patience.read, connect=self._patience.connect)
        with (
            openai.OpenAI(
                api_key=_api_key(self.base_url),
                base_url=self.base_url,
                timeout=timeout,
                max_retries=0,
            ) as client,
            ThreadPoolExecutor(self._workers) as pool,
        ):
            ended = threading.Event()

            def ask(one: Asked) -> Answer:
                if ended.is_set():  # also between the tries of one row: whoever stops the run need not wait for all of them
                    raise CancelledError
                return self._ask(client, messages(one), max_tokens(one))

            def answer(one: Asked) -> Answer:
                try:
                    return self._patience.persist("openai", lambda: ask(one))
                except RequestFailed as fault:
                    return Answer(None, FAILED, detail=str(fault))
                except UserError:
                    ended.set()  # before any other worker takes its next row
                    raise

            tasks = {pool.submit(answer, one): one for one in asked}
            try:
                yield from _finished(tasks)
            finally:
                ended.set()
                pool.shutdown(wait=True, cancel_futures=True)

    def _ask(self, client: openai.OpenAI, messages: Any, max_tokens: int) -> Answer:
        """One request. Raises TryLater, RequestFailed, or UserError for what no other row would survive."""
        try:
            completion = client.chat.completions.create(
                model=self.model,
                messages=messages,
                temperature=0,
                seed=self._seed,
                max_completion_tokens=max_tokens,
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
            return UserError(
                f"openai refuses the key (HTTP {status}): check OPENAI_API_KEY or {KEY_FILE}"
            )
        if status == 404:
            return UserError(
                f"openai knows no model '{self.model}' (HTTP 404): give another model, or check OPENAI_BASE_URL"
            )
        if may_pass(status):
            return TryLater(f"HTTP {status}", error.response.headers)
        told = (
            code if re.fullmatch(r"[a-z_]{1,40}", code) else ""
        )  # a service may send anything back, even the key
        return RequestFailed(f"HTTP {status} {told}".rstrip())


def _finished(tasks: dict[Future[Answer], Asked]) -> Iterator[tuple[Asked, Answer]]:
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
    detail = " ".join(
        str(part)
        for part in (completion.model, getattr(completion, "system_fingerprint", None))
        if part
    )
    if refusal:
        return Answer(text, "refusal", detail=detail)
    return Answer(text, _FINISHES.get(finish, OK), detail=detail)


def _api_key(base_url: str | None) -> str:
    """The key from OPENAI_API_KEY, else from the file; a server of one's own may need none."""
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and KEY_FILE.is_file():
        key = KEY_FILE.read_text(encoding="utf-8-sig", errors="replace").strip()
        if not key.isascii() or len(key.split()) != 1:
            raise UserError(
                f"{KEY_FILE} holds no key (one line, no blanks): put the key there or set OPENAI_API_KEY"
            )
    if not key and base_url is None:
        raise UserError(f"openai needs a key: set OPENAI_API_KEY, or write it into {KEY_FILE}")
    return key or "none"
