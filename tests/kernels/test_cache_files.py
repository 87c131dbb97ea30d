"""The kernel cache is optional: damaged, full or unsafe, it costs a compile and nothing else."""

from __future__ import annotations

import importlib.util
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest

from ccmem.kernels import cache_files, jit

pytestmark = pytest.mark.skipif(not jit.JIT_ENABLED, reason="nothing is compiled with the JIT off")
SOURCE = """
from ccmem.kernels.jit import kernel

@kernel
def double(x):
    return x + x
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache folder for the module that ``fresh`` imports."""
    (tmp_path / "doubling.py").write_text(SOURCE)
    (tmp_path / "cache").mkdir(mode=0o700)
    monkeypatch.setattr(jit, "cache_of", lambda source: tmp_path / "cache")
    cache_files.warn_once.cache_clear()
    return tmp_path / "cache"


def fresh(folder: Path) -> Any:
    """Import the kernel as in a new process."""
    spec = importlib.util.spec_from_file_location("doubling", folder.parent / "doubling.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def hits(folder: Path, value: Any = 21) -> int:
    """Call the kernel as in a new process; return the number of cache hits."""
    double = fresh(folder)
    assert double(value) == 2 * value
    return sum(double.stats.cache_hits.values())


class _Trap:
    """A foreign pickle."""

    def __reduce__(self) -> Any:
        return (os.mkdir, ("trapped",))


def test_damaged_files_are_discarded_and_written_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert [hits(folder), hits(folder)] == [0, 1]
    good = {file: file.read_bytes() for file in folder.rglob("*.nb?")}
    assert {file.suffix for file in good} == {".nbi", ".nbc"}
    for file, data in good.items():
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 1
        for damaged in (b"", data[:40], data[:-1], data + b"x", bytes(flipped), pickle.dumps(_Trap())):
            file.write_bytes(damaged)
            assert [hits(folder), hits(folder)] == [0, 1]
    assert not Path("trapped").exists()


def test_data_of_another_kernel_is_not_taken_for_this_one(folder: Path) -> None:
    """Simulate a process killed after writing the index, which leaves old data under a new name."""
    assert [hits(folder, 21), hits(folder, 1.5)] == [0, 0]
    first, second = sorted(folder.rglob("*.nbc"))
    second.write_bytes(first.read_bytes())
    assert [hits(folder, 1.5), hits(folder, 1.5)] == [0, 1]


def test_a_full_disk_is_told_once_and_the_kernel_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache_files.KernelFiles, "_open_for_write", full)
    with pytest.warns(UserWarning, match=r"No space left.*make room.*CCMEM_KERNEL_CACHE"):
        assert hits(folder) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hits(folder) == 0
    monkeypatch.setattr("tempfile.TemporaryFile", full)  # numba tries a folder with this function
    cache_files.warn_once.cache_clear()
    with pytest.warns(UserWarning, match="cannot be kept"):
        assert hits(folder) == 0


@pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")
def test_folders_that_others_can_write_to_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_files.warn_once.cache_clear()
    root = cache_files.cache_root.__wrapped__
    monkeypatch.setenv("CCMEM_KERNEL_CACHE", str(tmp_path / "outer" / "kernel"))
    assert root() == tmp_path / "outer" / "kernel"
    assert root().stat().st_mode & 0o777 == 0o700
    for mode in (0o770, 0o702, 0o777):
        root_folder = tmp_path / "outer" / "kernel"
        root_folder.chmod(mode)
        cache_files.warn_once.cache_clear()
        with pytest.warns(UserWarning, match=r"can be written to by other users.*remove it"):
            assert root() is None
        root_folder.chmod(0o700)
    (tmp_path / "outer").chmod(0o777)
    with pytest.warns(UserWarning, match="which other users can write to"):
        assert root() is None
    (tmp_path / "outer").chmod(0o1777)  # where other users cannot replace it
    assert root() is not None
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert root() is None
