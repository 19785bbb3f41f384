"""Hashes of whole files, kept between runs: a file that has not been touched is not read twice.

A kept hash is believed while the file's size, inode, and times of last change (of its content and of its inode) are those
that were seen. The second time is the kernel's own: setting a file's modification time back does not hide a change.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fluent_mlama.files import parse_json

_FILE = "file-hashes.json"
_SETTLED_NS = 2_000_000_000
"""A file changed less than this long ago may change again within one tick of its clock: its hash is not kept."""

Seen = tuple[int, int, int, int]


def cache_folder() -> Path:
    """FLUENT_CACHE, or ``~/.cache/fluent-mlama``."""
    named = os.environ.get("FLUENT_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "fluent-mlama"


def file_hashes(paths: Sequence[Path]) -> list[str]:
    """sha256 of each file as hex, in order; large files are read side by side (hashlib lets other threads run)."""
    kept = _read_kept()
    places = [str(path.resolve()) for path in paths]
    seen = [_look(path) for path in paths]
    unread = [
        number for number, place in enumerate(places) if kept.get(place, ("",))[1:] != seen[number]
    ]
    with ThreadPoolExecutor() as pool:
        fresh = dict(
            zip(unread, pool.map(_sha256, [paths[number] for number in unread]), strict=True)
        )
    settled = time.time_ns() - _SETTLED_NS
    new = {
        places[number]: (sha, *seen[number])
        for number, sha in fresh.items()
        if max(seen[number][2:]) < settled
    }
    if new:
        _keep(new)
    return [fresh.get(number) or kept[place][0] for number, place in enumerate(places)]


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _look(path: Path) -> Seen:
    found = path.stat()
    return found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _read_kept() -> dict[str, tuple[str, int, int, int, int]]:
    """Place -> (sha256, size, inode, times); whatever is damaged is as if it were not there."""
    try:
        rows = dict(parse_json((cache_folder() / _FILE).read_bytes(), _FILE))
        return {place: (str(sha), *map(int, seen)) for place, (sha, *seen) in rows.items()}  # type: ignore[misc]
    except (OSError, ValueError, TypeError):
        return {}


def _keep(new: dict[str, tuple[str, int, int, int, int]]) -> None:
    """Add these hashes, and forget files that are gone. A folder that cannot be written to keeps none."""
    rows = {place: row for place, row in (_read_kept() | new).items() if os.path.exists(place)}
    write_cached(cache_folder() / _FILE, json.dumps(rows, indent=0) + "\n")


def write_cached(target: Path, text: str) -> None:
    """Write a file of the cache, whole or not at all; a folder that cannot be written to keeps none."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    with contextlib.suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
