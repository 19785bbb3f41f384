"""What a person sees: one-line errors, progress bars, colour. Every room may use it; it uses none.

A ``UserError`` is something the person at the keyboard can mend. Its text says what is wrong, where
(file, row, column) and what to do, in one line; ``run_main`` prints that line and exits with status 2.
Any other exception is a bug in this project and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}
"""What the system says of a disk in the middle of a write, without naming the file."""
_ELSEWHERE = "free space or choose another folder"
_MAY_NOT = "check its permissions, or choose another folder"
_REMEDIES = dict.fromkeys(_DISK, _ELSEWHERE) | {
    errno.EACCES: _MAY_NOT,
    errno.EPERM: _MAY_NOT,
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "something moved or removed it meanwhile, perhaps another run in the same folder",
}


_KEPT = "what was finished is kept, the same command goes on from there"


class _Stopped(SystemExit):
    """SIGTERM, as a batch system sends it before it kills: what is under way is cleared up on the way out."""


class UserError(Exception):
    """A mistake or lack that the user can mend, told in one line: what, where, what to do."""

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


def _is_utf8(word: str) -> bool:
    """Whether an argument's bytes are UTF-8; in an ASCII locale those of another script reach Python as lone surrogates."""
    try:
        os.fsencode(word).decode("utf-8")
    except UnicodeError:
        return False
    return True


def run_main(
    main: Callable[[Sequence[str] | None], int | None], arguments: Sequence[str] | None = None
) -> NoReturn:
    """Run a command's ``main`` and leave with its exit status; bad input leaves one line and status 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # labels are UTF-8 whatever the terminal's code page is
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    signal.signal(signal.SIGTERM, _stop)
    folder, program = os.path.split(sys.argv[0])
    if program == "__main__.py":  # fluent-mlama zhoblimp
        program = os.path.basename(folder)
    try:
        for word in sys.argv[1:] if arguments is None else arguments:
            if not _is_utf8(word):
                raise UserError(
                    f"{word!r} is no UTF-8, which no file here could hold; use another name"
                )
        status = main(arguments) or 0
        sys.stdout.flush()
        sys.exit(status)
    except UserError as error:
        say_error(program, str(error))
        sys.exit(EXIT_BAD_INPUT)
    except KeyboardInterrupt:
        say_error(program, f"interrupted; {_KEPT}")
        sys.exit(EXIT_INTERRUPTED)
    except _Stopped:
        say_error(program, f"stopped; {_KEPT}")
        raise
    except BrokenPipeError:
        _drop_unwritten_output()
        sys.exit(0)
    except OSError as error:
        _drop_unwritten_output()
        if (
            error.filename is None and error.errno not in _DISK
        ):  # no file is named: not the user's doing
            raise
        where = f" at {error.filename}" if error.filename is not None else ""
        say_error(
            program,
            f"{error.strerror}{where}; {_REMEDIES.get(error.errno or 0, 'check the path')}, then run the same command again",
        )
        sys.exit(EXIT_BAD_INPUT)


def _drop_unwritten_output() -> None:
    """Python tries once more at its end what could not be written, and would leave with status 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop(*_: object) -> NoReturn:
    raise _Stopped(128 + signal.SIGTERM)


def say_error(program: str, message: str) -> None:
    """Print one error line on standard error."""
    print(f"{program}: error: {message}", file=sys.stderr, flush=True)


def note(message: str) -> None:
    """Print one remark for the person (never data) on standard error, without tearing a progress bar."""
    tqdm.write(message, file=sys.stderr)


def progress(
    items: Iterable[Item], *, total: int | None = None, unit: str, label: str
) -> Iterator[Item]:
    """Iterate with a plain text bar on standard error: count, rate and time left.

    The bar shows itself on a terminal only, unless FLUENT_PROGRESS=1; a log file gets no thousand lines.
    """
    yield from progress_bar(total=total, unit=unit, label=label, iterable=items)


def progress_bar(
    *,
    total: int | None,
    unit: str,
    label: str,
    iterable: Iterable[Item] | None = None,
    initial: int = 0,
) -> tqdm[Item]:
    """A bar to be moved by hand with ``update`` (a context manager), for work that ends in uneven steps."""
    hidden = not is_switched_on("FLUENT_PROGRESS") and not sys.stderr.isatty()
    return tqdm(
        iterable,
        total=total,
        unit=f" {unit}",
        desc=label,
        initial=initial,
        disable=hidden,
        file=sys.stderr,
        dynamic_ncols=True,
    )


def is_switched_on(variable: str) -> bool:
    """Whether the user set this environment variable to 1."""
    return os.environ.get(variable) == "1"


def use_colour() -> bool:
    """Colour on a terminal, never under NO_COLOR (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def mark_span(text: str, start: int, end: int) -> str:
    """The text with the characters ``[start, end)`` marked: in colour on a terminal, else between ⟦ ⟧."""
    opening, closing = ("\x1b[1;32m", "\x1b[0m") if use_colour() else ("⟦", "⟧")
    return f"{text[:start]}{opening}{text[start:end]}{closing}{text[end:]}"


def split_list(value: str) -> list[str]:
    """A comma-separated command line value as a list without blanks and without doubles, order kept."""
    return list(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


def plain_number(value: str) -> int | None:
    """A whole number in 1 to 18 plain digits, None for anything else (``int`` takes 1_0 and ３, and gives up on very long ones)."""
    return int(value) if re.fullmatch(r"[0-9]{1,18}", value) else None
