"""How patiently a service is asked: pace, time-outs, and what is worth trying again. All that asks
over HTTP goes through here.

Trying again is tenacity's. urllib3.Retry and the OpenAI client's own retries see the status alone:
they would ask again after a used-up quota, and not after a maxlag, a page of HTML or half a JSON,
all of which come with status 200.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import tenacity

from fluent_mlama.console import UserError, note

Result = TypeVar("Result")
ANNOUNCED = 5.0
"""Pauses of so many seconds or more are announced."""


class TryLater(Exception):
    """A fault that may pass (429, 5xx, time-out, garbage). headers: the answer's; their Retry-After
    is obeyed.
    """

    def __init__(self, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.after = retry_after((headers or {}).get("Retry-After"))


class RequestFailed(Exception):
    """This request has no answer now; others may have one. Its text never holds a key or a URL.

    status: of a translation's answer, where it is not "failed" (which the next run asks for again).
    """

    def __init__(self, reason: str, status: str = "") -> None:
        super().__init__(reason)
        self.status = status


def may_pass(status: int) -> bool:
    """Whether the same request may be answered later: time-out, conflict, too early, too many, the
    server's own faults.
    """
    return status in {408, 409, 425, 429} or status >= 500


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


@dataclass(frozen=True, slots=True)
class Patience:
    """attempts: tries a request; first_wait, longest_wait: backoff in seconds, doubling, with full
    jitter;
    longest_ask: the longest Retry-After obeyed in seconds (more ends the run); per_second: requests
    a second at most;
    connect, read: time-outs in seconds.
    """

    attempts: int = 6
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_ask: float = 120.0
    per_second: float = 4.0
    connect: float = 5.0
    read: float = 20.0
    _pace: Pace = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pace", Pace(self.per_second))

    @property
    def timeout(self) -> tuple[float, float]:
        """For requests: seconds to wait for a connection, and for the next bytes."""
        return self.connect, self.read

    def persist(self, service: str, call: Callable[[], Result]) -> Result:
        """The result of ``call``, tried at this pace again and again while it raises TryLater; from
        any number of threads.

        Raises RequestFailed when the attempts are used up, UserError when the service asks for a
        longer pause than ``longest_ask``.
        """
        jitter = tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait)

        def wait(state: tenacity.RetryCallState) -> float:
            fault = state.outcome.exception() if state.outcome else None
            asked = fault.after if isinstance(fault, TryLater) and fault.after is not None else 0.0
            if asked > self.longest_ask:
                raise UserError(
                    f"{service} asks to come back in {asked:.0f} s; what was finished is kept: run"
                    " the same command again then"
                ) from fault
            return max(asked, jitter(state))

        def announce(state: tenacity.RetryCallState) -> None:
            if state.outcome and state.upcoming_sleep >= ANNOUNCED:
                note(
                    f"{service}: {state.outcome.exception()}; trying again in"
                    f" {state.upcoming_sleep:.0f} s"
                )

        def paced() -> Result:
            self._pace.wait()
            return call()

        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self.attempts),
            wait=wait,
            retry=tenacity.retry_if_exception_type(TryLater),
            before_sleep=announce,
            reraise=True,
        )
        try:
            return retrying(paced)
        except TryLater as fault:
            raise RequestFailed(f"{fault}, {self.attempts} times") from fault


def retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After header, which is a number or an HTTP date; None where there is none
    or it is neither.
    """
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
