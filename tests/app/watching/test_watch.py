"""The live page without a browser: recorded data, answers of the server, and refused requests."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import webbrowser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ccmem
from ccmem import CCM, IncrementalWTA, ModalClassifier
from ccmem.app.watching import demo, facts
from ccmem.app.watching.history import LEVEL_BINS, MOST_SIGNALS, PeakTrace, RowsAround, Signals, Visits
from ccmem.app.watching.observer import EVENT_HISTORY, MOST_CARDS, Observer
from ccmem.app.watching.server import page, policy
from ccmem.core.events import Event


def small_memory(tasks: tuple[int, ...] = (0, 2, 0), width: int = 3) -> CCM:
    memory = CCM(n_slots=1, alarm_limit=1, recall_limit=1, commit_limit=0, random_state=0)
    return memory.fit(np.repeat(np.eye(width)[list(tasks)], 30, axis=0))


def observed(model: Any, **more: Any) -> Observer:
    observer = Observer(lambda: model, title="test", **more)
    observer.look()
    return observer


def test_an_update_holds_what_the_memory_holds_and_then_only_what_is_new() -> None:
    memory = small_memory()
    observer = observed(memory)
    first = observer.update()
    assert (first["rows"], first["n_blocks"], first["block"]) == (90, memory.n_blocks_, memory.task_pointer_)
    assert [event[1] for event in first["events"]] == [event.step for event in memory.events_]
    assert [card["block"] for card in first["cards"]] == list(range(memory.n_blocks_))
    assert observer.update(first["look"], first["n_events"])["events"] == []
    memory.partial_fit(np.repeat(np.eye(3)[[1]], 30, axis=0))
    observer.look()
    then = observer.update(first["look"], first["n_events"])
    assert [event[1] for event in then["events"]] == [memory.events_[-1].step]
    assert then["state"] == "new"
    json.dumps(then, allow_nan=False)


def test_rows_around_an_event_are_those_of_the_stream_however_it_is_cut() -> None:
    rows = np.arange(900.0).reshape(-1, 1)
    for cuts in ([], [1, 2, 400, 500], list(range(900))):
        around = RowsAround()
        for start, stop in zip([0, *cuts], [*cuts, 900], strict=True):
            chunk = rows[start:stop].copy()
            around.observe(start, chunk)
            if start <= 700 < stop:
                around.keep(Event("new_block", 700, 0, 1, 61))
            chunk[:] = -1.0  # the caller's array: stored rows must not change with it
        kept = around.around(700)
        assert kept is not None
        assert np.ravel(kept["after"]).tolist() == list(range(694, 700))
        assert np.ravel(kept["before"]).tolist() == list(range(552, 600, 8))


def test_lists_are_bounded() -> None:
    trace = PeakTrace(most=16)
    for step in range(0, 10_000_000, 1_000):
        trace.add(step, step // 1_000)
    assert len(trace.peaks) <= 16
    assert max(trace.peaks) == 9_999
    memory = small_memory()
    memory._history.clear()
    events = [Event("recall", step, step % 90, (step + 1) % 90, 1) for step in range(0, 4 * EVENT_HISTORY, 2)]
    observer = observed(memory)
    observer._take_events(events, 0.0, False)
    assert len(observer._events) == EVENT_HISTORY
    visits = Visits(most=40)
    for event in events:
        visits.turn(event)
    assert visits.latest(100) == [block for event in events[-20:] for block in (event.from_block, event.to_block)]
    assert len(observer._shown(observer._now._replace(n_blocks=5_000))) <= MOST_CARDS + 1  # type: ignore[union-attr]


@pytest.mark.parametrize("size", [1, 20, 3000, 65_536])
def test_signals_keep_the_whole_history_however_it_is_cut(size: int) -> None:
    signals, total = Signals(), min(100_000, 30_000 * size)
    values = np.stack([np.arange(total, dtype=float), np.where(np.arange(total) < 100, np.nan, 5.0)], axis=1)
    for start in range(0, total, size):
        chunk = values[start : start + size].copy()
        signals.observe(start, chunk)
        chunk[:] = -1.0  # the caller's array: stored rows must not change with it
        if start // size % 50 == 0:
            signals.gather()
    signals.gather()
    bins = signals.between(0, total, 50, [0, 1])
    assert len(bins.step) == 50
    step = total // 50
    assert np.abs(bins.mean[:, 0] - (np.arange(50) + 0.5) * step).max() < 0.1 * step
    assert (bins.low[:, 0] <= bins.mean[:, 0]).all()
    assert (bins.mean[:, 0] <= bins.high[:, 0]).all()
    assert (bins.mean[1:, 1] == 5.0).all()
    assert np.isnan(signals.between(0, 60, 10, [1]).mean).all()
    assert sum(len(level.step) for level in signals._levels) <= LEVEL_BINS * len(signals._levels)
    latest = signals.between(total - 8, total, 8, [0])
    if size <= 32:
        assert latest.mean[:, 0].tolist() == list(range(total - 8, total))


def test_signals_are_bounded_and_begin_anew_with_learning() -> None:
    signals = Signals()
    assert len(signals.between(0, 10, 5, []).step) == 0
    for start in range(0, 2_000_000, 20_000):
        signals.observe(start, np.zeros((20_000, 40)))
        signals.gather()
    assert signals.n_columns == MOST_SIGNALS
    assert sum(len(level.step) for level in signals._levels) < 8 * LEVEL_BINS
    signals.observe(0, np.ones((5, 2)))
    signals.gather()
    assert signals.between(0, 5, 5, [0, 1]).mean.tolist() == [[1.0, 1.0]] * 5


def test_visits_tell_how_often_and_how_long() -> None:
    visits = Visits()
    for before, after, onset in ((0, 1, 100), (1, 0, 250), (0, 1, 240)):  # the last onset is before an earlier one
        visits.turn(Event("recall", onset + 20, before, after, 21))
    assert visits.of(0) == {"born": 0, "used": 270, "visits": 2, "in_use": 100, "last": [250, 250]}
    assert visits.of(1) == {"born": 100, "used": 270, "visits": 1, "in_use": 150, "last": [100, 250]}
    assert visits.of(7) == {"born": 0, "used": 0, "visits": 0, "in_use": 0, "last": None}


def test_times_labels_and_evidence_are_sent_where_there_are_some() -> None:
    memory = small_memory()
    without = observed(memory).update()
    assert (without["times"], without["evidence"], without["since"]) == ([], 0.0, memory.events_[-1].onset)
    assert "label" not in without
    memory._clock = SimpleNamespace(steps=90, at=lambda step: 1e9 + 60.0 * step if step else None)  # type: ignore[attr-defined]
    memory.evidence_ = 0.25  # type: ignore[attr-defined]
    learner = SimpleNamespace(columns=SimpleNamespace(label="Occupancy"))
    update = observed(memory, describe=lambda: facts.described(learner)).update()
    assert (update["times"][0], update["times"][-1]) == ((1, 1e9 + 60), (89, 1e9 + 60 * 89))
    assert (update["label"], update["evidence"]) == ("Occupancy", 0.25)


def test_an_export_can_be_read_without_the_page() -> None:
    memory = small_memory()
    memory.name_block(1, "pump")
    export = json.loads(json.dumps(observed(memory).export(), allow_nan=False))
    event = export["events"][0]
    assert (event["kind"], event["to_block"], event["to_name"]) == ("new_block", 1, "pump")
    assert [block["name"] for block in export["blocks"]] == ["", "pump"]
    assert export["blocks"][1]["last"] == [event["onset"], export["since"]]


def test_a_fit_begins_the_page_anew_and_memories_without_blocks_are_shown_too() -> None:
    memory = small_memory()
    observer = observed(memory)
    memory.fit(np.eye(3)[[0, 0]])
    observer.look()
    assert (observer.update()["rows"], observer.update()["events"]) == (2, [])
    plain = observed(ModalClassifier(IncrementalWTA(n_units=4)).fit(np.eye(4), ["a", "b", "<i>", "d"]))
    update = plain.update()
    assert (update["n_blocks"], update["evidence"], update["cards"][0]["labels"][0][1]) == (1, None, 0.25)


@pytest.fixture
def served() -> Any:
    memory = small_memory()
    with ccmem.watch(memory, browser=False) as shown:
        shown._observer.look()
        yield memory, shown


def ask(shown: Any, path: str, method: str = "GET", body: str | None = None, **headers: str) -> tuple[int, bytes, Any]:
    port = shown._server.server_port
    connection = http.client.HTTPConnection("127.0.0.1", port)
    named = {name.replace("_", "-"): value.replace("PORT", str(port)) for name, value in headers.items()}
    connection.request(method, path, body, named)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content, answer.headers


def test_only_this_site_and_these_addresses_are_answered(served: Any) -> None:
    memory, shown = served
    status, content, headers = ask(shown, "/")
    assert (status, headers["Content-Security-Policy"]) == (200, policy())
    assert b"http://" not in content
    assert b"https://" not in content
    for path in (
        "/favicon.ico",
        "/page.html",
        "/../server.py",
        "/block/99",
        "/block/x",
        "/event/1",
        "/event/1/9",
        "/event/1/0",
        "/signals/0/90",
        "/signals/0/x/0",
        "/signals/0/90/",
        "/signals/0/90/0,-1",
        "/name",
        "/stream/1",
    ):
        assert ask(shown, path)[:2] == (404, b""), path
    for hostile in (
        {"Host": "evil.example:PORT"},
        {"Origin": "http://evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Host": "127.0.0.1"},
    ):
        assert ask(shown, "/state", **hostile)[:2] == (403, b""), hostile
    assert json.loads(ask(shown, "/state", Host="localhost:PORT")[1])["rows"] == 90
    signals = json.loads(ask(shown, "/signals/0/90/0,2,99")[1])
    assert signals["columns"] == []  # the page was opened after the rows were learned
    memory.partial_fit(np.repeat(np.eye(3)[[0]], 10, axis=0))
    shown._observer.look()
    signals = json.loads(ask(shown, "/signals/0/100/0,2,99")[1])
    assert (signals["columns"], signals["n"]) == ([0, 2], 10)
    assert np.frombuffer(base64.b64decode(signals["high"])).tolist() == [1.0] * 10 + [0.0] * 10
    why = json.loads(ask(shown, f"/event/{memory.events_[0].step}/0")[1])
    assert {line[0] for line in why["columns"][:2]} == {"column 0", "column 2"}
    assert shown._server.server_address[0] == "127.0.0.1"


def test_a_name_needs_the_token_and_the_origin(served: Any) -> None:
    memory, shown = served
    body, good = json.dumps({"block": 1, "name": "pump"}), {"Origin": "http://127.0.0.1:PORT"}
    token = shown._server.token
    for headers in ({}, good, {"X_Token": token}, {"X_Token": token, "Origin": "http://evil.example"}):
        assert ask(shown, "/name", "POST", body, **headers)[0] == 403
    assert ask(shown, "/state", "POST", body, X_Token=token, **good)[0] == 404
    for wrong in (
        '{"block": 9, "name": "x"}',
        '{"block": "1", "name": "x"}',
        "[]",
        "{",
        '{"block": 1, "name": 2}',
        "[" * 4000,
    ):
        assert ask(shown, "/name", "POST", wrong, X_Token=token, **good)[0] == 400
    assert ask(shown, "/name", "POST", json.dumps({"block": 1, "name": "x" * 81}), X_Token=token, **good)[0] == 400
    assert memory.block_names_ == {}
    assert ask(shown, "/name", "POST", body, X_Token=token, **good)[0] == 200
    assert memory.block_names_ == {1: "pump"}
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert ask(shown, "/", method)[0] == 501


def test_the_stream_tells_an_event_when_it_happens(served: Any) -> None:
    memory, shown = served
    connection = http.client.HTTPConnection("127.0.0.1", shown._server.server_port)
    connection.request("GET", "/stream")
    answer = connection.getresponse()
    first = json.loads(answer.readline().removeprefix(b"data: "))
    assert first["n_events"] == len(memory.events_)
    threading.Thread(target=memory.partial_fit, args=(np.repeat(np.eye(3)[[1]], 30, axis=0),)).start()
    while True:
        line = answer.readline()
        if line.startswith(b"data: ") and (events := json.loads(line.removeprefix(b"data: "))["events"]):
            break
    assert events[0][0] == 0
    connection.close()


@pytest.mark.parametrize("wrapped", [True, False])
def test_even_the_first_chunk_is_observed(wrapped: bool) -> None:
    memory: Any = CCM(n_slots=1, alarm_limit=1, recall_limit=1, commit_limit=0, random_state=0)
    model = ModalClassifier(memory) if wrapped else memory
    with ccmem.watch(model, browser=False) as shown:
        model.partial_fit(np.repeat(np.eye(3)[[0, 2]], 60, axis=0), *([["a"] * 120] if wrapped else []))
        shown._observer.look()
        assert shown._observer.signals(0, 120, [0])["n"] == 120
        learner = model.memory_ if wrapped else memory
        assert shown._observer.why(learner.events_[0].step, 0)["samples"] is not None
        assert memory._observers == (() if wrapped else learner._observers)
        assert len(learner._observers) == 2
    assert (memory._observers, learner._observers, memory._listeners, learner._listeners) == ((),) * 4


def test_a_page_that_is_closed_leaves_nothing_behind() -> None:
    memory = small_memory()
    shown = ccmem.watch(memory, browser=False)
    shown._observer.look()
    assert memory._observers
    shown.close()
    assert memory._observers == ()
    assert memory._listeners == ()
    with pytest.raises(ConnectionError):
        ask(shown, "/")
    with pytest.raises(TypeError, match="watch needs a memory"):
        ccmem.watch(3)


def test_names_stay_in_the_checkpoint(tmp_path: Path) -> None:
    from ccmem.app.watching.live import WatchedFile
    from ccmem.io.persistence.atomic import locked

    memory = small_memory()
    memory.name_block(0, " pump\n on ")
    path = tmp_path / "m.safetensors"
    memory.save(path)
    assert ccmem.load(path).block_names_ == {0: "pump on"}
    file = WatchedFile(path)
    with locked(path):
        assert "once that has ended" in file.rename(1, "valve")
        assert ccmem.load(path).block_names_ == {0: "pump on"}
    file._tried = -1e9
    file.model()
    assert ccmem.load(path).block_names_ == {0: "pump on", 1: "valve"}
    memory.name_block(0, "")
    assert memory.block_names_ == {}
    for block in (-1, 7, "0"):
        with pytest.raises(ValueError, match="there is no block"):
            memory.name_block(block, "x")  # type: ignore[arg-type]


def test_names_of_two_pages_at_once_are_both_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ccmem.app.learner import Learner
    from ccmem.app.watching.live import WatchedFile

    path = tmp_path / "m.safetensors"
    small_memory().save(path)
    file = WatchedFile(path)
    other = threading.Thread(target=file.rename, args=(1, "valve"))
    save = Learner.save

    def save_meanwhile(self: Learner, path: Path) -> None:
        save(self, path)
        if other.ident is None:
            other.start()
            other.join(0.3)

    monkeypatch.setattr(Learner, "save", save_meanwhile)
    file.rename(0, "pump")
    other.join()
    file._tried = -1e9
    file.model()
    assert ccmem.load(path).block_names_ == {0: "pump", 1: "valve"}


def test_the_page_is_one_file_that_fetches_nothing() -> None:
    text = page("T").decode()
    assert "{{" not in text
    assert 'content="T"' in text
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " src=", "@import", "url("):
        assert word not in text, word
    assert "default-src 'none'" in policy()


def test_a_block_that_is_read_in_the_middle_of_a_step_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    observer = observed(small_memory())
    card, moving = facts.card, [IndexError("units are growing"), ValueError("so are votes")]

    def read(*asked: Any) -> Any:
        if moving:
            raise moving.pop()
        return card(*asked)

    monkeypatch.setattr(facts, "card", read)
    assert observer.card(0)["block"] == 0
    with pytest.raises(LookupError):
        observer.card(99)


def test_a_demo_does_not_rush_after_a_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(demo.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(demo.time, "sleep", sleep)
    shown, ended = demo.Demo("sensors", 200), threading.Event()
    learn = shown.model.partial_fit

    def slow_at_first(*rows: Any) -> None:
        clock[0] += 0.0 if slept else 100.0
        learn(*rows)

    shown.model.partial_fit = slow_at_first
    shown.start(ended.set).join()
    assert slept[0] == 0.0
    assert slept[1:] == pytest.approx([demo.CHUNK_ROWS / shown.speed] * 9)
    assert ended.is_set()


@pytest.mark.parametrize(("kind", "chosen", "opened"), [("text", False, 0), ("text", True, 1), ("window", False, 1)])
def test_no_browser_takes_over_the_terminal(
    kind: str, chosen: bool, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    browser: Any = {"text": webbrowser.GenericBrowser, "window": webbrowser.BackgroundBrowser}[kind]("lynx")
    browser.open = asked.append
    monkeypatch.setattr(webbrowser, "get", lambda: browser)
    monkeypatch.delenv("BROWSER", raising=False)
    if chosen:
        monkeypatch.setenv("BROWSER", "lynx")
    with ccmem.watch(small_memory()) as page:
        assert asked == [page.url] * opened
