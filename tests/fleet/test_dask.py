"""A fleet on Dask: the bytes of a plain loop, also when workers die. Needs the extra: make test DASK=1."""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from pathlib import Path

import pytest

if importlib.util.find_spec("distributed") is None:
    pytest.skip("Dask is not installed: make test DASK=1", allow_module_level=True)
if os.name != "posix":
    pytest.skip("needs signals", allow_module_level=True)

from ccmem.fleet import local, tables
from ccmem.fleet.dask import client, map_on
from ccmem.fleet.store import Store
from fleet_rows import RECIPE, content, files, plain_loop

pytestmark = [pytest.mark.dask, pytest.mark.filterwarnings("ignore")]  # some warnings come from Dask


def test_the_bytes_are_those_of_a_plain_loop_also_when_workers_die(tmp_path: Path) -> None:
    sources = files(tmp_path)
    columns = tables.choose(sources, "machine", "time", None)
    store = Store.create(tmp_path / "s", RECIPE, columns, 8)
    left, killed = [2], []

    with client("local", 2) as connected:

        def told(facts: object) -> None:
            if left[0]:  # during either pass
                left[0] -= 1
                pids = [nanny.pid for nanny in connected.cluster.workers.values() if nanny.pid]
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        report = local.learn(store, sources, lambda tasks: map_on(connected, local.perform, tasks), report=told)
    assert len(killed) == 2
    assert report["late"] == 0
    states, events = plain_loop()
    assert content(tmp_path / "s") == (states, sorted(tuple(event) for event in events))


def test_a_local_cluster_that_lost_all_workers_gets_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ccmem.fleet.dask.PATIENCE", 0.5)
    with client("local", 1) as connected:
        connected.cluster.scale(0)
        while connected.scheduler_info(n_workers=-1)["workers"]:
            time.sleep(0.05)
        assert sorted(map_on(connected, abs, [-1, 2])) == [1, 2]
