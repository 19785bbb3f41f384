"""Protocol `corrected`: the text around an object, and which object cells may be trusted (docs/protocols.md).

A sentence is prompt + object + tail. Here the prompt is trimmed, the blank that stood before the object becomes the
separator of the continuation, and the tail ends with the sentence's stop.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fluent_mlama.languages import Language, fold_case
from fluent_mlama.records.benchmark import ERROR, Columns, objection, split_aliases

STOPS = frozenset(".。．!！?？…।۔؟։።")
_STRAIGHT_QUOTES = "\"'"
_BLANK = re.compile(r"\s+")
_JOINERS = "\u200c\u200d"
"""ZERO WIDTH (NON-)JOINER: spelling, not litter, between two letters of a script that joins its letters."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One row in one verbalisation: what stands around the object.

    prompt: trimmed. separator: one space or nothing. tail: up to and including the final stop. form: the object as it
    stands there.
    """

    prompt: str
    separator: str
    form: str
    tail: str

    @property
    def sentence(self) -> str:
        """The sentence as it is scored."""
        return f"{self.prompt}{self.separator}{self.form}{self.tail}"


def remove_invisible(text: str) -> str:
    """The text without characters that nobody sees: soft hyphens, zero-width blanks, direction marks, byte order marks.

    A joiner between two letters stays, since Persian or Hindi words are spelt with it. Blanks of any width stay blanks.
    """
    if text.isascii():
        return text
    kept = []
    for position, character in enumerate(text):
        if unicodedata.category(character) != "Cf" or (
            character in _JOINERS and _between_letters(text, position)
        ):
            kept.append(character)
    return "".join(kept)


def _between_letters(text: str, position: int) -> bool:
    neighbours = (
        text[position - 1 : position] if position else "",
        text[position + 1 : position + 2],
    )
    return all(neighbour and unicodedata.category(neighbour)[0] in "LM" for neighbour in neighbours)


def end_with_stop(tail: str, language: Language) -> str:
    """The tail up to and including its final stop; where it has none, with the language's stop behind it.

    A stop is final if nothing but closing quotes, brackets and blanks follow; the full stop of an abbreviation inside
    the tail is not.
    """
    end = len(tail)
    while end and (
        tail[end - 1].isspace()
        or tail[end - 1] in _STRAIGHT_QUOTES
        or unicodedata.category(tail[end - 1]) in {"Pe", "Pf", "Pi"}
    ):
        end -= 1
    if end and tail[end - 1] in STOPS:
        return tail[:end]
    return tail.rstrip() + language.full_stop


def read_frame(
    cells: Mapping[str, str], names: Columns, language: Language, *, accept_unsure: bool = False
) -> Frame | str:
    """The frame of one row in one verbalisation (``names``: its columns), or the reason why its object cannot be used.

    Files with a status column say so themselves; ``accept_unsure``: see ``objection``. In published files the object was not
    found if a cell is ERROR or the object is empty; it is inside the subject if its span lies within an occurrence of the
    subject's label.
    """
    sentence, prompt, form = cells[names.sentence], cells[names.prompt], cells[names.object]
    if names.status is not None and (
        reason := objection(cells[names.status], accept_unsure=accept_unsure)
    ):
        return reason
    if ERROR in (prompt, form) or not form.strip():
        return "not-found"
    if names.status is None and _inside_subject(
        sentence, prompt, form, cells["sub_label"], language.code
    ):
        return "inside-subject"
    seen = remove_invisible(prompt)
    if not seen.strip():
        return "blank-prompt"
    if names.tail is not None:
        tail = cells[names.tail]
    elif sentence.startswith(prompt + form):
        tail = sentence[len(prompt) + len(form) :]
    else:
        return "sentence-differs"
    form, tail = whole_name(
        remove_invisible(form).strip(), remove_invisible(tail), _known_names(cells), language
    )
    return Frame(
        prompt=seen.strip(),
        separator=" " if seen[-1].isspace() else "",
        form=form,
        tail=end_with_stop(tail, language),
    )


def _known_names(cells: Mapping[str, str]) -> list[str]:
    """Label, aliases and English label of a row's object."""
    listed = [cells["obj_label"], *split_aliases(cells.get("aliases", ""))]
    return [comparable(name) for name in (*listed, cells.get("en_obj_label", "")) if name.strip()]


def whole_name(form: str, tail: str, names: Sequence[str], language: Language) -> tuple[str, str]:
    """Form and tail, with the words of the tail that continue a known name moved to the form.

    A cut behind ``Motown`` leaves `` Records.`` in the tail, which is evidence of the name and no context.
    """
    best = 0
    for name in names:
        name = name.rstrip("".join(STOPS))  # the stop of `Inc.` may end the sentence
        rest = len(name) - len(form)
        if rest <= best or not tail[:rest].strip() or tail[rest : rest + 1].isalnum():
            continue
        if fold_case(form + tail[:rest], language.code) == fold_case(name, language.code):
            best = rest
    return form + tail[:best], tail[best:]


def names_object(cells: Mapping[str, str], forms: Sequence[str], lang: str) -> bool:
    """Whether the subject's label holds the object's label or one of its forms as whole words, case aside."""
    subject = _seen(cells["sub_label"], lang)
    return any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", subject)
        for name in {_seen(form, lang).strip() for form in (cells["obj_label"], *forms)}
        if name
    )


def _inside_subject(sentence: str, prompt: str, form: str, subject: str, lang: str) -> bool:
    """Whether the span ``[len(prompt), +len(form))`` lies within an occurrence of the subject's label, case aside."""
    # Folding can change the length, so the sentence is folded in three parts: the span is then the second.
    cuts = (0, len(prompt), len(prompt) + len(form), len(sentence))
    before, found_form, after = (_seen(sentence[start:end], lang) for start, end in pairwise(cuts))
    start, end = len(before), len(before) + len(found_form)
    text, label = before + found_form + after, _seen(subject, lang).strip()
    if not label:
        return False
    found = text.find(label)
    while found != -1:
        if found <= start and end <= found + len(label):
            return True
        found = text.find(label, found + 1)
    return False


def _seen(text: str, lang: str) -> str:
    """Folded case, nothing invisible, every blank a plain one."""
    return fold_case(_BLANK.sub(" ", remove_invisible(text)), lang)


def comparable(text: str) -> str:
    """A string as it is compared and scored: NFC, nothing invisible, no blanks around (stored text is untouched)."""
    return unicodedata.normalize("NFC", remove_invisible(text)).strip()


def script_of(character: str) -> str:
    """Unicode script of a letter, by its name; enough to tell the scripts of ``fluent_mlama.languages`` apart."""
    word = (
        unicodedata.name(unicodedata.normalize("NFKC", character)[:1], "")
        .split(" ", 1)[0]
        .removesuffix("-")
    )
    return "Han" if word == "CJK" else word.capitalize()
