"""Translations from a two-column TSV that anyone made: English sentence, tab, translation."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from fluent_mlama.console import UserError
from fluent_mlama.translating.backend import (
    Answer,
    SourceSentence,
    TranslatorOptions,
    back_end,
    text_hash,
)

_HEADERS = {"en_template", "english", "source", "sentence"}


class FileTranslator:
    """path: a TSV, a folder of ``{lang}_{relation}.tsv``, or a path with ``{lang}`` and
    ``{relation}`` in it.
    """

    name = "file"
    costly = False

    def __init__(self, path: Path) -> None:
        self.model = ""
        self._path = path
        self._read: dict[Path, dict[str, str]] = {}

    def check(self, source: str, target: str, relation: str) -> None:
        self._translations(target, relation)

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        return text_hash(
            *(cell for pair in self._translations(target, relation).items() for cell in pair)
        )

    def query(self, item: SourceSentence) -> str:
        return item.sentence

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        for item in items:
            text = self._translations(item.target, item.relation).get(_key(item.sentence))
            yield (
                item,
                (
                    Answer(None, "missing", detail=f"no such sentence in {self._path}")
                    if text is None
                    else Answer(text)
                ),
            )

    def _translations(self, target: str, relation: str) -> dict[str, str]:
        path = self._path / f"{target}_{relation}.tsv" if self._path.is_dir() else Path(
            str(self._path).replace("{lang}", target).replace("{relation}", relation)
        )  # fmt: skip
        # Several relations may share a file; it is read once.
        if path not in self._read:
            self._read[path] = read_translations(path)
        return self._read[path]


@back_end("file")
def _from_path(argument: str, options: TranslatorOptions) -> FileTranslator:
    if not argument:
        raise UserError(
            "file needs a path: file:translations.tsv, or file:translations/{lang}_{relation}.tsv"
        )
    return FileTranslator(Path(argument))


def read_translations(path: Path) -> dict[str, str]:
    """English sentence -> translation. A header row is known by its first cell; empty lines are
    skipped.

    Raises UserError with the row: not two columns, or a sentence that comes twice with different
    translations.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(
            f"cannot read translations {path} ({error.strerror}): give a TSV of English sentence"
            " and translation"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8 text"
        ) from error
    found: dict[str, tuple[str, int]] = {}
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), dialect="excel-tab", strict=True))
    except csv.Error as error:
        raise UserError(
            f"{path} is not a proper TSV ({error}): double the quotes inside a quoted cell"
        ) from error
    for number, row in enumerate(rows, start=1):
        if not row or (number == 1 and row[0].strip().casefold() in _HEADERS):
            continue
        if len(row) != 2:
            raise UserError(
                f"{path}, row {number}: {len(row)} columns where 2 are wanted (English sentence,"
                " tab, translation)"
            )
        sentence, translation = _key(row[0]), row[1]
        earlier = found.setdefault(sentence, (translation, number))
        if earlier[0] != translation:
            raise UserError(
                f"{path}, row {number}: another translation than in row {earlier[1]} for"
                f" '{sentence}'; keep one of them"
            )
    if not found:
        raise UserError(
            f"{path} holds no translations: one row a sentence (English sentence, tab, translation)"
        )
    return {sentence: translation for sentence, (translation, _) in found.items()}


def _key(sentence: str) -> str:
    return " ".join(sentence.split())
