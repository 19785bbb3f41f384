"""An export's folder: moved into place whole, with its record and the list of what it does not carry."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fluent_mlama import __version__
from fluent_mlama.exporting.facts import Facts, LeftOut
from fluent_mlama.files import format_table, parse_json, replacing_folder

RECORD = "export.json"
LEFT_OUT = "left_out.tsv"


@contextlib.contextmanager
def export_folder(path: Path, facts: Facts, kind: str) -> Iterator[Path]:
    """Yield a folder to fill; with ``export.json`` and ``left_out.tsv`` added it takes the place of ``path``.

    An earlier export is replaced; other files are never touched (``UserError``). Nothing in it depends on the day or the
    machine: the same benchmark files give the same bytes.
    """
    with replacing_folder(path, find_foreign=find_foreign) as folder:
        yield folder
        (folder / LEFT_OUT).write_text(
            _left_out_table(facts.left_out), encoding="utf-8", newline=""
        )
        write_json(
            folder / RECORD,
            {"format": kind, "version": __version__} | facts.record() | {"holds": _files(folder)},
        )


def find_foreign(folder: Path) -> str | None:
    """A file in an export's folder that the export's record does not name; what Python leaves there when the harness imports is none."""
    try:
        held = {RECORD, *parse_json((folder / RECORD).read_bytes(), RECORD)["holds"]}
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
    ):  # no export: one name is enough, however much lies below
        return next((entry.name for entry in sorted(folder.iterdir())), None)
    return next((name for name in _files(folder) if name not in held), None)


def _files(folder: Path) -> list[str]:
    paths = (
        path.relative_to(folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() or path.is_symlink()
    )
    return [path.as_posix() for path in paths if "__pycache__" not in path.parts]


def write_json(path: Path, content: Any) -> None:
    """JSON for people: indented, letters as they are."""
    path.write_text(
        json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline=""
    )


def write_json_lines(path: Path, rows: Sequence[Any]) -> None:
    """One JSON object a line; a line separator in a label is escaped, so that a line is a line for every reader."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    for character in "\x85\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    path.write_text(text, encoding="utf-8", newline="")


def _left_out_table(left_out: Sequence[LeftOut]) -> str:
    columns = ("file", "row", "sub_uri", "obj_uri", "verbalisation", "reason")
    rows = [[str(getattr(entry, column)) for column in columns] for entry in left_out]
    return format_table(pd.DataFrame(rows, columns=list(columns), dtype="str"))
