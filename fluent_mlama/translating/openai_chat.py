"""The paper's constrained translation by a chat model: few-shot examples, subject and object given.

Any OpenAI-compatible server will do (``OPENAI_BASE_URL``). Unlike the published run, the query is a
user's turn with the keys of the examples, the temperature is 0 and a seed is sent;
``published_role`` restores the published turn for reproduction.

``ChatClient`` asks patiently, many conversations at a time. What cannot be mended by asking again
(a bad key, an unknown model, a used-up quota) ends the work with one line; a conversation that the
service refuses gets an answer with its status, and the others go on.
"""

from __future__ import annotations

import os
import random
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fluent_mlama.console import UserError, note
from fluent_mlama.files import open_source
from fluent_mlama.languages import language
from fluent_mlama.patience import Patience, RequestFailed, TryLater, may_pass
from fluent_mlama.records.few_shot import (
    KEYS,
    FewShot,
    Shot,
    few_shot_name,
    format_few_shot,
    read_few_shot,
    write_few_shot,
)
from fluent_mlama.translating.backend import (
    FAILED,
    OK,
    Answer,
    FewShotSource,
    SourceSentence,
    TranslatorOptions,
    back_end,
    text_hash,
)

if TYPE_CHECKING:
    import openai

DEFAULT_MODEL = "gpt-4o-mini"
MAX_TOKENS = 256
MOST_SHOTS = 20
PATIENCE = Patience(per_second=20.0, read=60.0)
"""Chat services answer slowly and take many requests at a time."""

KEY_FILE = Path("openai-api-key.txt")
_FINISHES = {"length": "cut", "content_filter": "filtered"}

Asked = TypeVar("Asked")
Messages = list[dict[str, str]]


def instruction(target: str) -> str:
    """What the model is told before any example; five short lines, as the published text has."""
    name = language(target).name
    return (
        f"You translate English sentences into {name}, as a professional would.\n"
        f"Beside each sentence you are given its subject and its object in {name}: "
        "use these translations.\n"
        "Inflect them, and make the words around them agree, as the grammar demands.\n"
        f"Answer with the {name} sentence alone, in one line, without quotes.\n"
        "Follow the examples, if there are any:"
    )


class OpenAITranslator:
    """A chat model behind the OpenAI interface.

    examples: gives the few-shot text; seed: sent with each request;
    workers: requests under way at a time.
    """

    name = "openai"
    costly = True

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        examples: FewShotSource | None = None,
        base_url: str | None = None,
        seed: int = 0,
        published_role: bool = False,
        workers: int = 4,
        patience: Patience | None = None,
    ) -> None:
        self.model = model
        self._examples = examples or (lambda target, relation: None)
        self._seed = seed
        self._published_role = published_role
        self._client = ChatClient(
            model, base_url=base_url, seed=seed, workers=workers, patience=patience
        )

    def check(self, source: str, target: str, relation: str) -> None:
        self._client.check()
        for code in (source, target):
            language(code)

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        role = "published" if self._published_role else "user"
        return text_hash(
            self._system(target, relation), role, str(self._seed), "temperature 0", str(MAX_TOKENS)
        )

    def query(self, item: SourceSentence) -> str:
        keys = (
            ("Source sentence", "Subject", "Object", "Sentence") if self._published_role else KEYS
        )
        values = (item.sentence, item.sub_label, item.obj_label, "")
        lines = (f"{key}: {value}".rstrip() for key, value in zip(keys, values, strict=True))
        return "\n".join(lines)

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        return self._client.converse(items, self._messages, lambda item: MAX_TOKENS)

    def _messages(self, item: SourceSentence) -> Messages:
        return [
            {"role": "system", "content": self._system(item.target, item.relation)},
            {"role": "assistant" if self._published_role else "user", "content": self.query(item)},
        ]

    def _system(self, target: str, relation: str) -> str:
        few_shot = self._examples(target, relation)
        return format_few_shot(few_shot) if few_shot else instruction(target)


