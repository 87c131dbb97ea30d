"""Atomic writes, locks, and the digest and header of a checkpoint."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmem import CheckpointError, IncrementalWTA, load, save
from ccmem.core.locking import Guard
from ccmem.io.persistence import atomic, checkpoint, tensorfile
from ccmem.io.persistence.atomic import BusyError, atomic_file, lock_name, locked, remove_leftovers
from ccmem.io.persistence.tensorfile import FormatError, dump, raw_bytes, read_arrays, read_header
from ccmem.io.persistence.values import pack, unpack


def test_files_and_folders_reach_the_disk_before_they_are_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = os.fsync

    def noting(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name if sys.platform == "linux" else "")
        sync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    with atomic_file(tmp_path / "f") as temporary:
        temporary.write_text("whole")
        assert synced == []
    if sys.platform == "linux":
        assert synced == [temporary.name, tmp_path.name]
    assert (tmp_path / "f").read_text() == "whole"


def test_an_error_before_anything_is_written_is_the_one_that_is_told(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_file(tmp_path / "f"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="Windows has neither")
def test_a_temporary_file_is_private_and_never_a_link_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").touch(0o640)
    (tmp_path / "of another").write_text("mine")
    monkeypatch.setattr(atomic, "_numbers", iter([7, 7]))
    with atomic_file(tmp_path / "f") as temporary:
        assert temporary.stat().st_mode & 0o777 == 0o600
    temporary.symlink_to(tmp_path / "of another")
    with atomic_file(tmp_path / "f") as again:
        assert again == temporary
        again.write_text("whole")
    assert (tmp_path / "of another").read_text() == "mine"
    assert (tmp_path / "f").read_text() == "whole"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


def test_leftovers_of_any_machine_are_removed_by_who_holds_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".m.elsewhere.1-0.tmp").write_text("half")
    (tmp_path / ".other.elsewhere.1-0.tmp").write_text("half")
    (tmp_path / ".m.notes.tmp").write_text("of another program")
    remove_leftovers(tmp_path / "m")
    assert {file.name for file in tmp_path.iterdir()} == {".m.notes.tmp", ".other.elsewhere.1-0.tmp"}
    monkeypatch.setattr(Path, "glob", lambda *_: [tmp_path / ".m.gone.1-0.tmp"])  # another process was faster
    remove_leftovers(tmp_path / "m")


def test_only_models_of_this_library_are_packed() -> None:
    foreign = type("IncrementalWTA", (), {})()
    for odd in (foreign, Guard()):
        with pytest.raises(TypeError, match="which a checkpoint cannot hold"):
            pack(odd, "model", {})


@pytest.mark.parametrize("value", [np.inf, np.nan, 1j, b"a"])
def test_labels_that_no_file_can_hold_are_not_packed(value: Any) -> None:
    with pytest.raises(TypeError, match="neither text nor a number"):
        pack(np.array(["a", value], object), "labels", {})


def test_nobody_learns_while_a_model_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = IncrementalWTA(n_units=2).partial_fit(np.eye(2))
    write = checkpoint.atomic_write

    def noting(*args: Any) -> None:
        other = threading.Thread(target=model.partial_fit, args=(np.eye(2),), daemon=True)
        other.start()
        other.join(0.1)
        assert model.n_samples_seen_ == 2
        write(*args)

    monkeypatch.setattr(checkpoint, "atomic_write", noting)
    save(model, tmp_path / "m")


def test_arrays_have_at_most_eight_axes(tmp_path: Path) -> None:
    for n_axes, good in ((8, True), (9, False)):
        head, _ = dump({"a": np.zeros((1,) * n_axes, np.uint8)}, {})
        (tmp_path / "f").write_bytes(head + b"\0")
        with (tmp_path / "f").open("rb") as stream:
            header = read_header(stream, len(head) + 1)
            if good:
                assert read_arrays(stream, header, 1)["a"].ndim == 8
            else:
                with pytest.raises(FormatError, match="shape that does not fit"):
                    read_arrays(stream, header, 1)


def test_truth_values_are_nought_or_one(tmp_path: Path) -> None:
    head, arrays = dump({"a": np.array([True, False])}, {})
    for value, good in ((1, True), (2, False)):
        file = tmp_path / "f"
        file.write_bytes(head + bytes([value, 0]))
        with file.open("rb") as stream:
            header = read_header(stream, file.stat().st_size)
            if good:
                assert read_arrays(stream, header, 2)["a"].tolist() == [True, False]
            else:
                with pytest.raises(FormatError):
                    read_arrays(stream, header, 2)
    assert len(arrays) == 1


def test_a_header_of_absurd_length_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head, _ = dump({}, {"x": "y" * 100})
    file = tmp_path / "f"
    file.write_bytes(head)
    for longest, good in ((len(head) - 8, True), (len(head) - 9, False)):
        monkeypatch.setattr(tensorfile, "_LONGEST_HEADER", longest)
        with file.open("rb") as stream:
            if good:
                read_header(stream, len(head))
            else:
                with pytest.raises(FormatError, match="not a safetensors file"):
                    read_header(stream, len(head))
    monkeypatch.undo()
    with file.open("rb") as stream, pytest.raises(FormatError, match="not a safetensors file"):
        read_header(stream, len(head) - 1)


def test_a_lock_tells_its_holder_and_nothing_of_the_one_before(tmp_path: Path) -> None:
    long = {"pid": 1, "host": "h" * 300, "since": "long ago"}
    lock_name(tmp_path / "m").write_text(json.dumps({"locked by ccmem": long}))
    with locked(tmp_path / "m") as stale:
        assert stale == f"process 1 on {'h' * 300} (since long ago)"
        assert json.loads(lock_name(tmp_path / "m").read_text())["locked by ccmem"] != long  # and nothing after it
        with pytest.raises(BusyError, match=f"in use by process {os.getpid()} on"), locked(tmp_path / "m"):
            pass
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path / "m") as stale:
        assert stale is None
        assert not lock_name(tmp_path / "m").stat().st_mode & 0o111


@pytest.mark.parametrize("shift", [-8, 8])
def test_arrays_stand_without_gap_or_overlap(tmp_path: Path, shift: int) -> None:
    head, arrays = dump({"a": np.arange(4.0), "b": np.arange(4.0)}, {})
    file = tmp_path / "f"
    length = int.from_bytes(head[:8], "little")
    header = json.loads(head[8:])
    header["b"]["data_offsets"] = [32 + shift, 64 + shift]
    text = json.dumps(header).encode()
    body = b"".join(map(raw_bytes, arrays)) + bytes(max(shift, 0))
    file.write_bytes(len(text).to_bytes(8, "little") + text + body)
    assert length > 0
    with file.open("rb") as stream, pytest.raises(FormatError, match="does not begin where the one before it ends"):
        read_arrays(stream, read_header(stream, file.stat().st_size), len(body))


def test_the_digest_covers_the_types_of_arrays(tmp_path: Path) -> None:
    IncrementalWTA(n_units=2, random_state=0).partial_fit(np.eye(2)).save(tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    assert data.count(b'"dtype":"F64"') >= 2
    (tmp_path / "m").write_bytes(data.replace(b'"dtype":"F64"', b'"dtype":"I64"', 1))
    with pytest.raises(CheckpointError, match="does not match its digest"):
        load(tmp_path / "m")


def test_a_random_state_points_into_its_own_numbers() -> None:
    for kind, name, last in ((np.random.MT19937, "pos", 624), (np.random.Philox, "buffer_pos", 4)):
        state: Any = pack(np.random.Generator(kind(0)), "", {})
        place = state["$generator"]["state"] if name == "pos" else state["$generator"]
        _check_last(state, place, name, last)


def _check_last(state: Any, place: Any, name: str, last: int) -> None:
    for position, fits in ((last, True), (last + 1, False)):
        place[name] = position
        if fits:
            unpack(state, {})
        else:
            with pytest.raises(ValueError, match="random state is damaged"):
                unpack(state, {})


def test_a_random_state_has_numbers_of_at_most_128_bits() -> None:
    state: Any = pack(np.random.default_rng(0), "", {})
    inside = state["$generator"]["state"]
    for number, fits in ((2**128 - 1, True), (2**128, False), (-1, False)):
        inside["state"] = number
        if fits:
            assert unpack(state, {}).bit_generator.state["state"]["state"] == number
        else:
            with pytest.raises(ValueError, match="random state is damaged"):
                unpack(state, {})


@pytest.mark.parametrize("value", [{"$float": "1.5"}, {"$tuple": "inf"}, {"$strings": "nan"}, {"$float": 1.5}])
def test_a_tag_holds_only_what_it_says(value: Any) -> None:
    with pytest.raises(ValueError, match="unknown or holds the wrong thing"):
        unpack(value, {})


@pytest.mark.skipif(os.name != "posix", reason="Windows has neither")
def test_a_lock_is_a_file_of_ours_or_it_is_refused(tmp_path: Path) -> None:
    others, name = tmp_path / "poetry.lock", lock_name(tmp_path / "poetry")
    others.write_text("precious")
    with locked(tmp_path / "poetry"):
        assert others.read_text() == "precious"
    name.symlink_to(others)
    with pytest.raises(FileExistsError, match="is a link"), locked(tmp_path / "poetry"):
        pass
    name.unlink()
    name.hardlink_to(others)
    with pytest.raises(FileExistsError, match="not written by ccmem; move it away"), locked(tmp_path / "poetry"):
        pass
    assert others.read_text() == name.read_text() == "precious"
    name.unlink()
    name.mkdir()
    with pytest.raises(FileExistsError, match="is a folder, which a lock must not be"), locked(tmp_path / "poetry"):
        pass
    name.rmdir()
    os.mkfifo(name)
    with pytest.raises(FileExistsError, match="is a pipe"), locked(tmp_path / "poetry"):
        pass
    name.unlink()
    name.touch()  # its process was killed before it wrote anything
    with locked(tmp_path / "poetry") as stale:
        assert stale is None
    assert [file.name for file in tmp_path.iterdir()] == ["poetry.lock"]


@pytest.mark.skipif(os.name != "posix", reason="Windows has other locks")
def test_where_there_are_no_locks_learning_goes_on_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(atomic.fcntl, "flock", without)
    with pytest.warns(UserWarning, match="has no locks; make sure that one process"), locked(tmp_path / "m"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files of Linux")
def test_locks_that_are_refused_or_come_late_leave_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, handles = lock_name(tmp_path / "m"), Path("/proc/self/fd")
    before = len(list(handles.iterdir()))
    os.mkfifo(name)
    with pytest.raises(FileExistsError), locked(tmp_path / "m"):
        pass
    name.unlink()
    name.write_text("precious")
    with pytest.raises(FileExistsError), locked(tmp_path / "m"):
        pass
    name.unlink()
    real, tries = atomic.lock, []

    def late(handle: int) -> bool:  # the first time, the holder removes the file between opening and locking
        tries.append(handle)
        if len(tries) == 1:
            name.unlink()
        return real(handle)

    monkeypatch.setattr(atomic, "lock", late)
    with locked(tmp_path / "m"), pytest.raises(BusyError), locked(tmp_path / "m"):
        pass
    assert len(tries) == 3
    assert len(list(handles.iterdir())) == before
