"""How patiently a service is asked: pace, time-outs, and what is worth trying again.

Trying again is tenacity's; what is ours is to obey Retry-After and to tell a fault that passes from one that stays.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import tenacity

from fluent.console import UserError
from fluent.translating.backend import FAILED

Result = TypeVar("Result")


class TryLater(Exception):
    """A fault that may pass (429, 5xx, time-out, garbage); ``after`` is the service's Retry-After in seconds, if it sent one."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after


class RowFault(Exception):
    """This row cannot be had now; other rows may be fine. Its text never holds a key or a URL.

    status: of the answer that the row gets: ``failed`` is asked for again by the next run, anything else is kept.
    """

    def __init__(self, reason: str, status: str = FAILED) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Patience:
    """attempts: tries a row; first_wait, longest_wait: backoff in seconds, doubling, with full jitter;
    longest_ask: the longest Retry-After obeyed in seconds (more ends the run); per_second: requests a second at most;
    connect, read: time-outs in seconds.
    """

    attempts: int = 6
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_ask: float = 120.0
    per_second: float = 4.0
    connect: float = 5.0
    read: float = 20.0

    def persist(self, service: str, call: Callable[[], Result]) -> Result:
        """The result of ``call``, tried again while it raises TryLater.

        Raises RowFault when the attempts are used up, UserError when the service asks for a longer pause than ``longest_ask``.
        """
        jitter = tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait)

        def wait(state: tenacity.RetryCallState) -> float:
            fault = state.outcome.exception() if state.outcome else None
            asked = fault.after if isinstance(fault, TryLater) and fault.after is not None else 0.0
            if asked > self.longest_ask:
                raise UserError(
                    f"{service} asks to come back in {asked:.0f} s; what was finished is kept: run the same command again then"
                ) from fault
            return max(asked, jitter(state))

        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self.attempts), wait=wait, retry=tenacity.retry_if_exception_type(TryLater), reraise=True
        )
        try:
            return retrying(call)
        except TryLater as fault:
            raise RowFault(f"{fault.reason}, {self.attempts} times") from fault


class Pace:
    """Spaces calls evenly, at most ``per_second`` of them, from any number of threads."""

    def __init__(self, per_second: float) -> None:
        self._gap = 1.0 / per_second if per_second > 0 else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Return when the next call may go out."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self._gap
        time.sleep(max(0.0, start - now))


def retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After header, which is a number or an HTTP date; None where there is none or it is neither."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
