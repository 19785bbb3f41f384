"""Command lines: a typed function is a command, its signature the options, its docstring the help.

    def compare(*, stats: Folder, k: Cutoffs = (1, 3, 5)) -> int: ...
    run_command(compare, words, program="stats.py compare")

The shared option types are in ``options.py``. A function below the command line never sees the words:
Python users call the same function with keyword arguments. Bad words are one line and exit status 2.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from fluent_mlama.console import EXIT_BAD_INPUT, UserError, note, say_error

Result = TypeVar("Result")

OLD_FLAGS = {
    "--lang": "--langs",
    "--languages": "--langs",
    "--path": "--scoring-method",
    "--arith": "--logprob-precision",
    "--quantise": "--quantization",
    "--spec": "--variant",
    "--unigram": "--unigrams",
    "--pairs-a-call": "--pairs-per-call",
}
"""Flags of the last release; they work for one more, with a notice."""


def run_command(
    function: Callable[..., Any], words: Sequence[str] | None = None, *, program: str
) -> int:
    """Call ``function`` with what the words say (default: ``sys.argv``); returns the exit status.

    Options come from the signature: types, defaults, ``Annotated`` and the docstring's ``Args:``.
    What the function returns is the exit status where it is a whole number, else 0 is.
    """
    from cyclopts import App, CycloptsError, Parameter

    about, _, _ = inspect.cleandoc(function.__doc__ or "").partition("\nArgs:")
    purpose, _, more = about.partition("\n")
    app = App(
        name=program,
        help=purpose,
        help_epilogue=more.strip("\n"),
        help_format="plaintext",
        usage=_usage(function, program),
        help_flags=["--help", "-h"],
        version_flags=[],
        suppress_keyboard_interrupt=False,  # `run_main` says what was kept
        default_parameter=Parameter(negative=(), allow_repeating=True, show_default=_show_default),
        result_action="return_value",
    )
    app["--help"].group = ""  # not a table of its own
    app.default(function)
    words = list(sys.argv[1:] if words is None else words)
    try:
        known = {name for one in app.assemble_argument_collection() for name in one.names}
        status = app(renamed(words, known), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        say_error(program, f"{_explain(error, words)} (see {program} --help)")
        return EXIT_BAD_INPUT
    return status if isinstance(status, int) and not isinstance(status, bool) else 0


def parse_words(function: Callable[..., Result], words: Sequence[str]) -> Result:
    """``function`` called with what the words say; a mistake in them is a ``UserError``."""
    from cyclopts import App, CycloptsError, Parameter

    app = App(
        default_parameter=Parameter(negative=()),
        help_flags=[],
        version_flags=[],
        suppress_keyboard_interrupt=False,  # `run_main` says what was kept
        result_action="return_value",
    )
    app.default(function)
    try:
        known = {name for one in app.assemble_argument_collection() for name in one.names}
        result: Result = app(renamed(words, known), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise UserError(_explain(error, words)) from None
    return result


@dataclass(frozen=True)
class Commands:
    """A program of several commands (``stats.py compare``); only the one that is asked for is imported.

    program: as the user types it. about: heads the help.
    table: command name to (``"module:function"``, purpose).
    """

    program: str
    about: str
    table: Mapping[str, tuple[str, str]]

    def run(self, words: Sequence[str] | None = None) -> int:
        """Run one command line (default: ``sys.argv``); returns the exit status."""
        words = list(sys.argv[1:] if words is None else words)
        if words[:1] in (["--help"], ["-h"]):
            print(self.help())
            return 0
        if not words or words[0] not in self.table:
            wrong = f"no command {words[0]!r}" if words else "name a command"
            say_error(self.program, f"{wrong}; there are {', '.join(self.table)}")
            return EXIT_BAD_INPUT
        return run_command(self.function(words[0]), words[1:], program=f"{self.program} {words[0]}")

    def function(self, name: str) -> Callable[..., Any]:
        """The function behind a command."""
        module, _, function = self.table[name][0].partition(":")
        return getattr(import_module(module), function)

    def help(self) -> str:
        """What ``--help`` prints: the commands and what each is for."""
        width = max(map(len, self.table))
        lines = [f"  {name:{width}}  {purpose}" for name, (_, purpose) in self.table.items()]
        usage = f"Usage: {self.program} COMMAND [OPTIONS]    ({self.program} COMMAND --help)"
        return "\n".join([usage, "", inspect.cleandoc(self.about), "", "Commands:", *lines])


def _usage(function: Callable[..., Any], program: str) -> str | None:
    """``Usage:`` without the types of the required options; None leaves it to cyclopts."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is not inspect.Parameter.KEYWORD_ONLY for one in parameters):
        return None
    return f"Usage: {program} [OPTIONS]"


def _show_default(value: Any) -> str | None:
    """A default as the user would type it; None shows none."""
    if value is None or value is False or value in ((), ""):
        return None
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def renamed(words: Sequence[str], known: set[str]) -> list[str]:
    """The words with flags of the last release in their new spelling."""
    fresh = []
    for word in words:
        flag, equals, value = word.partition("=")
        new = OLD_FLAGS.get(flag, flag)
        if flag not in known and new in known:
            note(f"{flag} is now {new}; the old name goes with the next release")
            word = f"{new}{equals}{value}"
        fresh.append(word)
    return fresh


def _explain(error: Exception, words: Sequence[str]) -> str:
    """A parser's error in one line."""
    from cyclopts import exceptions

    if isinstance(error, exceptions.UnusedCliTokensError) and error.unused_tokens:
        return f"unexpected argument {error.unused_tokens[0]!r}"
    if isinstance(error, exceptions.MissingArgumentError) and error.argument:
        given = set(error.argument.names) & set(words)
        return f"{given.pop()} needs a value" if given else f"{error.argument.name} is required"
    if isinstance(error, exceptions.CoercionError) and error.msg and error.argument:
        return f"{error.argument.name}: {error.msg}"
    return " ".join(str(error).rstrip(".").split())
