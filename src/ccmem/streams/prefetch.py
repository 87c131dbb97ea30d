"""Reading ahead: a thread reads while kernels learn, and the reader's wait for a slow pipe can be given up."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

_END = object()


class Prefetch:
    """The items of an iterator, taken by a thread of its own, at most ``depth`` ahead."""

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
        """Items in order; None whenever ``idle`` seconds have passed without one."""
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
