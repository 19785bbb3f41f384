"""Google Translate and every other engine of deep-translator, by name, one sentence a request.

deep-translator (1.11.4) has no time-out, no retry and drops the response with its Retry-After; so
its requests go through a session of ours that sets the time-outs and tells faults apart by the
service's answer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import requests
from deep_translator import constants, exceptions
from deep_translator.engines import __engines__

from fluent_mlama.console import UserError
from fluent_mlama.patience import Patience, RequestFailed, TryLater, may_pass
from fluent_mlama.translating.backend import (
    FAILED,
    Answer,
    SourceSentence,
    TranslatorOptions,
    back_end,
    text_hash,
)
from fluent_mlama.translating.codes import service_code

ENGINES: tuple[str, ...] = tuple(sorted(name for name in __engines__ if name != "chatgpt"))
"""All but ``chatgpt``, which calls an interface that openai removed: use ``openai``."""

ENGINE_KEYS: dict[str, dict[str, str]] = {
    "deepl": {"api_key": "DEEPL_API_KEY"},
    "libre": {"api_key": "LIBRE_API_KEY"},
    "microsoft": {"api_key": "MICROSOFT_API_KEY"},
    "qcri": {"api_key": "QCRI_API_KEY"},
    "yandex": {"api_key": "YANDEX_API_KEY"},
    "baidu": {"appid": "BAIDU_APPID", "appkey": "BAIDU_APPKEY"},
    "papago": {"client_id": "PAPAGO_CLIENT_ID", "secret_key": "PAPAGO_SECRET_KEY"},
}
"""Constructor arguments and the environment variables they come from."""

_TABLES: dict[str, str] = {
    "baidu": "BAIDU_LANGUAGE_TO_CODE",
    "deepl": "DEEPL_LANGUAGE_TO_CODE",
    "libre": "LIBRE_LANGUAGES_TO_CODES",
    "linguee": "LINGUEE_LANGUAGES_TO_CODES",
    "mymemory": "MY_MEMORY_LANGUAGES_TO_CODES",
    "papago": "PAPAGO_LANGUAGE_TO_CODE",
    "pons": "PONS_CODES_TO_LANGUAGES",
    "qcri": "QCRI_LANGUAGE_TO_CODE",
}
"""Names of the engines' own tables of languages; the others go by Google's."""
_CALL: dict[str, dict[str, str]] = {"qcri": {"domain": "general"}}
_QUOTA_STATUS = {402, 456}
_REFUSED_STATUS = {401, 403}


class _Session(requests.Session):
    """Stands in for the name ``requests`` inside an engine: time-outs on every request, and faults
    told apart by status.

    Texts of exceptions are left out: they hold URLs, and those hold keys.
    """

    exceptions = requests.exceptions

    def __init__(self, engine: str, timeout: tuple[float, float]) -> None:
        super().__init__()
        self._engine, self._timeout = engine, timeout

    def request(self, *arguments: Any, **options: Any) -> requests.Response:
        """TryLater for what may pass, RequestFailed for one row, UserError for the run."""
        try:
            response = super().request(*arguments, **{**options, "timeout": self._timeout})
        except requests.RequestException as error:
            raise TryLater(f"no answer ({type(error).__name__})") from None
        status, engine = response.status_code, self._engine
        if status in _QUOTA_STATUS or (status == 403 and "quota" in response.text.casefold()):
            raise UserError(
                f"{engine}: the quota is used up (HTTP {status}); what was finished is kept"
            )
        if status in _REFUSED_STATUS and engine in ENGINE_KEYS:
            raise UserError(
                f"{engine} refuses the key (HTTP {status}): check"
                f" {', '.join(ENGINE_KEYS[engine].values())}"
            )
        if may_pass(status):
            raise TryLater(f"HTTP {status}", response.headers)
        if status >= 300:
            raise RequestFailed(f"HTTP {status}")
        return response


class DeepTranslator:
    """One deep-translator engine. base_url: another address (a mirror, a stand-in); None is the
    engine's own.
    """

    costly = True

    def __init__(
        self,
        engine: str = "google",
        *,
        base_url: str | None = None,
        patience: Patience | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise UserError(
                f"unknown deep-translator engine '{engine}': choose from {', '.join(ENGINES)}"
            )
        self.name = engine
        self.model = ""
        self._base_url = base_url
        self._patience = patience or Patience()
        self._session = _Session(engine, self._patience.timeout)
        self._module: Any = sys.modules[__engines__[engine].__module__]

    def check(self, source: str, target: str, relation: str) -> None:
        """Keys and language codes, before any request (only Microsoft knows its own)."""
        for variable in ENGINE_KEYS.get(self.name, {}).values():
            if not os.environ.get(variable):
                raise UserError(f"{self.name} needs a key: set the environment variable {variable}")
        if self.name != "microsoft":
            for code in (source, target):
                self._code(code)

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        return text_hash("one sentence a request")

    def query(self, item: SourceSentence) -> str:
        return item.sentence

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        engines: dict[tuple[str, str], Any] = {}
        for item in items:
            pair = (item.source, item.target)
            if pair not in engines:
                engines[pair] = self._through_session(self._engine, *pair)
            ask = partial(self._ask, engines[pair], item.sentence)
            try:
                answer = Answer(self._patience.persist(self.name, ask))
            except RequestFailed as fault:
                answer = Answer(None, fault.status or FAILED, detail=str(fault))
            yield item, answer

    def _code(self, code: str) -> str:
        table = getattr(constants, _TABLES.get(self.name, "GOOGLE_LANGUAGES_TO_CODES"))
        return service_code(self.name, table, code)

    def _engine(self, source: str, target: str) -> Any:
        keys = {
            argument: os.environ[variable]
            for argument, variable in ENGINE_KEYS.get(self.name, {}).items()
        }
        kind = __engines__[self.name]
        if self.name == "microsoft":  # asks its service for the languages when it is made
            try:
                engine = kind(target="english", **keys)
                known = engine.get_supported_languages(as_dict=True)
            except (
                TryLater,
                RequestFailed,
                ValueError,
                LookupError,
                TypeError,
                AttributeError,
            ) as error:
                raise UserError(
                    f"microsoft does not tell its languages ({type(error).__name__}): try again"
                    " later"
                ) from error
            engine.source, engine.target = (
                service_code(self.name, known, code) for code in (source, target)
            )
        else:
            engine = kind(source=self._code(source), target=self._code(target), **keys)
        if self._base_url:
            engine._base_url = self._base_url
        return engine

    def _through_session(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call into an engine, which takes no session: for the length of the call its module's
        ``requests`` is ours.
        """
        # The engines import ``requests`` by name; nothing else can set their time-outs.
        theirs, self._module.requests = self._module.requests, self._session
        try:
            return call(*arguments, **options)
        finally:
            self._module.requests = theirs

    def _ask(self, engine: Any, sentence: str) -> str | None:
        """One request; raises what the session raises."""
        try:
            text = self._through_session(engine.translate, sentence, **_CALL.get(self.name, {}))
        except (TryLater, RequestFailed, UserError):
            raise
        except (exceptions.NotValidLength, exceptions.NotValidPayload) as error:
            raise RequestFailed(
                f"sentence not accepted ({type(error).__name__})", "missing"
            ) from error
        # The engines raise three families of their own, and KeyError and the like on garbage.
        except Exception as error:
            raise TryLater(f"unreadable answer ({type(error).__name__})") from None
        if isinstance(text, str) and text.startswith("MYMEMORY WARNING"):
            raise UserError(
                f"{self.name}: the day's quota is used up; what was finished is kept: run the same"
                " command again tomorrow"
            )
        if text is None or isinstance(text, str):
            return text
        return json.dumps(text, ensure_ascii=False)


def _add(engine: str) -> None:
    """Enter one engine into the table of back ends."""

    @back_end(engine, verbalisation="gt" if engine == "google" else "", takes_argument=False)
    def make(argument: str, options: TranslatorOptions) -> DeepTranslator:
        patience = options.patience(Patience())
        return DeepTranslator(engine, base_url=options.address(engine), patience=patience)


for _name in ENGINES:
    _add(_name)
