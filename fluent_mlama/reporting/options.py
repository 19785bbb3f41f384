"""The options that every statistics command shares, and how their values are read."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fluent_mlama.console import plain_number, seed_number, split_list, whole_number
from fluent_mlama.ranking.values import name_list

LEAST_RESAMPLES, MOST_RESAMPLES = 200, 1_000_000
"""Fewer cannot cut 5 % off; more would change nothing."""
STYLES = ("paper", "clean")


def add_shared_arguments(parser: argparse.ArgumentParser, *, wide: bool = True) -> None:
    """Add the options that mean the same in every command of ``stats.py`` and ``grammeval.py`` (which needs no ``wide`` dumps)."""
    shared = parser.add_argument_group("shared options")
    shared.add_argument(
        "--stats",
        action=Folders,
        default=Path("stats"),
        metavar="FOLDER|ZIP",
        help="rank dumps (default: stats); compare, report: or several",
    )
    if wide:
        shared.add_argument(
            "--wide",
            type=Path,
            metavar="FOLDER|ZIP",
            help="wide dumps (default: stats_wide/X for stats/X, if any)",
        )
    shared.add_argument(
        "--tables",
        type=Path,
        default=Path("tables"),
        metavar="DIR",
        help="where tables go (default: tables)",
    )
    shared.add_argument(
        "--graphs",
        type=Path,
        default=Path("graphs"),
        metavar="DIR",
        help="where graphs go (default: graphs)",
    )
    shared.add_argument(
        "--langs",
        type=name_list,
        metavar="CODES",
        help="languages, comma-separated (default: the paper's, or all there are)",
    )
    shared.add_argument(
        "--relations",
        type=name_list,
        metavar="IDS",
        help="relations, comma-separated (default: likewise)",
    )
    shared.add_argument(
        "--verbalisations",
        type=name_list,
        metavar="NAMES",
        help="verbalisations, comma-separated (default: all that the dumps have)",
    )
    shared.add_argument(
        "--style",
        choices=STYLES,
        default="clean",
        help="paper: the published layout to the byte; clean: ours (default)",
    )


def add_resampling(parser: argparse.ArgumentParser, usual: int) -> None:
    """``--resamples`` and ``--seed``."""
    number = whole_number(LEAST_RESAMPLES, MOST_RESAMPLES)
    parser.add_argument(
        "--resamples",
        type=number,
        default=usual,
        help=f"sign flips of the tests (default: {usual})",
    )
    parser.add_argument("--seed", type=seed_number, default=0, help="of the flips (default: 0)")


def cutoffs(value: str) -> tuple[int, ...]:
    """The type of ``--k``: each k of R@k once, in the order given."""
    numbers = [plain_number(part.strip()) for part in value.split(",")]
    if not all(numbers):
        raise argparse.ArgumentTypeError(
            f"{value!r} is no list of whole numbers from 1, such as 1,3,5"
        )
    return tuple(dict.fromkeys(number for number in numbers if number))


class Folders(argparse.Action):
    """``--stats A``; where the command takes several folders, ``--stats A,B`` and ``--stats A --stats B`` as well.

    The first folder is ``stats``, the others are ``against``, which only such commands have (``add_further_folders``).
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep the folder or folders of one option."""
        paths = (
            [Path(values)] if Path(values).exists() else [Path(part) for part in split_list(values)]
        )
        if not paths:
            parser.error(f"argument {option_string}: an empty name")
        if self.dest == "stats" and namespace.stats is self.default:
            namespace.stats = paths.pop(0)
        if paths and not hasattr(namespace, "against"):
            parser.error(
                f"argument {option_string}: this command takes one folder of dumps; compare and report take several"
            )
        if paths:
            namespace.against = (*namespace.against, *paths)


def add_further_folders(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add ``--against``, and let ``--stats`` take several folders."""
    parser.add_argument(
        "--against", action=Folders, default=(), metavar="FOLDER|ZIP,…", help=help_text
    )


def add_short_rule(parser: argparse.ArgumentParser) -> None:
    """Add ``--exclude-short``, for the tables that leave out rows with a prompt cut too early."""
    parser.add_argument(
        "--exclude-short",
        choices=("gt", "any", "no"),
        help="leave out rows with a prompt under a third of the others' length: in gt (default in paper style), in any verbalisation "
        "but the template (default in clean style), or no",
    )
