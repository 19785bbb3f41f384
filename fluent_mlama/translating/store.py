"""The store: every finished translation, kept as it arrives, so that no service is asked twice for
the same thing.

Kept are the answers as they came; the checks run again each time, so a better check needs no new
request.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Self
from unicodedata import normalize

from fluent_mlama.console import UserError
from fluent_mlama.translating.backend import FAILED, Answer, SourceSentence, Translator

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    backend TEXT NOT NULL, model TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,
    prompt_hash TEXT NOT NULL, query TEXT NOT NULL, text TEXT, status TEXT NOT NULL,
    span_start INTEGER, span_end INTEGER, detail TEXT NOT NULL, answered TEXT NOT NULL,
    PRIMARY KEY (backend, model, source, target, prompt_hash, query)
) WITHOUT ROWID;
"""

DEFAULT_STORE = Path(".cache") / "translations.sqlite"
FAILURES_IN_A_ROW = 6
"""After so many failed rows one after the other the service is taken to be down, and the run ends
with what it has.
"""

Key = tuple[str, str, str, str, str, str]


class Store:
    """Answers by (back end, model, source, target, prompt hash, NFC text of the query)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = open_sqlite(path, _SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def get(self, key: Key) -> Answer | None:
        """The kept answer, or None."""
        with plain_errors(self.path):
            row = self._connection.execute(
                "SELECT text, status, span_start, span_end, detail FROM answers WHERE backend=? AND"
                " model=? AND source=? AND target=? AND prompt_hash=? AND query=?",
                key,
            ).fetchone()
        if row is None:
            return None
        text, status, start, end, detail = row
        return Answer(text, status, None if start is None else (start, end), detail)

    def keep(self, key: Key, answer: Answer) -> None:
        """Keep the answer at once (committed when this returns)."""
        start, end = answer.object_span or (None, None)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with plain_errors(self.path):
            self._connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                (*key, answer.text, answer.status, start, end, answer.detail, now),
            )


def store_keys(translator: Translator, items: Sequence[SourceSentence]) -> list[Key]:
    """What identifies each item's answer in the store."""
    shaping = lru_cache(maxsize=None)(translator.prompt_hash)
    name, model = translator.name, translator.model
    with blaming(translator):
        keys = [
            (
                shaping(item.source, item.target, item.relation),
                normalize("NFC", translator.query(item)),
            )
            for item in items
        ]
    return [
        (name, model, item.source, item.target, *key) for item, key in zip(items, keys, strict=True)
    ]


@contextmanager
def blaming(translator: Translator) -> Iterator[None]:
    """An error in a foreign back end becomes one line that names it; ours stay as they are."""
    try:
        yield
    except Exception as error:
        if isinstance(error, UserError) or type(translator).__module__.startswith("fluent_mlama."):
            raise
        raise UserError(
            f"back end {translator.name} failed ({type(error).__name__}: {error}); what was"
            " finished is kept: mend it and run this again"
        ) from error


def _translate(
    translator: Translator, items: Sequence[SourceSentence]
) -> Iterator[tuple[SourceSentence, Answer]]:
    with blaming(translator):
        yield from translator.translate(items)


def _encodable(answer: Answer) -> Answer:
    """Half a character, as JSON may carry (``\\ud83d``), cannot be stored: U+FFFD instead."""
    if answer.text is None or answer.text.isascii():
        return answer
    return replace(
        answer, text=answer.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


def ask(
    translator: Translator,
    items: Sequence[SourceSentence],
    store: Store | None,
    *,
    refresh: bool = False,
) -> Iterator[tuple[SourceSentence, Answer]]:
    """Yield every item with its answer, kept ones first; equal queries are asked for once.

    Failed rows are not kept, so the next run asks for them again. ``refresh`` asks for all again
    and keeps the new answers. Raises UserError when the back end gives up, answers what is no
    answer, or when FAILURES_IN_A_ROW rows fail one after the other.
    """
    shared = store if translator.costly else None
    waiting: dict[Key, list[SourceSentence]] = {}
    for item, key in zip(items, store_keys(translator, items), strict=True):
        kept = shared.get(key) if shared and not refresh else None
        if kept is not None:
            yield item, kept
        else:
            waiting.setdefault(key, []).append(item)
    # One sentence stands for all with the same key; its answer goes to every twin.
    asked = {twins[0]: key for key, twins in waiting.items()}
    failures = 0  # in a row
    for item, answer in _translate(translator, list(asked)) if asked else ():
        if (
            item not in asked
            or not isinstance(answer, Answer)
            or not isinstance(answer.text, str | None)
        ):
            raise UserError(
                f"back end {translator.name} breaks its contract"
                f" (fluent_mlama/translating/backend.py) at row {item.row}: each item once, with an"
                f" Answer whose text is a string or None, not {answer!r:.80}"
            )
        key, answer = asked.pop(item), _encodable(answer)
        if answer.status != FAILED:
            failures = 0
            if shared:
                shared.keep(key, answer)
        for twin in waiting[key]:
            yield twin, answer
        failures += answer.status == FAILED
        if failures >= FAILURES_IN_A_ROW and asked:
            where = f" and kept in {shared.path}" if shared else ""
            raise UserError(
                f"{translator.name} failed {failures} rows one after the other (last:"
                f" {answer.detail or 'no reason given'}); what was finished is done{where}: try the"
                " same command later"
            )
    # What the back end forgot counts as failed, so that no fact is lost in silence.
    for item, key in asked.items():
        for twin in waiting[key]:
            yield (
                twin,
                Answer(None, FAILED, detail=f"{translator.name} gave no answer for row {item.row}"),
            )


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite says into one line for the person."""
    try:
        yield
    except sqlite3.OperationalError as error:
        what = str(error)
        if "locked" in what:
            raise UserError(
                f"store {path} is in use by another run: wait for it, or give another --store"
            ) from error
        raise UserError(
            f"store {path} cannot be used ({what}): free space, make it writable, or give another"
            " --store"
        ) from error
    except sqlite3.DatabaseError as error:
        raise UserError(
            f"store {path} is damaged or no SQLite file ({error}): move it away, or give another"
            " --store"
        ) from error


def open_sqlite(path: Path, schema: str) -> sqlite3.Connection:
    """Open or make the file, in write-ahead mode, each statement its own transaction (a kill loses
    at most the one under way).

    schema: ``CREATE TABLE IF NOT EXISTS …`` statements.
    """
    if path.is_dir():
        raise UserError(f"store {path} is a folder: give the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot make the folder of store {path} ({error.strerror}): give another --store"
        ) from error
    with plain_errors(path):
        connection = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False
        )
        # Readers do not wait for the writer, and a kill leaves a whole file.
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.executescript(schema)
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("quick_check found broken pages")
    return connection
