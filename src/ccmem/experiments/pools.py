"""Where trials run: threads of this process (kernels release the interpreter lock), or a Dask cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, NamedTuple

from ccmem.experiments.protocol import Benchmark


def cores() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool(NamedTuple):
    """An executor, and the data as its tasks take it: sent to every worker of a cluster once."""

    executor: Executor
    benchmark: Any
    here: bool
    """Whether tasks share this process, and may look at what it decides meanwhile."""


@contextlib.contextmanager
def pool_for(benchmark: Benchmark, jobs: int | None = None, dask: str | None = None) -> Iterator[Pool]:
    """So many tasks at a time in this process; with ``dask``, on the cluster at this address ("local": one of ``jobs``
    processes that is started here). A task whose worker dies is done again."""
    if dask is None:
        with ThreadPoolExecutor(jobs or cores(), thread_name_prefix="trial") as threads:
            yield Pool(threads, benchmark, here=True)
        return
    from ccmem.fleet.dask import client

    with client(dask, jobs) as connected:
        executor = connected.get_executor(pure=False)
        yield Pool(executor, connected.scatter(benchmark, broadcast=True), here=False)
        executor.shutdown(wait=False)
