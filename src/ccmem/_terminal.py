"""What a command says while it works: one line of a terminal, written over; or a line now and then in a log."""

from __future__ import annotations

import sys
import time

LOG_SECONDS = 15.0
"""How often a line is written where none can be written over."""


class StatusLine:
    """A line on stderr, if that is a terminal and ``wanted``; with ``in_lines`` elsewhere too, but rarely."""

    def __init__(self, wanted: bool = True, in_lines: bool = False) -> None:
        self.visible = wanted and sys.stderr.isatty()
        self._in_lines = in_lines and wanted and not self.visible
        self._logged = -LOG_SECONDS

    def show(self, text: str) -> None:
        """Write ``text`` in place of what the line says."""
        if self.visible:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
        elif self._in_lines and text and time.monotonic() - self._logged >= LOG_SECONDS:
            self._logged = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave nothing behind."""
        self.show("")
