"""A fleet on Dask: the tasks of :mod:`ccmem.fleet.local`, run by the workers of a cluster.

Every worker must see the store and the input under the same paths (a shared or distributed file system). If the
worker of a task dies, another worker repeats the task and gives the same bytes; the store is committed bucket by
bucket. Workers should have one thread each, because a step holds the interpreter's lock most of the time.

>>> from ccmem.fleet.dask import on_dask              # doctest: +SKIP
>>> with on_dask("tcp://scheduler:8786") as run:      # doctest: +SKIP
...     local.learn(store, ["archive/"], run)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ccmem.fleet.local import Runner, Task, perform

PATIENCE = 10.0
"""Seconds without a result after which the workers of a local cluster are checked."""
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
    dd = distributed()
    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": RETRIES}):
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


def map_on(connected: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Yield the result of ``function`` for each item as it becomes ready."""
    dd = distributed()
    futures = [connected.submit(function, item, pure=False, retries=0) for item in items]
    waiting = set(futures)
    try:
        while waiting:
            try:
                ready = dd.wait(waiting, timeout=PATIENCE, return_when="FIRST_COMPLETED").done
                for future in ready:
                    result = future.result(timeout=PATIENCE)  # lost if its worker has died since
                    waiting.remove(future)
                    yield result
            except TimeoutError:
                _restart_workers(connected)
    finally:
        connected.cancel(futures)


def _restart_workers(connected: Any) -> None:
    """Start the workers of a temporary local cluster again if none is left; Dask does not always do so."""
    cluster = getattr(connected, "cluster", None)
    if cluster is not None and not connected.scheduler_info(n_workers=-1)["workers"]:
        n_workers = max(1, len(cluster.worker_spec))
        cluster.scale(0)
        cluster.scale(n_workers)