@back_end("openai", verbalisation="chatgpt")
def _from_name(argument: str, options: TranslatorOptions) -> OpenAITranslator:
    return OpenAITranslator(
        argument or DEFAULT_MODEL,
        examples=options.examples,
        base_url=options.address("openai"),
        seed=options.seed,
        published_role=options.published_role,
        workers=options.workers,
        patience=options.patience(PATIENCE),
    )


def find_or_draw(
    folder: Path,
    facts: Sequence[tuple[str, str, str]],
    translations: Sequence[str] | None,
    lang: str,
    relation: str,
    *,
    most: int = MOST_SHOTS,
    seed: int = 0,
) -> FewShot:
    """The few-shot text in ``folder`` (a person may have mended it), else a new one, written there.

    Examples are drawn from the facts that have a translation: at most ``most``, and never more than
    a quarter of all facts (the published sampler's rule). The same seed and facts give the same
    examples, in the facts' order.
    facts: (English sentence, subject, object) with both labels in ``lang``.
    translations: one per fact, "" where there is none; None: there are none to draw from.
    """
    path = folder / few_shot_name(lang, relation)
    if path.is_file():
        few_shot = read_few_shot(open_source(folder), lang, relation)
        if few_shot.shots or few_shot.instruction:
            return few_shot
    if translations is None:
        raise UserError(
            f"no few-shot text {path}, and no translations yet to draw one from: "
            "name another translator first, or write it"
        )
    usable = [row for row, text in enumerate(translations) if text.strip() and "\n" not in text]
    number = min(most, len(usable), len(facts) // 4)
    drawn = sorted(random.Random(f"{seed}|{lang}|{relation}").sample(usable, number))
    shots = [Shot(*map(str.strip, (*facts[row], translations[row]))) for row in drawn]
    few_shot = FewShot(instruction(lang), tuple(shots))
    write_few_shot(folder, lang, relation, few_shot)
    note(f"{path}: {number} examples drawn (seed {seed}); edit those that are not fluent")
    return few_shot


class ChatClient:
    """One model of one service. Temperature is 0 and ``seed`` is sent; workers: requests under way
    at a time.

    base_url: None for OPENAI_BASE_URL or the service's own. The key comes from OPENAI_API_KEY or
    the key file.
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
        self._patience = patience or PATIENCE

    def check(self) -> None:
        """UserError where there is no key and the service needs one."""
        _api_key(self.base_url)

    def converse(
        self,
        asked: Sequence[Asked],
        messages: Callable[[Asked], Messages],
        max_tokens: Callable[[Asked], int],
    ) -> Iterator[tuple[Asked, Answer]]:
        """Each thing asked with its answer, as they come; the callables are called at its turn."""
        import openai  # half a second: not before there is something to ask

        # Retries are ours (``Patience``): the client's own know no pace and do not report waits.
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
                # Also between the tries of one row: who stops the run need not wait for them all.
                if ended.is_set():
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
        """One request. Raises TryLater, RequestFailed, or UserError for what ends the whole run."""
        import openai

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
                f"openai knows no model '{self.model}' (HTTP 404): give another model, or check"
                " OPENAI_BASE_URL"
            )
        if may_pass(status):
            return TryLater(f"HTTP {status}", error.response.headers)
        told = (
            code if re.fullmatch(r"[a-z_]{1,40}", code) else ""
        )  # a service may send anything back, even the key
        return RequestFailed(f"HTTP {status} {told}".rstrip())


def _finished(tasks: dict[Future[Answer], Asked]) -> Iterator[tuple[Asked, Answer]]:
    """Answers as they come; those under way are handed over before an error that ends the work."""
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
    origin = (completion.model, getattr(completion, "system_fingerprint", None))
    detail = " ".join(str(part) for part in origin if part)
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
                f"{KEY_FILE} holds no key (one line, no blanks): put the key there or set"
                " OPENAI_API_KEY"
            )
    if not key and base_url is None:
        raise UserError(f"openai needs a key: set OPENAI_API_KEY, or write it into {KEY_FILE}")
    return key or "none"
