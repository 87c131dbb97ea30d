"""Read-ahead: a thread reads while kernels learn, and waiting for a slow pipe can be interrupted."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

_END = object()


class Prefetch:
    """Items of an iterator, read by a separate thread, at most ``depth`` items ahead."""

    def __init__(self, items: Iterator[Any], depth: int = 2) -> None:
        self._queue: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(depth)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(items,), daemon=True)
        self._thread.start()

    def _run(self, items: Iterator[Any]) -> None:
        problem: BaseException | None = None
        try:
            for item in items:
                if not self._put((item, None)):
                    return
        except BaseException as raised:
            problem = raised
        self._put((_END, problem))

    def _put(self, entry: tuple[Any, BaseException | None]) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def each(self, idle: float) -> Iterator[Any]:
        """Yield items in order; None whenever ``idle`` seconds pass without an item."""
        try:
            while True:
                try:
                    item, problem = self._queue.get(timeout=idle)
                except queue.Empty:
                    yield None
                    continue
                if problem is not None:
                    raise problem
                if item is _END:
                    return
                yield item
        finally:
            self._stopped.set()
