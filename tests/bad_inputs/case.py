"""One row of the table of bad inputs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Break = Callable[[Path], None]
"""Spoils something on a good desk, which is the folder it is given."""

ANYTHING = "…"


@dataclass(frozen=True)
class Case:
    """what: the bad input. command: as typed behind ``python``, in the desk's folder.

    says: the error line behind ``error:``, with … for what may differ. notes: lines that may stand before it, likewise.
    loads: the model's own loader runs (elsewhere a stand-in answers, so that what is wrong elsewhere is quick to find).
    keeps: glob patterns of files that a failed run leaves on purpose, so that it can go on from there.
    by_root: False where the input is bad for ordinary users only, as a file without read permission is.
    """

    what: str
    command: str
    says: str
    spoil: Break = lambda desk: None
    notes: tuple[str, ...] = ()
    loads: bool = False
    keeps: tuple[str, ...] = ()
    by_root: bool = True

    @property
    def program(self) -> str:
        """``script.py``, or ``-m probes.mlama``."""
        words = self.words
        return " ".join(words[:2]) if words[0] == "-m" else words[0]

    @property
    def words(self) -> list[str]:
        """The command's words."""
        return shlex.split(self.command)

    @property
    def arguments(self) -> list[str]:
        """What the program is given."""
        return self.words[2 if self.words[0] == "-m" else 1 :]

    @property
    def module(self) -> str:
        """The module whose ``main`` the command runs."""
        return (
            f"{self.words[1]}.__main__"
            if self.words[0] == "-m"
            else self.words[0].removesuffix(".py")
        )

    @property
    def error_name(self) -> str:
        """What stands before ``: error:``."""
        return self.words[1].rpartition(".")[2] if self.words[0] == "-m" else self.words[0]


def matches(pattern: str, line: str) -> bool:
    """Whether the line is the pattern's, where … stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split(ANYTHING))), line) is not None
