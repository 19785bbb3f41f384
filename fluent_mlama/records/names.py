"""Which names a file may have: those that every file system takes, and that lead nowhere else."""

from __future__ import annotations

import re

from fluent_mlama.console import plain_number

_REFUSED = re.compile(r'[\x00-\x1f\x7f/\\:|*?"<>]')
_STRANGE = re.compile(r"[^A-Za-z0-9_.-]+")
_DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)),
}
"""Names of devices on Windows, whatever ending follows."""


def is_file_name(name: str) -> bool:
    """Whether this is one bare, visible file name on Linux, macOS and Windows alike: no path, no ``:`` or ``|``, no device."""
    if (
        not name
        or name != name.strip()
        or name[0] == "."
        or name[-1] == "."
        or _REFUSED.search(name)
    ):
        return False
    return name.split(".")[0].rstrip().casefold() not in _DEVICES


def by_number(relation: str) -> tuple[int, str]:
    """Sorts relations as people count: P19 before P101, what has no number last."""
    number = plain_number(relation[1:])
    return (10**18 if number is None else number, relation)


def as_file_name(word: str, joint: str = "--", instead: str = "model") -> str:
    """A name for the files of whatever is called ``word`` (a model, a label): other characters become ``joint``, nothing ``instead``."""
    name = _STRANGE.sub(joint, word).strip("-.") or instead
    return name if is_file_name(name) else f"_{name}"
