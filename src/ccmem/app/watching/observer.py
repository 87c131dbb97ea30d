"""Observer that reads a model a few times a second from a separate thread and answers the requests of pages.

Learning never waits for the observer: the model is read without a lock (:mod:`ccmem.app.watching.facts`), and a long
look delays the next one, so that looking takes at most a hundredth of one processor.
"""

from __future__ import annotations

import base64
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from ccmem.app.watching import facts
from ccmem.app.watching.history import PeakTrace, RowsAround, Signals, Visits
from ccmem.base.images import image_shape
from ccmem.base.memory import CompetitiveMemory
from ccmem.core.events import EVENT_KINDS, Event
from ccmem.models._blocks import EVENT_HISTORY, BlockMemory

LOOK_SECONDS = 0.2
LEAST_PAUSES = 150
"""Shortest pause after a look, in multiples of the processor time that the look took."""
LONGEST_PAUSE = 5.0
"""Longest pause in seconds; the first look may take long because it compiles."""
FRESH_SECONDS = 4.0
"""Seconds for which an event is shown as the present state."""
STATES = {"new_block": "new", "recall": "recalled", "column_lost": "lost", "column_back": "back"}
RATE_SECONDS = 4.0
READS = 50
"""Attempts to read a model that may be in the middle of a step."""
MOST_CARDS = 40
"""Blocks that are shown at once: the one in use, and those used most recently."""
SIGNAL_BINS, SIGNAL_COLUMNS = 600, 8
"""Most bins and columns in one answer about signals."""


