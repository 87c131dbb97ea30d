"""Every step of writing fails once; afterwards the old or the new state is there, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccmem
from ccmem import AdaptiveCCM, IncrementalWTA, load
from ccmem.app.learner import Learner
from ccmem.cli import main
from ccmem.fleet.store import Store
from ccmem.io.persistence.atomic import locked
from faults import ERRORS, failing


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__ + str(error)[:9])
def test_save_leaves_the_old_file_or_the_new_one(tmp_path: Path, error: BaseException) -> None:
    memory = IncrementalWTA(2).partial_fit(np.eye(3))
    memory.save(tmp_path / "m")
    old = (tmp_path / "m").read_bytes()
    memory.partial_fit(np.eye(3))
    memory.save(tmp_path / "new")
    new = (tmp_path / "new").read_bytes()
    for number in range(100):
        (tmp_path / "m").write_bytes(old)
        with failing(number, error) as steps, suppress(type(error)):
            memory.save(tmp_path / "m")
        assert (tmp_path / "m").read_bytes() in (old, new)
        assert {file.name for file in tmp_path.iterdir()} == {"m", "new"}
        load(tmp_path / "m")
        if not steps.failed:
            break
    assert number > 5
    assert (tmp_path / "m").read_bytes() == new


def test_a_lock_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    for number in range(10):
        with failing(number, ERRORS[0]) as steps, suppress(OSError), locked(tmp_path / "m"):
            pass
        assert list(tmp_path.iterdir()) == []
        if not steps.failed:
            return
    raise AssertionError("it never got through")


def test_learning_resumes_after_every_step_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 3))[np.arange(240) // 120] + rng.normal(0, 0.1, (240, 3))
    Path("a.csv").write_text("a,b,c\n" + "".join(",".join(f"{x:.4f}" for x in row) + "\n" for row in X))
    words = ["learn", "a.csv", "--every", "100", "--quiet", "--param", "n_slots=3"]
    assert main([*words, "--checkpoint", "whole", "--events", "whole.jsonl"]) == 0
    whole = Learner.load("whole")
    stuck = 0
    for number in range(200):
        with failing(number, ERRORS[number % 2]) as steps:
            code = main([*words, "--checkpoint", "m", "--events", "e.jsonl"])
        assert code == (1 if steps.failed else 0) or (steps.failed and code == 0)
        rows = Learner.load("m").rows if Path("m").exists() else 0
        assert rows in range(241)
        stuck = number
        if not steps.failed:
            break
    assert stuck > 10
    assert Learner.load("m").rows == 240
    assert Learner.load("m").model.to_bytes() == whole.model.to_bytes()
    assert Path("e.jsonl").read_text() == Path("whole.jsonl").read_text().replace('"whole"', '"m"')
    left = {file.name for file in Path().iterdir()}
    assert left == {"a.csv", "e.jsonl", "m", "whole", "whole.jsonl"}


def test_a_fleet_commits_whole_rounds_whatever_step_fails(tmp_path: Path) -> None:
    lines = [f"{key},{t},{np.sin(key + t):.3f},{t % 3}\n" for t in range(40) for key in range(4)]
    (tmp_path / "a.csv").write_text("key,time,x,y\n" + "".join(lines[:80]))
    words = ["--key", "key", "--order", "time", "--buckets", "2", "--quiet"]
    store, whole = tmp_path / "s", tmp_path / "whole"
    assert main(["fleet", "learn", str(tmp_path / "a.csv"), "--store", str(store), *words]) == 0
    shutil.copytree(store, tmp_path / "first")
    (tmp_path / "b.csv").write_text("key,time,x,y\n" + "".join(lines[80:]))
    shutil.copytree(store, whole)
    more = ["fleet", "learn", str(tmp_path / "b.csv"), "--quiet", "--store"]
    assert main([*more, str(whole)]) == 0
    for number in range(0, 400, 17):
        shutil.rmtree(store)
        shutil.copytree(tmp_path / "first", store)
        with failing(number, ERRORS[number % 2]) as steps:
            main([*more, str(store)])
        assert main([*more, str(store)]) == 0
        assert _states(store) == _states(whole)
        if not steps.failed:
            break
    assert number > 20


def _states(folder: Path) -> dict[Any, bytes]:
    store = Store(folder)
    return {key: state for bucket in range(store.buckets) for key, state in store.states(bucket)}


@pytest.mark.skipif(os.name != "posix", reason="modes and users of POSIX")
def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    """As another user if the tests run as root, for whom no folder is read-only."""
    memory = AdaptiveCCM().partial_fit(np.eye(3))
    folder = tmp_path / "f"
    folder.mkdir()
    memory.save(folder / "m")
    before = (folder / "m").read_bytes()
    folder.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    code = (
        "import os, sys, ccmem, numpy as np\n"
        "memory = ccmem.load(sys.argv[1])\n"
        "memory.to_bytes()  # compiles as the first user: the other may not see the interpreter's modules\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "try: memory.save(sys.argv[1])\n"
        "except PermissionError as problem: print(problem)"
    )
    source = str(Path(ccmem.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "m")],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
    )
    folder.chmod(0o755)
    assert "Permission denied" in done.stdout, done.stderr
    assert str(folder) in done.stdout
    assert (folder / "m").read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["m"]
