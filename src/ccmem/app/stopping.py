"""Signals that end a command between two steps, because a signal handler may interrupt any operation."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


class Ended(Exception):  # noqa: N818 - a request, not an error
    """Exception that ends a command because of a signal."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number


class StopRequest:
    """Number of the signal that requested the end of the command, or None."""

    number: int | None = None


@contextlib.contextmanager
def ended_by_signals() -> Iterator[StopRequest]:
    """Record Ctrl-C, SIGTERM and SIGHUP, so that the ``with`` body can clean up; a second signal ends the process."""
    request = StopRequest()

    def note(number: int, frame: Any) -> None:
        request.number = number
        signal.signal(number, signal.SIG_DFL)

    hang_up = getattr(signal, "SIGHUP", None)  # Windows has no SIGHUP
    nohup = hang_up is not None and signal.getsignal(hang_up) == signal.SIG_IGN  # under nohup, ignore SIGHUP
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM, hang_up) if number is not None]
    caught = [number for number in numbers if not (nohup and number == hang_up)]
    previous = {number: signal.signal(number, note) for number in caught}
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
