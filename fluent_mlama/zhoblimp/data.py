"""Minimal pairs on disk: JSONL in the layout of BLiMP and ZhoBLiMP, one file per paradigm.

The files are in a folder or a tar archive.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fluent_mlama.console import UserError
from fluent_mlama.files import parse_json
from fluent_mlama.zhoblimp.vocabulary import decode_utf8

_KEYS = ("UID", "phenomenon", "sentence_good", "sentence_bad", "pairID")
_PHENOMENON_KEYS = ("phenomenon", "linguistics_term")  # BLiMP's English files use the second


@dataclass(frozen=True)
class PairRow:
    """One pair of a paradigm. ``source`` keeps every field of the input row."""

    uid: str
    phenomenon: str
    good: str
    bad: str
    number: int
    source: dict[str, Any]


def read_pairs(path: Path) -> dict[str, list[PairRow]]:
    """uid -> rows in file order. Bad rows and doubled UIDs are ``UserError``s naming the row."""
    paradigms: dict[str, list[PairRow]] = {}
    origin: dict[str, str] = {}
    for name, text in _files(path):
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                row = _parse(line, f"{name}: row {number}")
                if origin.setdefault(row.uid, name) != name:
                    raise UserError(
                        f"{name}: row {number}: UID '{row.uid}' is also in {origin[row.uid]}; "
                        "rename one of them"
                    )
                paradigms.setdefault(row.uid, []).append(row)
    if not paradigms:
        raise UserError(
            f"{path}: no minimal pairs found; a folder or tar archive of .jsonl files is needed"
        )
    return paradigms


def jsonl_of(uid: str, phenomenon: str, pairs: Sequence[tuple[str, str]]) -> str:
    """One paradigm's file, with the published keys in the published order."""
    lines = []
    for number, (good, bad) in enumerate(pairs):
        row = dict(zip(_KEYS, (uid, phenomenon, good, bad, number), strict=True))
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(lines)


def _parse(line: str, where: str) -> PairRow:
    row = parse_json(line, where)
    if not isinstance(row, dict):
        raise UserError(f"{where}: must be an object with {', '.join(_KEYS)}")
    for key in ("UID", "sentence_good", "sentence_bad"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise UserError(f"{where}: '{key}' is missing or empty")
    phenomenon = next((str(row[key]) for key in _PHENOMENON_KEYS if row.get(key)), "")
    number = row.get("pairID", row.get("pair_id", -1))
    try:
        return PairRow(
            row["UID"], phenomenon, row["sentence_good"], row["sentence_bad"], int(str(number)), row
        )
    except ValueError:
        raise UserError(f"{where}: pairID '{number}' is not a number") from None


def _files(path: Path) -> Iterator[tuple[str, str]]:
    """(file name, text) of every .jsonl of a folder or tar archive, in name order."""
    if path.is_dir():
        for file in sorted(path.glob("*.jsonl")):
            yield file.name, decode_utf8(file.read_bytes(), file.name)
    elif path.is_file() and path.suffix == ".jsonl":
        yield path.name, decode_utf8(path.read_bytes(), path.name)
    elif path.is_file():
        try:
            with tarfile.open(path) as archive:
                members = [member for member in archive if _is_pairs(member)]
                for member in sorted(members, key=lambda member: member.name):
                    content = archive.extractfile(member)
                    assert content is not None  # it is a regular file
                    name = PurePosixPath(member.name).name
                    yield name, decode_utf8(content.read(), member.name)
        except (tarfile.TarError, EOFError, OSError) as error:
            raise UserError(
                f"{path}: not a readable tar archive ({error}); "
                "give a folder, a .jsonl file or a .tar.gz"
            ) from None
    else:
        raise UserError(f"no minimal pairs at {path}; check the path")


def _is_pairs(member: tarfile.TarInfo) -> bool:
    name = PurePosixPath(member.name).name
    return member.isfile() and name.endswith(".jsonl") and not name.startswith("._")
