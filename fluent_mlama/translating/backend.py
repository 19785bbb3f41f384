"""The protocol every translation back end speaks: facts go in, answers come out, one at a time.

A back end is any object with the attributes and methods of ``Translator``; it inherits nothing. It asks its
service and reports what came back, untouched; it neither keeps answers (``store``) nor judges them (``checks``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

OK = "ok"
"""The status of an answer that its back end has no objection to."""

FAILED = "failed"
"""The status of a row whose request failed; it is not kept, and the next run asks for it again."""


@dataclass(frozen=True, slots=True)
class Item:
    """One fact to be put into words in ``target``.

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
    status: ``ok``, or why the text cannot be used (one word, hyphens allowed: ``failed``, ``refusal``, ``cut``,
        ``filtered``, ``missing``).
    object_span: characters ``[start, end)`` of ``text`` that are the object form, where the back end knows them
        (then no one has to look for the object).
    detail: what the service says of itself or of the failure (dated model name, fingerprint, HTTP status), for the record.
    """

    text: str | None
    status: str = OK
    object_span: tuple[int, int] | None = None
    detail: str = ""


@runtime_checkable
class Translator(Protocol):
    """A translation back end.

    name: what the command line calls it (``google``, ``openai``, ``phrasebook``).
    model: which model or engine answers, as far as it is known before asking ("" where that means nothing).
    costly: whether an answer costs time or money, so that it is kept in the store and never asked for twice.
    """

    name: str
    costly: bool

    @property
    def model(self) -> str:
        """Part of the key of every kept answer; for models on this machine it includes their identity."""

    def check(self, source: str, target: str, relation: str) -> None:
        """Raise a ``UserError`` if this language pair and relation cannot be translated; asks no service for anything."""

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        """Identifies all that shapes an answer besides ``query`` (instructions, shots, temperature, a file's content)."""

    def query(self, item: Item) -> str:
        """The text that is sent for ``item``; items with equal queries get equal answers and are asked for once."""

    def translate(self, items: Sequence[Item]) -> Iterator[tuple[Item, Answer]]:
        """Yield each item with its answer as soon as it is there, in any order, each item once.

        A row that fails yields an ``Answer`` with status ``failed`` and the reason in ``detail``. A ``UserError`` ends the
        work: it is for what no further row can mend (a used-up quota, a refused key).
        """


def text_hash(*parts: str) -> str:
    """Sixteen hex digits that identify the parts, for ``Translator.prompt_hash``."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
