"""Arrays of a state: alignment, growth, and no unnecessary allocation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccmem import CCM, CheckpointError, Event, IncrementalWTA, from_bytes
from ccmem.core import allocation
from forgery import forge


def is_aligned(array: Any) -> bool:
    return array.__array_interface__["data"][0] % allocation.CACHE_LINE == 0


def test_arrays_are_copied_only_if_they_cannot_be_learned_in() -> None:
    good = allocation.aligned_zeros((4, 8), np.float64)
    assert is_aligned(good)
    assert allocation.aligned(good) is good
    read_only = good.copy()
    read_only.flags.writeable = False
    for other in (read_only, good[:, ::2], good[:, :5].T, good.reshape(-1)[1:9]):
        other_values = other.copy()
        fresh = allocation.aligned(other)
        assert fresh is not other
        assert is_aligned(fresh)
        assert fresh.flags.writeable
        assert fresh.flags.c_contiguous
        np.testing.assert_array_equal(fresh, other_values)


def test_what_grows_keeps_its_rows_and_fills_the_rest() -> None:
    old = np.arange(6.0).reshape(3, 2)
    larger = allocation.grown(old, 5, -1)
    assert larger.tolist() == [[0, 1], [2, 3], [4, 5], [-1, -1], [-1, -1]]
    assert is_aligned(larger)


def test_more_bytes_than_there_are_get_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "_MOST_BYTES", 1000)
    allocation.check_size(1000, "numbers")
    with pytest.raises(ValueError, match="numbers need 0 GiB, more than this machine has; choose smaller sizes"):
        allocation.check_size(1001, "numbers")


@pytest.mark.parametrize("make", [lambda: CCM(2, random_state=0), lambda: IncrementalWTA(4, random_state=0)])
def test_columns_that_come_later_were_nought_so_far(make: Any) -> None:
    X = np.random.default_rng(0).random((30, 3))
    narrow, wide = make().partial_fit(X), make().partial_fit(X)
    wide._widen(5)
    np.testing.assert_array_equal(wide.prototypes_, np.pad(narrow.prototypes_, [(0, 0), (0, 2)]))
    padded = np.pad(X, [(0, 0), (0, 2)])
    np.testing.assert_array_equal(wide.predict(padded), narrow.predict(X))
    assert len(wide._state.prototypes) == len(narrow._state.prototypes)
    assert from_bytes(wide.partial_fit(padded).to_bytes()).n_features_in_ == 5


def test_names_of_blocks_are_kept_and_damaged_ones_refused(tmp_path: Path) -> None:
    named = CCM(1, random_state=0).partial_fit(np.eye(3))
    named.name_block(0, "pump")
    named.save(tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    assert from_bytes(data).block_names_ == {0: "pump"}
    (key,) = [name for name in _fields(data) if "name" in name and "feature" not in name]
    for odd in ([[0]], [[0, "a", "b"]], [[0, 1]], ["ab"], "ab", [[7, "pump"]], {"0": "pump"}):

        def change(document: Any, arrays: Any, metadata: Any, odd: Any = odd) -> None:
            document["model"]["fitted"][key] = odd

        with pytest.raises(CheckpointError, match=r"names of blocks are damaged|there is no block 7"):
            from_bytes(forge(data, change))


def _fields(data: bytes) -> list[str]:
    found: list[str] = []
    forge(data, lambda document, arrays, metadata: found.extend(document["model"]["fitted"]))
    return found


def test_a_record_of_an_event_names_a_column_only_if_there_is_one() -> None:
    event = Event("recall", 7, 1, 0, 3, 2)
    assert "column" not in event.record()
    assert event._replace(count=-1).record()["count"] == -1
    assert event._replace(column=0).record()["column"] == 0
