"""How the paper did it: a person has one workbook per relation translated as a document.

``gt_doc/src/{lang}_{relation}.xlsx`` holds the English sentences, ``gt_doc/tgt/`` the same
workbooks translated. The service translates the header and the sheet's name too, so both are read
by position; rows pair by position.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from fluent_mlama.console import UserError, note
from fluent_mlama.files import replacing
from fluent_mlama.translating.backend import (
    Answer,
    SourceSentence,
    TranslatorOptions,
    back_end,
    text_hash,
)

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class DocumentTranslator:
    """folder: where ``src/`` and ``tgt/`` lie (``gt_doc`` in the published repository)."""

    name = "document"
    costly = False

    def __init__(self, folder: Path = Path("gt_doc")) -> None:
        self.model = ""
        self._folder = folder

    def check(self, source: str, target: str, relation: str) -> None:
        if self._folder.exists() and not self._folder.is_dir():
            raise UserError(f"{self._folder} is a file: give the folder that holds src/ and tgt/")
        for path in (self._path(side, target, relation) for side in ("src", "tgt")):
            if path.exists():
                read_workbook(path)

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        # The bytes of both workbooks: another translation is another answer.
        paths = [self._path(side, target, relation) for side in ("src", "tgt")]
        return text_hash(
            *(
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
                for path in paths
            )
        )

    def query(self, item: SourceSentence) -> str:
        return f"{item.row}: {item.sentence}"  # two facts with one sentence have a row each

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        groups: dict[tuple[str, str], list[SourceSentence]] = defaultdict(list)
        for item in items:
            groups[item.target, item.relation].append(item)
        for (target, relation), group in groups.items():
            yield from self._translate_workbook(target, relation, group)

    def write_missing(self, items: Sequence[SourceSentence]) -> list[Path]:
        """Write the English workbook of every pair without a translated one; returns the paths."""
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for item in items:
            groups[item.target, item.relation].append(item.sentence)
        written = []
        for (target, relation), sentences in groups.items():
            if not self._path("tgt", target, relation).is_file():
                written.append(self._path("src", target, relation))
                write_workbook(written[-1], sentences)
        return written

    def _path(self, side: str, target: str, relation: str) -> Path:
        return self._folder / side / f"{target}_{relation}.xlsx"

    def _translate_workbook(
        self, target: str, relation: str, items: Sequence[SourceSentence]
    ) -> Iterator[tuple[SourceSentence, Answer]]:
        source, translated = (
            self._path("src", target, relation),
            self._path("tgt", target, relation),
        )
        if written := self.write_missing(items):
            raise UserError(what_to_do(written))
        if not source.is_file():
            raise UserError(
                f"{translated} has no {source} beside it: without the English rows its translations"
                " belong to no fact"
            )
        english, translations = read_workbook(source), read_workbook(translated)
        if len(english) != len(translations):
            counts = f"{source} has {len(english)} rows and {translated} has {len(translations)}"
            raise UserError(f"{counts}: translate the whole workbook again")
        by_sentence: dict[str, deque[str]] = defaultdict(deque)
        for sentence, translation in zip(english, translations, strict=True):
            by_sentence[sentence.strip()].append(translation)
        doubles = sorted(sentence for sentence, found in by_sentence.items() if len(found) > 1)
        if doubles:
            note(
                f"{source}: {len(doubles)} sentences appear more than once (the first:"
                f" '{doubles[0]}'); each fact takes the next one"
            )
        for item in items:
            found = by_sentence.get(item.sentence.strip())
            if not found:
                yield item, Answer(None, "missing", detail=f"no such sentence in {source}")
            else:
                yield item, Answer(found[0] if len(found) == 1 else found.popleft())


@back_end("document", verbalisation="gt")
def _from_folder(argument: str, options: TranslatorOptions) -> DocumentTranslator:
    return DocumentTranslator(Path(argument or "gt_doc"))


def what_to_do(written: Sequence[Path]) -> str:
    """What a person does with the workbooks that were written."""
    names = ", ".join(path.name for path in written)
    into = written[0].parent.parent / "tgt"
    return (
        f"{len(written)} English workbook(s) written into {written[0].parent} ({names}): have each"
        f" translated as a document into the language it is named after, save the results in {into}"
        " under the same names, and run the same command again"
    )


def read_workbook(path: Path) -> list[str]:
    """The sentences of a workbook: second column of the first sheet, below one header row, empty
    rows at the end left out.
    """
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, InvalidFileException) as error:
        raise UserError(
            f"{path} cannot be read as an Excel workbook ({type(error).__name__}): save it as .xlsx"
        ) from error
    try:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # some writers leave a wrong one, and rows would be lost
        rows = [[*row, None, None][:2] for row in sheet.iter_rows(min_row=2, values_only=True)]
    finally:
        book.close()
    sentences = ["" if sentence is None else str(sentence) for _, sentence in rows]
    while sentences and not sentences[-1].strip():
        sentences.pop()
    return sentences


def write_workbook(path: Path, sentences: Sequence[str]) -> None:
    """Write the English sentences in the published layout: row number, sentence, under the header
    (empty, en_template).
    """
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sheet1"
    sheet.append([None, "en_template"])
    for number, sentence in enumerate(sentences):
        sheet.append([number, None])
        cell = sheet.cell(row=number + 2, column=2, value=_CONTROL.sub("", sentence))
        cell.data_type = "s"  # a sentence that begins with "=" is no formula
    with replacing(path) as temporary:
        book.save(temporary)
