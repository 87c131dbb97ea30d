"""Alerts: run a user's command for every new block and recall, in a thread beside learning."""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import sys
import threading
from typing import Any

PATIENCE = 60.0
"""Timeout of an alert command, in seconds; a hanging command must not block later alerts."""


class Alerts:
    """Queue of events and a thread that runs a command per event: no shell, text as last argument, JSON on stdin."""

    def __init__(self, command: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as problem:
            raise ValueError(f"--alert {command}: {problem}") from problem
        if not self._words:
            raise ValueError("--alert names no command")
        self._queue: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue()
        self.failed = 0
        self._thread = threading.Thread(target=self._run, name="ccmem-alerts", daemon=True)
        self._thread.start()

    def send(self, text: str, record: dict[str, Any]) -> None:
        """Queue an event; its command runs after the commands of earlier events."""
        self._queue.put((text, record))

    def close(self) -> None:
        """Wait until the commands of all queued events have ended."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            text, record = entry
            problem = ""
            try:
                ended = subprocess.run(
                    [*self._words, text], input=json.dumps(record), text=True, timeout=PATIENCE, check=False
                )
                problem = f"it ended with {ended.returncode}" if ended.returncode else ""
            except (OSError, subprocess.SubprocessError, ValueError) as raised:
                problem = str(raised)
            if problem:
                self.failed += 1
                if self.failed == 1:
                    print(f"ccmem learn: --alert {self._words[0]}: {problem}", file=sys.stderr, flush=True)
