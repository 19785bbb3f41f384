"""Commands of many words (`stats.py compare`, `python -m probes.mlama query`): one parser, modules imported when asked for.

A command is a module with ``add_arguments(parser)`` and ``run(arguments) -> int``. Only the command that was asked for is
imported, so that ``--help`` does not wait for torch or a plotting library. A module that serves several commands reads the
one that is meant from ``parser.get_default("command")``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fluent_mlama.console import ArgumentParser


@dataclass(frozen=True)
class Commands:
    """The commands of one program.

    program: as the user types it. about: the program's docstring; its first line heads the help. modules: command name to
    (module, purpose). add_shared: adds the options that every command has, before the command's own.
    """

    program: str
    about: str | None
    modules: Mapping[str, tuple[str, str]]
    add_shared: Callable[[argparse.ArgumentParser], None] | None = None

    def run(self, arguments: Sequence[str] | None = None) -> int:
        """Run one command line (default: this process's own); returns the exit status."""
        words = list(sys.argv[1:] if arguments is None else arguments)
        return self.execute(self._parser(words).parse_args(words))

    def execute(self, arguments: argparse.Namespace) -> int:
        """Run the command named in ``arguments``, parsed or made by ``arguments()``; returns the exit status."""
        return int(importlib.import_module(self.modules[arguments.command][0]).run(arguments))

    def arguments(
        self, command: str, usual: Mapping[str, Any], options: Mapping[str, Any]
    ) -> argparse.Namespace:
        """A command's defaults, over them those of the ``usual`` options that it has, over both the call's ``options``.

        Raises ``TypeError`` for an option that the command does not have.
        """
        defaults = vars(self._parser([command]).parse_args([command]))
        unknown = set(options) - set(defaults)
        if unknown:
            raise TypeError(
                f"{command} has no option {', '.join(sorted(unknown))}: it has {', '.join(defaults)}"
            )
        own = {name: value for name, value in usual.items() if name in defaults}
        return argparse.Namespace(**(defaults | own | dict(options)))

    def _parser(self, words: Sequence[str]) -> ArgumentParser:
        """The parser of all commands; only the command that stands first in ``words`` gets its own options."""
        parser = ArgumentParser(prog=self.program, description=(self.about or "").splitlines()[0])
        commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
        for name, (module_name, purpose) in self.modules.items():
            command = commands.add_parser(name, help=purpose, description=purpose)
            command.set_defaults(command=name)
            if name in words[:1]:
                if self.add_shared is not None:
                    self.add_shared(command)
                importlib.import_module(module_name).add_arguments(command)
        return parser
