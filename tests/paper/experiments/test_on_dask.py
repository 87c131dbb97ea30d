"""Trials and searches on a Dask cluster give the figures of threads. Needs the extra: make test DASK=1."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from ccmem.cli import main

if importlib.util.find_spec("distributed") is None:
    pytest.skip("Dask is not installed: make test DASK=1", allow_module_level=True)

import dask.config

pytestmark = [pytest.mark.dask, pytest.mark.filterwarnings("ignore")]  # some warnings come from Dask


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in ("seconds", "microseconds")}
    return value


def test_reproduce_and_tune_find_the_same_on_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for place, more in (("here", []), ("dask", ["--dask", "local", "--jobs", "1"])):
        out = tmp_path / place
        words = ["digits", "--trials", "2", "--models", "iwta", "--rows", "paper", "--no-figures", "--out", str(out)]
        assert main(["reproduce", *words, *more]) == 0
        assert main(["tune", "digits", "--models", "iwta", "--candidates", "2", "--out", str(out / "t"), *more]) == 0
        rows = json.loads((out / "digits.json").read_text())["rows"]
        found.append((without_times(rows), json.loads((out / "t").read_text())))
        capsys.readouterr()
    assert found[0] == found[1]
    assert len(found[0][0]["iwta"]["trials"]) == 2


def test_an_address_where_no_cluster_is_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["digits", "--trials", "1", "--models", "iwta", "--rows", "paper", "--out", str(tmp_path)]
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        assert main(["reproduce", *words, "--dask", "tcp://127.0.0.1:9"]) == 1
    assert "tcp://127.0.0.1:9" in capsys.readouterr().err
