"""JSON that somebody else wrote, a file or a line of one: whatever is wrong with it is one error of one kind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from fluent_mlama.console import UserError


class BadJson(UserError, ValueError):
    """This is no JSON. A ``ValueError`` too, for those who can go on without it."""


_MAYBE_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of one half of a surrogate pair; both halves together are a character."""


def parse_json(
    text: str | bytes,
    where: str,
    remedy: str = "is the file cut off?",
    *,
    make_object: Callable[[list[tuple[str, Any]]], Any] | None = None,
    halves: bool = False,
) -> Any:
    """What the text holds. ``BadJson``: not UTF-8, not JSON, nested deeper than Python reads, a number longer than it reads.

    where: begins the error line. remedy: ends it. make_object: given the names and values of each object, as in ``json.loads``.
    halves: let half of a surrogate pair through, as where a model's answer was cut between the two.
    """
    try:
        written = text if isinstance(text, str) else text.decode("utf-8-sig")
        found = json.loads(written, object_pairs_hook=make_object)
        if not halves and _MAYBE_HALF.search(written):
            json.dumps(found, ensure_ascii=False, default=str).encode("utf-8")
        return found
    except json.JSONDecodeError as error:
        row = f"line {error.lineno}, " if "\n" in error.doc.rstrip("\n") else ""
        what = f"{error.msg}: {row}column {error.colno}"
    except UnicodeEncodeError:  # "\\ud800": JSON lets it be written, no file can hold it
        what = "half of a surrogate pair, which is no character"
    except UnicodeDecodeError as error:
        what = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
    except RecursionError:
        what = "brackets nested too deeply"
    except ValueError:  # Python's limit to the digits of a whole number
        what = "a number of thousands of digits"
    raise BadJson(f"{where} is not JSON ({what}); {remedy}")
