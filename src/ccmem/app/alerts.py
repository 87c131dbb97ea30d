"""Alerts: run a user's command for every new block and recall, in a thread beside learning."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

PATIENCE = 60.0
"""Timeout of an alert command, in seconds; a hanging command must not block later alerts."""


class Alerts:
    """Runner of a command per event, one after the other: no shell, text as last argument, JSON on standard input."""

    def __init__(self, command: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as problem:
            raise ValueError(f"--alert {command}: {problem}") from problem
        if not self._words:
            raise ValueError("--alert names no command")
        self.failed = 0
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ccmem-alerts")

    def send(self, text: str, record: dict[str, Any]) -> None:
        """Queue an event."""
        self._pool.submit(self._run, text, record)

    def close(self) -> None:
        """Wait until the commands of all queued events have ended."""
        self._pool.shutdown()

    def _run(self, text: str, record: dict[str, Any]) -> None:
        problem, command = "", [*self._words, text]
        try:
            ended = subprocess.run(command, input=json.dumps(record), text=True, timeout=PATIENCE, check=False)
            problem = f"it ended with {ended.returncode}" if ended.returncode else ""
        except (OSError, subprocess.SubprocessError, ValueError) as raised:
            problem = str(raised)
        if problem:
            self.failed += 1
            if self.failed == 1:
                print(f"ccmem learn: --alert {self._words[0]}: {problem}", file=sys.stderr, flush=True)
