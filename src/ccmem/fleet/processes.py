"""Runners for the tasks of :mod:`ccmem.fleet.local` on one machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Any

from ccmem.fleet.local import Runner, Task, perform


def in_turn(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """Run tasks one after the other in this process."""
    for task in tasks:
        yield perform(task)


@contextlib.contextmanager
def on_processes(workers: int) -> Iterator[Runner]:
    """Yield a runner on ``workers`` processes; they end when this process does, even if it is killed."""
    if workers == 1:
        yield in_turn
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_die_with_parent)

    def run(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
        futures = [pool.submit(perform, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as problem:
            raise OSError(
                "a worker process died (killed, or out of memory); run the command again to resume"
            ) from problem

    try:
        yield run
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
