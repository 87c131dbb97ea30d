"""Files that are whole or absent, locks, and what a checkpoint's digest and header stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmem import CheckpointError, IncrementalWTA, load
from ccmem.persistence.atomic import locked
from ccmem.persistence.tensorfile import FormatError, dump, raw_bytes, read_arrays, read_header
from ccmem.persistence.values import pack, unpack


def test_a_lock_tells_its_holder_and_nothing_of_the_one_before(tmp_path: Path) -> None:
    long = {"pid": 1, "host": "h" * 300, "since": "long ago"}
    (tmp_path / "m.lock").write_text(json.dumps(long))
    with locked(tmp_path / "m") as stale:
        assert stale == f"process 1 on {'h' * 300} (since long ago)"
        assert json.loads((tmp_path / "m.lock").read_text())["host"] != long["host"]  # and nothing after it


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
    state: Any = pack(np.random.Generator(np.random.MT19937(0)), "", {})
    for position, fits in ((624, True), (625, False)):
        state["$generator"]["state"]["pos"] = position
        if fits:
            unpack(state, {})
        else:
            with pytest.raises(ValueError, match="random state is damaged"):
                unpack(state, {})