class Observer:
    """Reader of a model that answers the requests of pages.

    Parameters
    ----------
    source : function that returns the model to look at, or None as long as there is none
    title : title of the page
    changes : steps at which the stream really changed, if known
    image_shape : (height, width) if rows are images that are not square
    rename : called with block and name when a page names a block; returns the result as text
    learns_here : True if the model learns in this process, so that its signals can be kept
    describe : function that returns the name of the label, if the stream has one (:func:`facts.described`)
    """

    def __init__(
        self,
        source: Callable[[], Any],
        *,
        title: str,
        changes: list[int] | None = None,
        image_shape: tuple[int, int] | None = None,
        rename: Callable[[int, str], str] | None = None,
        learns_here: bool = True,
        describe: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self.title, self.changes = title, (changes or [])[:EVENT_HISTORY]
        self.news = threading.Condition()
        """Lock of the attributes below, notified after every look; the learning thread never acquires this lock."""
        self.looks = 0
        self.finished = False
        self._source, self._rename, self._image_shape, self._describe = source, rename, image_shape, describe
        self._rows, self._signals = RowsAround(), Signals()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ccmem-watch", daemon=True)
        self._learns_here = learns_here
        self._observed: Sequence[CompetitiveMemory] = ()
        self._forget()

    def _forget(self) -> None:
        self._model: Any = None
        self._memory: Any = None
        self._now: facts.Glance | None = None
        self._events: deque[Event] = deque(maxlen=EVENT_HISTORY)
        self._n_events = 0
        self._noticed = 0.0
        self._trace, self._visits = PeakTrace(), Visits()
        self._times: list[tuple[int, float]] = []
        self._passed: deque[tuple[float, int]] = deque(maxlen=16)
        self._cards: dict[int, tuple[int, dict[str, Any]]] = {}
        self._head: dict[str, Any] = {}
        self._head_look = 0

    # Observer thread -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the observer thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the observer thread and notify the pages."""
        self._stop.set()
        with self.news:
            self.finished = True
            self.news.notify_all()
        self._watch_rows_of(())

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.thread_time()  # CPU time, because waiting for a long chunk to end costs nothing
            self.look()
            self._stop.wait(min(LONGEST_PAUSE, max(LOOK_SECONDS, LEAST_PAUSES * (time.thread_time() - began))))

    def look(self) -> None:
        """Read the model once."""
        try:
            model = self._source()
        except (OSError, ValueError):
            return  # the file is missing or is being replaced
        memory = None if model is None else facts.memory_of(model)
        if self._learns_here:
            candidates = (model, getattr(model, "memory", None)) if memory is None else (memory,)
            self._watch_rows_of([one for one in candidates if isinstance(one, CompetitiveMemory)])
        if memory is None:
            return
        with self.news:
            try:
                self._take(model, memory, time.monotonic())
            except facts.Moving:
                return  # read in the middle of a step; the next look repeats it
            self.looks += 1
            self.news.notify_all()

    def _watch_rows_of(self, memories: Sequence[CompetitiveMemory]) -> None:
        """Keep signals and rows around events of ``memories``, and stop doing so for earlier memories."""
        rows, listener = (self._rows.observe, self._signals.observe), self._rows.keep
        for memory in self._observed:
            if not any(memory is one for one in memories):
                memory._observers = tuple(one for one in memory._observers if one not in rows)
                if isinstance(memory, BlockMemory):
                    memory._listeners = tuple(one for one in memory._listeners if one != listener)
        for memory in memories:
            if rows[0] not in memory._observers:  # a clone of an observed memory is already observed
                memory._observers = (*memory._observers, *rows)
                if isinstance(memory, BlockMemory):
                    memory.on_event(listener)
        self._observed = memories

    def _take(self, model: Any, memory: Any, now: float) -> None:
        glance = facts.glance(memory)
        if self._now is not None and (glance.rows < self._now.rows or glance.n_blocks < self._now.n_blocks):
            self._forget()  # the memory was replaced or refitted
        first = self._now is None
        self._model, self._memory = model, memory
        self._take_events(memory.events_ if isinstance(memory, BlockMemory) else [], now, first)
        self._signals.gather()
        if not self._passed or glance.rows != self._passed[-1][1]:
            self._passed.append((now, glance.rows))
        self._trace.add(glance.rows, glance.evidence or 0.0)
        self._visits.use(glance.block, glance.rows)
        shape = image_shape(memory, self._image_shape)
        shown = self._shown(glance)
        for block in shown:
            if block == glance.block or block not in self._cards:
                card = facts.card(model, memory, block, shape) | self._visits.of(block)
                if block not in self._cards or self._cards[block][1] != card:
                    self._cards[block] = self.looks + 1, card
        for block in [block for block in self._cards if block not in shown]:
            del self._cards[block]
        self._times = facts.times_of(memory)
        columns = getattr(memory, "feature_names_in_", None)
        head = {"shape": shape, "n_features": int(memory.n_features_in_), **self._describe()}
        head["columns"] = None if columns is None else [str(name) for name in columns[: facts.MOST_COLUMNS]]
        head["blind"] = bool(vars(memory).get("_has_warned"))  # calling the method would run kernels in this thread
        head["names"] = {str(block): name for block, name in getattr(memory, "block_names_", {}).items()}
        if head != self._head:
            self._head, self._head_look = head, self.looks + 1
        self._now = glance

    def _take_events(self, events: list[Event], now: float, first: bool) -> None:
        """Add the events after the last known one."""
        last = self._events[-1] if self._events else None
        fresh = events[next((i + 1 for i in reversed(range(len(events))) if events[i] == last), 0) :]
        for event in fresh:
            self._events.append(event)
            self._n_events += 1
            if not event.changes_block:
                continue
            self._trace.add(event.step, event.evidence or 1.0)
            self._visits.turn(event)
            self._cards.pop(event.from_block, None)
        if fresh and not first:
            self._noticed = now

    def _shown(self, glance: facts.Glance) -> set[int]:
        """Return the blocks to show: the one in use, and those used most recently."""
        latest = self._visits.latest(MOST_CARDS)
        others = (block for block in range(min(MOST_CARDS, glance.n_blocks)) if block not in latest)
        return {*latest, *islice(others, MOST_CARDS - len(latest)), glance.block}

    # Requests of pages ---------------------------------------------------------------------------------------------

    def state(self, now: float) -> str:
        """Return the state of the stream: ``waiting``, ``calm``, ``suspicious``, ``new`` or ``recalled``."""
        if self._now is None or self._now.rows == 0:
            return "waiting"
        if self._events and now - self._noticed < FRESH_SECONDS and self._noticed:
            return STATES[self._events[-1].kind]
        return "suspicious" if self._now.alarm > 0 else "calm"

    def wait_for_look(self, number: int, timeout: float) -> None:
        """Wait for a look after look ``number``, the end of the stream, or ``timeout`` seconds."""
        with self.news:
            self.news.wait_for(lambda: self.looks > number or self.finished, timeout)

    def update(self, since: int = 0, n_events: int = 0) -> dict[str, Any]:
        """Return the changes since look ``since``, for a page that knows the first ``n_events`` events."""
        with self.news:
            now, glance = time.monotonic(), self._now
            answer: dict[str, Any] = {"title": self.title, "look": self.looks, "finished": self.finished}
            answer |= {"state": self.state(now), "rate": self._rate(now)}
            if glance is None:
                return answer
            fresh = min(len(self._events), max(0, self._n_events - n_events))
            latest = list(self._events)[len(self._events) - fresh :]
            answer |= glance._asdict()
            answer |= {
                "n_events": self._n_events,
                "events": [_line(event) for event in latest],
                "trace": {"width": self._trace.width, "peaks": self._trace.peaks},
                "cards": [card for look, card in self._cards.values() if look > since],
                "shown": sorted(self._cards),
                "since": self._visits.since,
                "signals": self._signals.n_columns,
                "idle": round(now - self._passed[-1][0]) if self._passed else 0,
                "times": self._times,
            }
            if self._head_look > since:
                answer |= self._head
            if since == 0:
                answer["changes"] = self.changes
            return answer

    def signals(self, start: int, stop: int, columns: list[int]) -> dict[str, Any]:
        """Return the signals of some columns from one step to another, as numbers in base64."""
        with self.news:
            columns = [column for column in columns[:SIGNAL_COLUMNS] if column < self._signals.n_columns]
            bins = self._signals.between(start, max(start + 1, stop), SIGNAL_BINS, columns)
        answer: dict[str, Any] = {"columns": columns, "n": len(bins.step)}
        for name in ("step", "low", "high", "mean"):
            numbers = getattr(bins, name).T.astype("<f8").tobytes()
            answer[name] = base64.b64encode(numbers).decode()
        return answer

    def export(self) -> dict[str, Any]:
        """Return all blocks and events with readable fields, for a file."""
        state = self.update()
        names = state.get("names", {})
        with self.news:
            events = [_record(event, names, state.get("columns")) for event in self._events]
        blocks = [
            {"block": card["block"], "name": names.get(str(card["block"]), "")}
            | {key: card[key] for key in ("wins", "units", "labels", "born", "visits", "in_use", "last")}
            | {"level": card.get("bars"), "spread": card.get("spread")}
            for card in state.get("cards", [])
        ]
        about = {key: state.get(key) for key in ("title", "rows", "finished", "block", "since", "n_blocks", "columns")}
        return about | {"n_events": state.get("n_events", 0), "events": events, "blocks": blocks}

    def card(self, block: int) -> dict[str, Any]:
        """Return the card of any block; LookupError if there is none."""
        with self.news:
            if self._now is None or not 0 <= block < self._now.n_blocks:
                raise LookupError(f"no block {block}")
            card = _read(lambda: facts.card(self._model, self._memory, block, self._head["shape"]))
            return card | self._visits.of(block)

    def why(self, step: int, kind: int) -> dict[str, Any]:
        """Return the explanation of the event of a kind at ``step``; LookupError if there is none."""
        with self.news:
            name = dict(enumerate(EVENT_KINDS)).get(kind)
            event = next((event for event in self._events if event.step == step and event.kind == name), None)
            if event is None:
                raise LookupError(f"no event at {step}")
            return _read(lambda: facts.explanation(self._memory, event, self._rows.around(step)))

    def name(self, block: int, name: str) -> str:
        """Name a block; return the result as text."""
        with self.news:
            if self._memory is None or not isinstance(self._memory, BlockMemory):
                raise ValueError("there are no blocks to name yet")
            self._memory.name_block(block, name)
            said = self._rename(block, name) if self._rename is not None else "kept with the memory"
            self._cards.pop(block, None)
        self.look()
        return said

    def _rate(self, now: float) -> int:
        """Return the rows per second over the last looks; 0 if no rows arrived for a while."""
        recent = [entry for entry in self._passed if now - entry[0] < RATE_SECONDS]
        if len(recent) < 2 or self.finished:
            return 0
        (began, first), (ended, last) = recent[0], recent[-1]
        return round((last - first) / max(ended - began, 1e-3))


def _read(read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of ``read``, repeated when it hits the middle of a step."""
    for _ in range(READS):
        try:
            return read()
        except facts.Moving:
            time.sleep(0.01)
    raise LookupError("the model changed at every attempt to read it")


def _line(event: Event) -> list[Any]:
    """Return an event as a short list: kind, step, from, to, uncertainty, onset, column, ..."""
    kind = EVENT_KINDS.index(event.kind)
    times = [getattr(event, name, None) for name in ("time", "onset_time")]
    line = [kind, event.step, event.from_block, event.to_block, event.uncertainty, event.onset, event.column]
    return [*line, round(event.evidence, 2), *(times if any(time is not None for time in times) else [])]


def _record(event: Event, names: dict[str, str], columns: list[str] | None) -> dict[str, Any]:
    """Return an event with readable fields."""
    record = event.record() | {"onset": event.onset}
    for end in ("from", "to"):
        record[f"{end}_name"] = names.get(str(record[f"{end}_block"]), "")
    if event.column >= 0 and columns and event.column < len(columns):
        record["column_name"] = columns[event.column]
    return record
