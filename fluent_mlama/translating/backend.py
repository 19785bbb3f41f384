"""The protocol of a translation back end, and how a word on the command line becomes one.

A back end is any object with the attributes and methods of ``Translator``; it inherits nothing. It
asks its service and reports what came back, untouched; it neither keeps answers (``store``) nor
judges them (``checks``). ``@back_end("name")`` on a function that makes it gives it a name for
``--translator``. Every module in this folder is looked through, so a new back end is one new file
here; an installed package adds its own as an entry point of the group ``fluent_mlama.translators``.
"""

from __future__ import annotations

import hashlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import entry_points
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from cyclopts import Parameter, Token

from fluent_mlama.console import UserError
from fluent_mlama.options import Count, Name, Seed
from fluent_mlama.patience import Patience
from fluent_mlama.records.few_shot import FewShot

OK = "ok"
"""The status of an answer that its back end has no objection to."""

FAILED = "failed"
"""The status of a row whose request failed; it is not kept, and the next run asks for it again."""


@dataclass(frozen=True, slots=True)
class SourceSentence:
    """One fact, in an English sentence, to be put into words in ``target``.

    sentence: the filled English template as mLAMA gives it ("Roy Orbison was born in Vernon .").
    The labels are mLAMA's; ``sub_label`` and ``obj_label`` are in the target language.
    row: the fact's row number in the benchmark (document workbooks pair by it).
    """

    row: int
    relation: str
    sub_uri: str
    obj_uri: str
    en_sub_label: str
    en_obj_label: str
    sub_label: str
    obj_label: str
    sentence: str
    target: str
    source: str = "en"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a back end gave for one item, as it came.

    text: the sentence, or None when there is none.
    status: ``ok``, or why the text cannot be used (one word, hyphens allowed: ``failed``,
    ``refusal``, ``cut``, ``filtered``, ``missing``).
    object_span: characters ``[start, end)`` of ``text`` that are the object form, where the back
    end knows them (then no one has to look for the object).
    detail: what the service says of itself or of the failure (dated model name, fingerprint, HTTP
    status), for the record.
    """

    text: str | None
    status: str = OK
    object_span: tuple[int, int] | None = None
    detail: str = ""


@runtime_checkable
class Translator(Protocol):
    """A translation back end.

    name: what the command line calls it (``google``, ``openai``, ``phrasebook``).
    model: which model or engine answers, as far as it is known before asking ("" where that means
    nothing).
    costly: whether an answer costs time or money, so that it is kept in the store and never asked
    for twice.
    """

    name: str
    costly: bool

    @property
    def model(self) -> str:
        """Part of the key of every kept answer; models on this machine include their identity."""

    def check(self, source: str, target: str, relation: str) -> None:
        """Raise a ``UserError`` if this pair and relation cannot be translated; asks no service."""

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        """Identifies all that shapes an answer besides ``query``: instructions, shots, a file."""

    def query(self, item: SourceSentence) -> str:
        """The text sent for ``item``; items with equal queries are asked for once."""

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        """Yield each item with its answer as soon as it is there, in any order, each item once.

        A row that fails yields an ``Answer`` with status ``failed`` and the reason in ``detail``. A
        ``UserError`` ends the
        work: it is for what no further row can mend (a used-up quota, a refused key).
        """


def text_hash(*parts: str) -> str:
    """Sixteen hex digits that identify the parts, for ``Translator.prompt_hash``."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


FewShotSource: TypeAlias = Callable[[str, str], FewShot | None]
"""Gives the few-shot text for a (target language, relation), or None."""


