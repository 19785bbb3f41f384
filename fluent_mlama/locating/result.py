"""What goes into the search for the object and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

UNSURE = 0.7
"""Below this confidence a found span is flagged ``unsure``: look at it before it is ranked."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sentence and what is known about the fact it tells.

    sentence: the fluent sentence as the translator gave it (any normalisation form, blanks kept).
    label, subject: object's and subject's label in the sentence's language.
    aliases: further names of the object, best first; english, english_subject: the English labels.
    template: the relation's template or the filled template; only the order of ``[X]`` and ``[Y]``
    is read.
    key: what tells objects apart (obj_uri); the label stands in where it is missing.
    forms: object forms already known for this fact, say from another verbalisation of it.
    """

    sentence: str
    label: str
    subject: str = ""
    aliases: tuple[str, ...] = ()
    english: str = ""
    english_subject: str = ""
    template: str = ""
    key: str = ""
    forms: tuple[str, ...] = field(default=())

    @property
    def object_key(self) -> str:
        """The object's identity within the relation."""
        return self.key or self.label


@dataclass(frozen=True, slots=True)
class Location:
    """Where the object stands: ``sentence[start:end]`` is its surface form, never empty.

    method: how it was found (docs/locating.md lists them); confidence: 0 to 1, calibrated by hand,
    not a probability.
    final: whether only punctuation follows; ambiguous: whether another place was nearly as good.
    """

    sentence: str
    start: int
    end: int
    method: str
    confidence: float
    ambiguous: bool = False
    found: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.sentence[self.start : self.end].strip():
            raise ValueError(f"empty object at {self.start}:{self.end} of {self.sentence!r}")

    @property
    def object_form(self) -> str:
        """The surface form of the object."""
        return self.sentence[self.start : self.end]

    @property
    def prompt(self) -> str:
        """The sentence up to the object, blanks as they were."""
        return self.sentence[: self.start]

    @property
    def tail(self) -> str:
        """What follows the object, the full stop included."""
        return self.sentence[self.end :]

    @property
    def final(self) -> bool:
        """Whether no word follows the object: only then does the prompt hold the whole question."""
        return not any(character.isalnum() for character in self.tail)

    @property
    def flags(self) -> tuple[str, ...]:
        """What a reader of the row should know, in a fixed order."""
        flags = [] if self.method == "exact" else [self.method]
        flags += ["not-final"] * (not self.final) + ["ambiguous"] * self.ambiguous
        return (*flags, *["unsure"] * (self.confidence < UNSURE))

    @property
    def status(self) -> str:
        """The status cell: ``ok`` and the flags, joined by ``;``."""
        return ";".join(("ok", *self.flags))


@dataclass(frozen=True, slots=True)
class NotFound:
    """No reliable span. reason: ``not-found``, ``inside-subject`` or ``empty``."""

    reason: str
    found: ClassVar[bool] = False

    @property
    def status(self) -> str:
        """The status cell: the reason."""
        return self.reason


Outcome: TypeAlias = Location | NotFound
