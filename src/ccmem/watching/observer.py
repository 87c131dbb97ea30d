"""Looks at a model a few times a second, from a thread of its own, and keeps what pages ask for.

Learning never waits for it: the model is read as it is (:mod:`ccmem.watching.facts`), and after a look that took long
the next one is put off, so that looking takes at most a hundredth of one processor.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ccmem.memory import Event
from ccmem.models._blocks import EVENT_HISTORY, EVENT_KINDS, BlockMemory
from ccmem.watching import facts
from ccmem.watching.history import AlarmTrace, RowsAround

LOOK_SECONDS = 0.2
LEAST_PAUSES = 100
"""A look is followed by a pause at least so many times as long as the processor time it took, ..."""
LONGEST_PAUSE = 5.0
"""... but not longer than this: the first looks may have to compile something."""
FRESH_SECONDS = 4.0
"""How long an event is told as the present state."""
STATES = {"new_block": "new", "recall": "recalled", "column_lost": "lost", "column_back": "back"}
RATE_SECONDS = 4.0
READS = 50
"""How often a page's question is put to a model that is in the middle of a step."""
MOST_CARDS = 40
"""Blocks that are shown at once: the one in use, and those used most recently."""


class Observer:
    """What a page knows of a model.

    Parameters
    ----------
    source : function that returns the model to look at, or None as long as there is none
    title : what the page calls it
    changes : steps at which the stream really changed, if known
    image_shape : (height, width) if rows are images that are not square
    rename : called with block and name when a page names a block; says what became of it
    learns_here : whether the model learns in this process, so that rows around its events can be kept
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
    ) -> None:
        self.title, self.changes = title, (changes or [])[:EVENT_HISTORY]
        self.news = threading.Condition()
        """Guards what follows; notified after every look. The thread that learns never takes it."""
        self.looks = 0
        self.finished = False
        self._source, self._rename, self._image_shape = source, rename, image_shape
        self._rows = RowsAround()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ccmem-watch", daemon=True)
        self._learns_here = learns_here
        self._observed: Any = None
        self._forget()

    def _forget(self) -> None:
        self._model: Any = None
        self._memory: Any = None
        self._now: facts.Glance | None = None
        self._events: deque[Event] = deque(maxlen=EVENT_HISTORY)
        self._n_events = 0
        self._noticed = 0.0
        self._trace = AlarmTrace()
        self._passed: deque[tuple[float, int]] = deque(maxlen=16)
        self._cards: dict[int, tuple[int, dict[str, Any]]] = {}
        self._born: dict[int, int] = {0: 0}
        self._used: dict[int, int] = {}
        self._head: dict[str, Any] = {}

    # The thread that looks -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more, and tell the pages."""
        self._stop.set()
        with self.news:
            self.finished = True
            self.news.notify_all()
        self._watch_rows_of(None)

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.thread_time()  # not by the clock: waiting for a long chunk to end costs nothing
            self.look()
            self._stop.wait(min(LONGEST_PAUSE, max(LOOK_SECONDS, LEAST_PAUSES * (time.thread_time() - began))))

    def look(self) -> None:
        """Look once."""
        try:
            model = self._source()
        except (OSError, ValueError):
            return  # a file that is gone or just being replaced
        memory = None if model is None else facts.memory_of(model)
        if memory is None:
            return
        if self._learns_here and memory is not self._observed:
            self._watch_rows_of(memory)
        with self.news:
            try:
                self._take(model, memory, time.monotonic())
            except facts.Moving:
                return  # read in the middle of a step: the next look will do
            self.looks += 1
            self.news.notify_all()

    def _watch_rows_of(self, memory: Any) -> None:
        """Keep rows around the events of ``memory``, and no longer of the one before."""
        if self._observed is not None:
            for name, ours in (("_observers", self._rows.observe), ("_listeners", self._rows.keep)):
                setattr(self._observed, name, tuple(one for one in getattr(self._observed, name, ()) if one != ours))
        self._observed = memory
        if isinstance(memory, BlockMemory):
            memory._observers = (*memory._observers, self._rows.observe)
            memory.on_event(self._rows.keep)

    def _take(self, model: Any, memory: Any, now: float) -> None:
        glance = facts.glance(memory)
        if self._now is not None and (glance.rows < self._now.rows or glance.n_blocks < self._now.n_blocks):
            self._forget()  # another memory, or this one anew
        first = self._now is None
        self._model, self._memory = model, memory
        self._take_events(facts.events_of(memory), glance.limit, now, first)
        if not self._passed or glance.rows != self._passed[-1][1]:
            self._passed.append((now, glance.rows))
        self._trace.add(glance.rows, glance.alarm)
        self._used[glance.block] = glance.rows
        shape = facts.image_shape(memory, self._image_shape)
        shown = self._shown(glance)
        for block in shown:
            if block == glance.block or block not in self._cards:
                self._put_card(block, facts.card(model, memory, block, shape))
        for block in [block for block in self._cards if block not in shown]:
            del self._cards[block]
        self._head = {"shape": shape, "columns": facts.columns_of(memory), "n_features": int(memory.n_features_in_)}
        self._head["blind"] = bool(vars(memory).get("_said_blind"))  # asking anew would run kernels in this thread
        self._now = glance

    def _take_events(self, events: list[Event], limit: int | None, now: float, first: bool) -> None:
        """Take in the events that are new: those after the last one known."""
        last = self._events[-1] if self._events else None
        fresh: list[Event] = []
        for event in reversed(events):
            if event == last:
                break
            fresh.append(event)
        for event in reversed(fresh):
            self._events.append(event)
            self._n_events += 1
            if not event.changes_block:
                continue
            self._born.setdefault(event.to_block, event.onset)
            self._used[event.from_block] = max(self._used.get(event.from_block, 0), event.step)
            self._used[event.to_block] = event.step
            self._trace.add(event.step, max(event.count, limit or 0))
            self._cards.pop(event.from_block, None)
        if fresh and not first:
            self._noticed = now
        if len(self._used) > 8 * MOST_CARDS:
            latest = sorted(self._used, key=self._used.__getitem__)[-4 * MOST_CARDS :]
            self._used = {block: self._used[block] for block in latest}
            self._born = {block: self._born[block] for block in latest if block in self._born}

    def _shown(self, glance: facts.Glance) -> set[int]:
        latest = sorted(self._used, key=lambda block: self._used[block], reverse=True)[:MOST_CARDS]
        if len(latest) < min(MOST_CARDS, glance.n_blocks):
            latest += [block for block in range(min(MOST_CARDS, glance.n_blocks)) if block not in self._used]
        return {*latest[:MOST_CARDS], glance.block}

    def _put_card(self, block: int, card: dict[str, Any]) -> None:
        card["born"], card["used"] = self._born.get(block, 0), self._used.get(block, 0)
        if block not in self._cards or self._cards[block][1] != card:
            self._cards[block] = self.looks + 1, card

    # What pages ask ------------------------------------------------------------------------------------------------

    def state(self, now: float) -> str:
        """What the stream does just now: ``waiting``, ``calm``, ``suspicious``, ``new`` or ``recalled``."""
        if self._now is None or self._now.rows == 0:
            return "waiting"
        if self._events and now - self._noticed < FRESH_SECONDS and self._noticed:
            return STATES[self._events[-1].kind]
        return "suspicious" if self._now.alarm > 0 else "calm"

    def wait_for_look(self, number: int, timeout: float) -> None:
        """Wait until there was a look after ``number``, or nothing more will come."""
        with self.news:
            self.news.wait_for(lambda: self.looks > number or self.finished, timeout)

    def update(self, since: int = 0, n_events: int = 0) -> dict[str, Any]:
        """What has changed since look ``since``, for a page that knows the first ``n_events`` events."""
        with self.news:
            now, glance = time.monotonic(), self._now
            answer: dict[str, Any] = {"title": self.title, "look": self.looks, "finished": self.finished}
            answer |= {"state": self.state(now), "rate": self._rate(now)}
            if glance is None:
                return answer
            fresh = min(len(self._events), max(0, self._n_events - n_events))
            latest = list(self._events)[len(self._events) - fresh :]
            kinds = {kind: place for place, kind in enumerate(EVENT_KINDS)}
            answer |= glance._asdict() | self._head
            answer |= {
                "n_events": self._n_events,
                "events": [
                    [kinds[e.kind], e.step, e.from_block, e.to_block, e.count, e.uncertainty, e.onset, e.column]
                    for e in latest
                ],
                "trace": {"width": self._trace.width, "peaks": self._trace.peaks},
                "cards": [card for look, card in self._cards.values() if look > since],
                "shown": sorted(self._cards),
                "names": {str(block): name for block, name in facts.names_of(self._memory).items()},
            }
            if since == 0:
                answer["changes"] = self.changes
            return answer

    def card(self, block: int) -> dict[str, Any]:
        """The card of any block; LookupError if there is none."""
        with self.news:
            if self._now is None or not 0 <= block < self._now.n_blocks:
                raise LookupError(f"no block {block}")
            card = _read(lambda: facts.card(self._model, self._memory, block, self._head["shape"]))
            return card | {"born": self._born.get(block, 0), "used": self._used.get(block, 0)}

    def why(self, step: int, kind: int) -> dict[str, Any]:
        """Why the event of a kind at ``step`` happened; LookupError if there is none."""
        with self.news:
            name = dict(enumerate(EVENT_KINDS)).get(kind)
            event = next((event for event in self._events if event.step == step and event.kind == name), None)
            if event is None:
                raise LookupError(f"no event at {step}")
            return _read(lambda: facts.explanation(self._memory, event, self._rows.around(step)))

    def name(self, block: int, name: str) -> str:
        """Give a block a name; returns what became of it, in words."""
        with self.news:
            if self._memory is None or not isinstance(self._memory, BlockMemory):
                raise ValueError("there are no blocks to name yet")
            self._memory.name_block(block, name)
            said = self._rename(block, name) if self._rename is not None else "kept with the memory"
            self._cards.pop(block, None)
        self.look()
        return said

    def _rate(self, now: float) -> int:
        """Rows a second over the last looks that found more; 0 when there were none for a while."""
        recent = [entry for entry in self._passed if now - entry[0] < RATE_SECONDS]
        if len(recent) < 2 or self.finished:
            return 0
        (began, first), (ended, last) = recent[0], recent[-1]
        return round((last - first) / max(ended - began, 1e-3))


def _read(read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``read`` answers; asked again when it hits upon the middle of a step."""
    for _ in range(READS):
        try:
            return read()
        except facts.Moving:
            time.sleep(0.01)
    raise LookupError("the model never stood still")
