"""Executors for trials: threads of this process (kernels release the GIL) or a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, NamedTuple

import joblib

from ccmem.paper.experiments.protocol import Benchmark


class Pool(NamedTuple):
    """An executor and the data in the form its tasks accept; a cluster receives the data once per worker."""

    executor: Executor
    benchmark: Any
    here: bool
    """True if tasks run in this process and can read its variables."""


@contextlib.contextmanager
def pool_for(benchmark: Benchmark, jobs: int | None = None, dask: str | None = None) -> Iterator[Pool]:
    """Yield a pool of ``jobs`` threads or, with ``dask``, of workers at this address.

    ``dask="local"`` starts a cluster of ``jobs`` processes. A task whose worker dies is repeated.
    """
    if dask is None:
        with ThreadPoolExecutor(jobs or joblib.cpu_count(), thread_name_prefix="trial") as threads:
            yield Pool(threads, benchmark, here=True)
        return
    from ccmem.fleet.dask import client

    with client(dask, jobs) as connected:
        executor = connected.get_executor(pure=False)
        yield Pool(executor, connected.scatter(benchmark, broadcast=True), here=False)
        executor.shutdown(wait=False)
