"""From a word on the command line to a back end: ``[VERBALISATION=]BACKEND[:ARGUMENT]``.

``google``, ``gt=deepl``, ``openai:gpt-4o-mini``, ``nllb=seq2seq:facebook/nllb-200-distilled-600M``, ``file:translations/ru_P19.tsv``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fluent_mlama.console import UserError
from fluent_mlama.patience import Patience
from fluent_mlama.translating.backend import Translator
from fluent_mlama.translating.document import DocumentTranslator
from fluent_mlama.translating.file import FileTranslator
from fluent_mlama.translating.google import ENGINES, DeepTranslator
from fluent_mlama.translating.openai_chat import DEFAULT_MODEL, FewShotSource, OpenAITranslator
from fluent_mlama.translating.phrasebook import PhrasebookTranslator
from fluent_mlama.translating.seq2seq import Seq2SeqTranslator

BACKENDS: tuple[str, ...] = ("document", "file", *ENGINES, "openai", "phrasebook", "seq2seq")
_VERBALISATIONS = {"google": "gt", "document": "gt", "openai": "chatgpt"}
_RESERVED = {"template", "en", "sub", "obj"}
_NO_ARGUMENT = set(ENGINES)


@dataclass(frozen=True, slots=True)
class Options:
    """What the back ends can be told besides their argument.

    base_urls: back end -> address of its service. per_second: requests a second at most (None: each back end's own pace).
    """

    base_urls: Mapping[str, str] = field(default_factory=dict)
    few_shot: FewShotSource | None = None
    seed: int = 0
    published_role: bool = False
    workers: int = 4
    per_second: float | None = None
    device: str = "auto"

    def patience(self, usual: Patience) -> Patience:
        """The back end's usual patience at the pace that was asked for."""
        return usual if self.per_second is None else replace(usual, per_second=self.per_second)


def make_translator(word: str, options: Options | None = None) -> tuple[str, Translator]:
    """The verbalisation's name and its back end. Raises UserError for an unknown back end or a name that cannot be a column."""
    options = options or Options()
    match = re.fullmatch(r"(?:(?P<name>[^=:]*)=)?(?P<backend>[^:]+)(?::(?P<argument>.*))?", word)
    backend = match["backend"] if match else word
    if not match or backend not in BACKENDS:
        raise UserError(f"unknown translator '{backend}': choose from {', '.join(BACKENDS)}")
    argument = match["argument"] or ""
    if argument and backend in _NO_ARGUMENT:
        raise UserError(f"translator '{word}': {backend} takes nothing after a colon")
    name = match["name"] if match["name"] is not None else _VERBALISATIONS.get(backend, backend)
    return check_name(name), _make(backend, argument, options)


def check_name(name: str) -> str:
    """The verbalisation's name, if it can be one: lower-case letters and digits, none of the columns' own words."""
    if not re.fullmatch(r"[a-z][a-z0-9]*", name) or name in _RESERVED:
        taken = ", ".join(sorted(_RESERVED))
        raise UserError(
            f"'{name}' cannot name a verbalisation: take lower-case letters and digits, and none of {taken}"
        )
    return name


def _make(backend: str, argument: str, options: Options) -> Translator:
    base_url = options.base_urls.get(backend)
    if backend in ENGINES:
        return DeepTranslator(backend, base_url=base_url, patience=options.patience(Patience()))
    if backend == "openai":
        return OpenAITranslator(
            argument or DEFAULT_MODEL,
            few_shot=options.few_shot,
            base_url=base_url,
            seed=options.seed,
            published_role=options.published_role,
            workers=options.workers,
            patience=options.patience(Patience(per_second=20.0, read=60.0)),
        )
    if backend == "seq2seq":
        return Seq2SeqTranslator(argument, device=options.device)
    if backend == "document":
        return DocumentTranslator(Path(argument or "gt_doc"))
    if backend == "phrasebook":
        return PhrasebookTranslator(Path(argument)) if argument else PhrasebookTranslator()
    if not argument:
        raise UserError(
            "file needs a path: file:translations.tsv, or file:translations/{lang}_{relation}.tsv"
        )
    return FileTranslator(Path(argument))
