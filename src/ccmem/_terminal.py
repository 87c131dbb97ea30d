"""What a command says while it works: one line of a terminal, written over."""

from __future__ import annotations

import sys


class StatusLine:
    """A line on stderr, if that is a terminal and ``wanted``."""

    def __init__(self, wanted: bool = True) -> None:
        self.visible = wanted and sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Write ``text`` in place of what the line says."""
        if self.visible:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Leave nothing behind."""
        self.show("")
