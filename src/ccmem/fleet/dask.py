"""A fleet on Dask: the tasks of :mod:`ccmem.fleet.local`, run by the workers of a cluster.

Every worker must see the store and the input under the same paths (a shared or distributed file system). A task whose
worker dies is done again by another, to the same bytes; the store is committed bucket by bucket. Workers should have
one thread each: a step holds the interpreter most of the time.

>>> from ccmem.fleet.dask import on_dask              # doctest: +SKIP
>>> with on_dask("tcp://scheduler:8786") as run:      # doctest: +SKIP
...     local.learn(store, ["archive/"], run)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ccmem.fleet.local import Runner, Task, perform

RETRIES = 100
"""Number of workers a task may lose before the run fails."""


def distributed() -> Any:
    """Import Dask's distributed package, or raise an error with the install command."""
    try:
        import distributed
    except ImportError as problem:
        raise ImportError('a Dask cluster needs Dask: pip install "dask[dataframe,distributed]"') from problem
    return distributed


@contextlib.contextmanager
def on_dask(address: str, workers: int | None = None) -> Iterator[Runner]:
    """Yield a runner on the cluster at ``address``; ``"local"`` starts ``workers`` processes on loopback."""
    with client(address, workers) as connected:

        def run(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
            yield from map_on(connected, perform, tasks)

        yield run


@contextlib.contextmanager
def client(address: str, workers: int | None = None) -> Iterator[Any]:
    """Yield a client of the cluster at ``address``, or of a temporary local cluster."""
    dd, dask_config = distributed(), _config()
    with dask_config.set({"distributed.scheduler.allowed-failures": RETRIES}):
        if address != "local":
            with dd.Client(address) as connected:
                yield connected
            return
        with (
            dd.LocalCluster(
                n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=40
            ) as cluster,
            dd.Client(cluster) as connected,
        ):
            yield connected


def _config() -> Any:
    import dask.config

    return dask.config


def map_on(connected: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Yield the result of ``function`` for each item as it becomes ready."""
    futures = [connected.submit(function, item, pure=False, retries=0) for item in items]
    try:
        for _, result in distributed().as_completed(futures, with_results=True):
            yield result
    finally:
        connected.cancel(futures)