def _words(_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Each use of the option as it came: paths may hold commas."""
    return tuple(token.value for token in tokens)


def named_addresses(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Each ``openai=http://127.0.0.1:8000/v1`` as (name, address)."""
    pairs = []
    for word in words:
        name, _, url = word.partition("=")
        is_url = url.startswith(("http://", "https://"))
        if not is_url or name not in {*back_ends(), "wikidata"}:
            example = "openai=http://127.0.0.1:8000/v1"
            raise UserError(f"--base-url '{word}': give NAME=URL, for example {example}")
        pairs.append((name, url))
    return tuple(pairs)


def _addresses(_: Any, tokens: Sequence[Token]) -> tuple[tuple[str, str], ...]:
    return named_addresses([token.value for token in tokens])


def _device(_: Any, tokens: Sequence[Token]) -> str:
    value = tokens[-1].value
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", value):
        raise ValueError(f"{value!r} is not a device; choose auto, cpu, cuda, cuda:N or mps")
    return value


def _rate(_: Any, tokens: Sequence[Token]) -> float:
    value = tokens[-1].value
    if not re.fullmatch(r"\d*\.?\d+", value) or not float(value) > 0:
        raise ValueError(f"{value!r} is not a number above 0")
    return float(value)


TranslatorWord = Annotated[
    Name,
    Parameter(help="[VERBALISATION=]BACK-END[:ARGUMENT], for example google or gt=deepl"),
]
TranslatorWords = Annotated[
    tuple[str, ...],
    Parameter(
        converter=_words,
        n_tokens=1,
        help="[VERBALISATION=]BACK-END[:ARGUMENT]; may be repeated",
    ),
]


@Parameter(name="*", group="the translators")
@dataclass(frozen=True, kw_only=True)
class TranslatorOptions:
    """What back ends can be told besides their argument."""

    base_url: Annotated[
        tuple[tuple[str, str], ...], Parameter(converter=_addresses, n_tokens=1)
    ] = ()
    """NAME=URL: another address of a back end, or of wikidata; may be repeated"""
    device: Annotated[str, Parameter(converter=_device, n_tokens=1)] = "auto"
    """seq2seq: auto, cpu, cuda, cuda:1, mps"""
    workers: Count = 4
    """openai: requests under way at a time"""
    per_second: Annotated[float, Parameter(converter=_rate, n_tokens=1)] | None = None
    """requests per second at most (default: 4; openai 20)"""
    published_role: bool = False
    """openai: ask in the published turn, for reproduction"""
    seed: Seed = 0
    """openai: sent with each request; draws the few-shot examples"""
    examples: Annotated[FewShotSource | None, Parameter(parse=False)] = None
    """openai: gives the few-shot text"""

    def address(self, name: str) -> str | None:
        """Another address of this service, if one was given."""
        return dict(self.base_url).get(name)

    def patience(self, usual: Patience) -> Patience:
        """The back end's usual patience at the pace that was asked for."""
        return usual if self.per_second is None else replace(usual, per_second=self.per_second)


Maker: TypeAlias = Callable[[str, TranslatorOptions], Translator]


class BackEnd(NamedTuple):
    """A row of the table of back ends.

    make: from (argument, options). verbalisation: the name if none is given.
    takes_argument: whether something may follow a colon.
    """

    make: Maker
    verbalisation: str
    takes_argument: bool


_BACK_ENDS: dict[str, BackEnd] = {}
_RESERVED = {"template", "en", "sub", "obj"}
_ENTRY_POINTS = "fluent_mlama.translators"


def back_end(
    name: str, *, verbalisation: str = "", takes_argument: bool = True
) -> Callable[[Maker], Maker]:
    """Enter the decorated function into the table: it makes the back end called ``name``."""

    def enter(make: Maker) -> Maker:
        _BACK_ENDS[name] = BackEnd(make, verbalisation or name, takes_argument)
        return make

    return enter


def back_ends() -> dict[str, BackEnd]:
    """All back ends by name: those of this folder and those that installed packages add."""
    folder = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(import_module(folder).__path__):
        import_module(f"{folder}.{module.name}")
    for point in entry_points(group=_ENTRY_POINTS):
        point.load()
    return dict(sorted(_BACK_ENDS.items()))


def make_translator(word: str, options: TranslatorOptions | None = None) -> tuple[str, Translator]:
    """The verbalisation's name and its back end, from ``[VERBALISATION=]BACK-END[:ARGUMENT]``.

    Raises UserError for an unknown back end or a name that cannot be a column.
    """
    pattern = r"(?:(?P<name>[^=:]*)=)?(?P<back_end>[^:]+)(?::(?P<argument>.*))?"
    match = re.fullmatch(pattern, word)
    chosen, table = (match["back_end"] if match else word), back_ends()
    if not match or chosen not in table:
        raise UserError(f"unknown translator '{chosen}': choose from {', '.join(table)}")
    row, argument = table[chosen], match["argument"] or ""
    if argument and not row.takes_argument:
        raise UserError(f"translator '{word}': {chosen} takes nothing after a colon")
    name = row.verbalisation if match["name"] is None else match["name"]
    return check_name(name), row.make(argument, options or TranslatorOptions())


def check_name(name: str) -> str:
    """The verbalisation's name, if it can be one: lower-case letters and digits, not reserved."""
    if not re.fullmatch(r"[a-z][a-z0-9]*", name) or name in _RESERVED:
        taken = ", ".join(sorted(_RESERVED))
        raise UserError(
            f"'{name}' cannot name a verbalisation: take lower-case letters and digits, "
            f"and none of {taken}"
        )
    return name
