"""How the values on a command line about benchmark files are read; a mistake is argparse's one line."""

from __future__ import annotations

import argparse
from pathlib import Path

from fluent_mlama.console import split_list, whole_number
from fluent_mlama.data import BENCHMARK, shipped


def name_list(value: str) -> tuple[str, ...]:
    """`ru,cs` as names without doubles."""
    names = tuple(split_list(value))
    if not names:
        raise argparse.ArgumentTypeError("an empty list; name at least one, for example ru,cs")
    return names


def named(value: str) -> str:
    """Any text but blanks."""
    if not value.strip():
        raise argparse.ArgumentTypeError("an empty name")
    return value


def path_named(value: str) -> Path:
    """A file or folder, there or not."""
    return Path(named(value))


def benchmarks_named(value: str) -> Path:
    """A folder or zip of benchmark files; ``starter`` names those that ship."""
    return shipped(path_named(value), BENCHMARK)


positive = whole_number(1)
"""The type of a count."""
