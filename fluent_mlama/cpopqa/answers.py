"""Answers on disk: ``answers/<label>.jsonl``, a line a question, and ``<label>.run.json``, what made them.

A line holds ``text`` (written by the model) or ``scores`` (a number for each option, the larger the more popular).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fluent_mlama.console import UserError, note
from fluent_mlama.cpopqa.baselines import NAMES
from fluent_mlama.cpopqa.items import FILE, Item
from fluent_mlama.cpopqa.parsing import Answer, parse
from fluent_mlama.files import as_file_name, parse_json, write_bytes, write_text

FOLDER = "answers"


@dataclass
class Store:
    """The answers of one model and method to one set of questions; unfinished runs go on where they stopped."""

    folder: Path
    label: str
    _begun: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def lines(self) -> Path:
        """The answers."""
        return self.folder / FOLDER / f"{as_file_name(self.label, '-')}.jsonl"

    @property
    def run(self) -> Path:
        """What made them."""
        return self.folder / FOLDER / f"{as_file_name(self.label, '-')}.run.json"

    def begin(self, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Finished answers by id, if they were made with these settings for these questions; other ones are refused."""
        if self.label in NAMES:
            raise UserError(f"--label {self.label}: that is a baseline's name; give another")
        wanted = {"label": self.label, **settings, "questions_sha256": digest(self.folder)}
        if self.lines.exists():
            old = _read_json(self.run)
            differing = [name for name in wanted if old.get(name) != wanted[name]]
            if differing:
                raise UserError(
                    f"{self.lines} was made with another {differing[0]} ({old.get(differing[0])!r}, now {wanted[differing[0]]!r}): "
                    "move it away, or give another --label"
                )
            self._mend()
            return {record["id"]: record for record in _records(self.lines)}
        self._begun = wanted
        return {}

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append finished answers; before the first ones stands what makes them.

        Half a surrogate pair, which a service may send, is written as JSON's own escape.
        """
        records = list(records)
        if not records:
            return
        self._write_begun()
        with self.lines.open("ab") as handle:
            handle.write(_as_lines(records))

    def extend(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Add finished answers in one step: all of them are there, or none is."""
        if records:
            self._write_begun()
            old = self.lines.read_bytes() if self.lines.exists() else b""
            write_bytes(self.lines, old + _as_lines(records))

    def _write_begun(self) -> None:
        if not self.lines.exists():
            write_text(self.run, json.dumps(self._begun, ensure_ascii=False, indent=2) + "\n")

    def note(self, facts: Mapping[str, Any]) -> None:
        """Add what is known only after the work (speed, versions) to the run file, apart from what ``begin`` compares."""
        if self.lines.exists():
            write_text(
                self.run,
                json.dumps(
                    _read_json(self.run) | {"made": dict(facts)}, ensure_ascii=False, indent=2
                )
                + "\n",
            )

    def _mend(self) -> None:
        """A killed run may leave half a line at the end: cut it off, its question is asked again."""
        data = self.lines.read_bytes()
        if data and not data.endswith(b"\n"):
            write_bytes(self.lines, data[: data.rfind(b"\n") + 1])


def _as_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    return "".join(lines).encode("utf-8", errors="backslashreplace")


def digest(folder: Path) -> str:
    """SHA-256 of the questions."""
    return hashlib.sha256((folder / FILE).read_bytes()).hexdigest()


def signatures(folder: Path) -> str:
    """What made the answers, one signature per file; "" where no model has answered."""
    runs = [_read_json(path) for path in sorted((folder / FOLDER).glob("*.run.json"))]
    made = [run.get("made", {}).get("signature", "") for run in runs]
    return " / ".join(dict.fromkeys(one for one in made if one))


def read_answers(folder: Path, items: Sequence[Item]) -> dict[str, dict[str, Answer]]:
    """label -> item id -> order, of every file in ``answers/``; answers to other questions are a UserError."""
    by_id = {item.id: item for item in items}
    found: dict[str, dict[str, Answer]] = {}
    for path in sorted((folder / FOLDER).glob("*.jsonl")):
        run = _read_json(path.with_suffix(".run.json"))
        if run.get("questions_sha256") != digest(folder):
            raise UserError(
                f"{path.name}: its answers are to other questions than {FILE}; move it away, or ask again"
            )
        answers = {}
        for row, record in enumerate(_records(path), start=1):
            item = by_id.get(record["id"])
            if item is None:
                raise UserError(f"{path.name}: line {row}: no question {record['id']!r}")
            answers[item.id] = _order(record, item, path.name)
        label = str(run.get("label") or path.stem)
        if label in (*found, *NAMES):
            raise UserError(
                f"{path.name}: its label {label!r} is that of other answers or of a baseline; give it another in {path.stem}.run.json"
            )
        if len(answers) < len(items):
            note(
                f"{label}: {len(answers)} of {len(items)} questions are answered; only those are counted"
            )
        if answers:
            found[label] = answers
    return found


def _order(record: Mapping[str, Any], item: Item, where: str) -> Answer:
    if "text" in record:
        return parse(str(record["text"]), item.options)
    scores = record.get("scores")
    if (
        not isinstance(scores, dict)
        or set(scores) != set(item.options)
        or not all(map(_finite, scores.values()))
    ):
        raise UserError(
            f"{where}: {item.id} has neither text nor a finite score for each option; remove that line and rank again"
        )
    return Answer(tuple(sorted(item.options, key=lambda name: -float(scores[name]))), "full")


def _finite(score: object) -> bool:
    return isinstance(score, int | float) and math.isfinite(score)


def _records(path: Path) -> list[dict[str, Any]]:
    """The finished lines; half a line at the end is one that is being written, or that a killed run left."""
    records = []
    *lines, _ = path.read_bytes().split(
        b"\n"
    )  # a line may hold U+2028, at which splitlines would break it
    for row, line in enumerate(lines, start=1):
        try:
            record = parse_json(line, path.name, halves=True)
            records.append({**record, "id": str(record["id"])})
        except (ValueError, KeyError, TypeError):
            raise UserError(
                f"{path.name}: line {row} is no answer; remove that line and run the same command again"
            ) from None
    return records


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(parse_json(path.read_bytes(), path.name))
    except (FileNotFoundError, ValueError, TypeError):
        raise UserError(
            f"{path.name} is missing or damaged: it says what made the answers; move the answers away and ask again"
        ) from None
