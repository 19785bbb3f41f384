"""One way to open the small SQLite files in which answers of services are kept as they arrive."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fluent_mlama.console import UserError


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
            f"store {path} cannot be used ({what}): free space, make it writable, or give another --store"
        ) from error
    except sqlite3.DatabaseError as error:
        raise UserError(
            f"store {path} is damaged or no SQLite file ({error}): move it away, or give another --store"
        ) from error


def open_sqlite(path: Path, schema: str) -> sqlite3.Connection:
    """Open or make the file, in write-ahead mode, each statement its own transaction (a kill loses at most the one under way).

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
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.executescript(schema)
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("quick_check found broken pages")
    return connection
