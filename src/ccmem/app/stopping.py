"""Signals that end a command between two steps."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


class Ended(Exception):  # noqa: N818 - a request, not an error
    """Exception raised when a signal has asked the command to end."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number


class StopRequest:
    """Stop request: number of the signal that asked the command to end, 0 if none has."""

    number = 0

    def raise_if_set(self) -> None:
        """Raise if a signal has arrived; called between steps, because a signal handler may interrupt any operation."""
        if self.number:
            raise Ended(self.number)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[StopRequest]:
    """Record SIGTERM and SIGHUP instead of dying from them, so that the ``with`` body can clean up."""
    asked = StopRequest()

    def note(number: int, frame: Any) -> None:
        asked.number = number

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous = {number: signal.signal(number, note) for number in numbers if signal.getsignal(number) == signal.SIG_DFL}
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
