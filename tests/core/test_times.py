"""Times of rows: kept with events, however the stream is cut, saved and resumed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import ccmem
from ccmem.core.clock import GRID, RECENT, Clock
from ccmem.core.times import EARLIEST, LATEST, format_duration, format_time

START = datetime(2015, 2, 5, tzinfo=UTC).timestamp()


def stream() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    levels = np.repeat([[1.0, 1.0, 0.2], [1.0, 0.1, 0.2], [1.0, 1.0, 0.2]], 300, axis=0)
    return rng.normal(levels, 0.1), START + 60.0 * np.arange(900)


def test_events_have_the_times_of_their_rows() -> None:
    X, times = stream()
    memory = ccmem.AdaptiveCCM().partial_fit(X, times=times)
    assert [event.kind for event in memory.events_] == ["new_block", "recall"]
    for event in memory.events_:
        assert event.time == times[event.step]
        assert event.onset_time == times[event.onset]
        assert format_time(event.time) in str(event)
    assert memory.time_at(899) == times[-1]
    assert memory.time_at(900) is None


@pytest.mark.parametrize("size", [1, 70, 450])
def test_times_do_not_depend_on_chunks_and_survive_saving(size: int) -> None:
    X, times = stream()
    whole = ccmem.AdaptiveCCM().partial_fit(X, times=times)
    memory: Any = ccmem.AdaptiveCCM()
    for start in range(0, len(X), size):
        memory.partial_fit(X[start : start + size], times=times[start : start + size])
        if start % 350 == 0:
            memory = ccmem.from_bytes(memory.to_bytes())
    assert memory.events_ == whole.events_
    assert memory.to_bytes() == whole.to_bytes()


def test_indices_columns_and_dates_are_times_too() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, times = stream()
    expected = ccmem.AdaptiveCCM().partial_fit(X, times=times).events_
    index = pd.to_datetime(times, unit="s")
    frame = pd.DataFrame(X, columns=list("abc"), index=index)
    assert ccmem.AdaptiveCCM().partial_fit(frame).events_ == expected
    assert ccmem.AdaptiveCCM().fit(frame).events_ == expected
    berlin = index.tz_localize("UTC").tz_convert("Europe/Berlin")
    assert ccmem.AdaptiveCCM().partial_fit(X, times=berlin).events_ == expected
    assert ccmem.AdaptiveCCM().partial_fit(X, times=[str(stamp) for stamp in index]).events_ == expected
    columns = pl.DataFrame({"t": index.to_numpy(), **{name: X[:, i] for i, name in enumerate("abc")}})
    memory = ccmem.AdaptiveCCM().partial_fit(columns)
    assert memory.events_ == expected
    assert memory.predict(columns).tolist() == memory.predict(columns.drop("t")).tolist()
    labelled = ccmem.ModalClassifier(ccmem.AdaptiveCCM()).partial_fit(frame, ["x"] * 900)
    assert labelled.memory_.events_ == expected


def test_times_that_do_not_fit_change_nothing() -> None:
    X, times = stream()
    memory = ccmem.AdaptiveCCM().partial_fit(X[:100], times=times[:100])
    before = memory.to_bytes()
    for wrong, message in (
        (times[:5], "one time per row"),
        (["yesterday"] * 100, "'yesterday' is not a time"),
        (np.zeros(100, "timedelta64[s]"), "neither dates nor seconds"),
    ):
        with pytest.raises(ValueError, match=message):
            memory.partial_fit(X[100:200], times=wrong)
    assert memory.to_bytes() == before


def test_rows_without_times_leave_events_without() -> None:
    X, times = stream()
    memory = ccmem.AdaptiveCCM().partial_fit(X[:600], times=times[:600])
    memory.partial_fit(X[600:])
    assert [event.time is None for event in memory.events_] == [False, True]
    assert "time" not in memory.events_[1].record()


def test_a_clock_is_exact_near_by_and_bounded_far_off() -> None:
    times = np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, 20_000))
    whole, parts = Clock(), Clock()
    whole.expect(0, times)
    whole.advance(len(times))
    for start in range(0, len(times), 777):
        parts.expect(start, times[start : start + 777])
        parts.advance(min(start + 777, len(times)))
    assert all(whole.at(step) == times[step] for step in range(20_000 - RECENT, 20_000))
    assert max(abs((whole.at(step) or 0) - times[step]) for step in range(20_000)) < 16
    assert [whole.at(step) for step in range(0, 20_000, 7)] == [parts.at(step) for step in range(0, 20_000, 7)]
    fields = whole.export()
    assert sum(array.size for array in (fields["grid"], fields["recent"])) <= 2 * GRID + RECENT
    again = Clock.of(fields)
    assert [again.at(step) for step in range(0, 20_000, 11)] == [whole.at(step) for step in range(0, 20_000, 11)]
    one_interval = {"steps": 5, "width": 2**62, "grid": np.zeros(1), "recent": np.zeros(5)}
    Clock.of({**one_interval, "width": 2**62 - 1})
    for wrong in (
        {**fields, "steps": -1},
        {**fields, "width": 0},
        {**fields, "grid": fields["grid"][1:]},
        one_interval,
    ):
        with pytest.raises(ValueError, match="damaged"):
            Clock.of(wrong)


def test_damaged_times_in_a_checkpoint_are_refused() -> None:
    X, times = stream()
    memory = ccmem.AdaptiveCCM().partial_fit(X, times=times)
    fields = memory._export()
    fields["times"]["events"] = fields["times"]["events"][:1]
    with pytest.raises(ValueError, match="damaged"):
        ccmem.AdaptiveCCM()._import(fields)


def test_events_as_a_frame() -> None:
    pd = pytest.importorskip("pandas")
    X, times = stream()
    memory = ccmem.AdaptiveCCM().partial_fit(X, times=times)
    memory.name_block(1, "valve shut")
    frame = memory.events_frame()
    assert frame["block"].tolist() == ["valve shut", "block 0"]
    assert frame["time"][0] == pd.Timestamp(times[memory.events_[0].step], unit="s")
    assert frame["moved"][0].startswith("column 1")
    assert frame["duration"][0] == pd.Timedelta(hours=5)


def test_words_for_durations() -> None:
    assert [format_duration(s) for s in (59.4, 61, 3600, 90_000)] == ["59.4 s", "1 min 1 s", "1 h", "1 d 1 h"]


def test_the_first_and_the_last_time_of_the_calendar() -> None:
    assert (format_time(EARLIEST), format_time(LATEST)) == ("1 Jan 1 00:00", "31 Dec 9999 23:59:59")
    assert (format_time(EARLIEST - 1), format_time(LATEST + 1), format_time(None)) == ("-", "-", "-")
    for first, good in ((EARLIEST, True), (EARLIEST - 1, False), (LATEST - 1, True), (LATEST, False)):
        memory, times = ccmem.AdaptiveCCM(), np.array([first, first + 1])
        if good:
            memory.partial_fit(np.eye(2), times=times)
            assert (memory.time_at(0), memory.time_at(1)) == (first, first + 1)
        else:
            with pytest.raises(ValueError, match="time"):
                memory.partial_fit(np.eye(2), times=times)
