"""Locking: one thread at a time learns or reads a model.

Kernels run without Python's interpreter lock, so this lock alone keeps two threads from writing to the same arrays.
Methods are decorated with :func:`learning` or :func:`reading`. Objects that belong together (a classifier and its
memory) share one guard, so that a reader never sees a chunk learned by only one of them. Listeners are notified when
the outermost learning method has finished and released the lock: a call is learned completely before any callback runs,
and a callback may wait for other threads that use the model.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar, cast

_Method = TypeVar("_Method", bound=Callable[..., Any])
_Result = TypeVar("_Result")
_PARTS = ("memory_", "last_", "_model")
"""Attributes that hold the objects with which an object shares its guard."""
_copying = threading.local()
_making = threading.RLock()


class Guard:
    """Reentrant lock of a model and its parts."""

    __slots__ = ("deliverer", "depth", "lock", "to_notify")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.depth = 0  # nesting depth of learning methods
        self.to_notify: Any = None  # memory with events that were not yet delivered to listeners
        self.deliverer: int | None = None  # thread that calls listeners, which may read but not learn

    def deliver(self) -> None:
        """Call the listeners of the memory that has events, one event after the other and without the lock.

        If another thread is already calling listeners, that thread calls them for these events too. Waiting for that
        thread instead would be a deadlock if one of its listeners waits for this thread.
        """
        with self.lock:
            if self.deliverer is not None:
                return
            self.deliverer = threading.get_ident()
        try:
            while True:
                with self.lock:
                    memory = self.to_notify
                    event = None if memory is None else memory._next_event()
                    if event is None:
                        self.to_notify = self.deliverer = None
                        return
                for listener in memory._listeners:
                    listener(event)
        except BaseException:
            self.to_notify = self.deliverer = None  # remaining events are delivered after the next call that learns
            raise


def guard_of(owner: Any) -> Guard:
    """Return the guard of ``owner`` and its parts, created on first use."""
    known = owner.__dict__
    if "_guard" not in known:
        with _making:  # prevents a part from getting a separate guard concurrently
            parts = [known[name] for name in _PARTS if name in known]
            shared = next((part.__dict__["_guard"] for part in parts if "_guard" in part.__dict__), None)
            known.setdefault("_guard", shared if shared is not None else Guard())
            for part in parts:
                share_guard(owner, part)
    guard: Guard = known["_guard"]
    return guard


def share_guard(owner: Any, part: Any) -> None:
    """Make ``part`` and its parts use the guard of ``owner``."""
    guard = owner.__dict__["_guard"] if "_guard" in owner.__dict__ else guard_of(owner)
    part.__dict__["_guard"] = guard
    for name in _PARTS:
        if name in part.__dict__:
            share_guard(part, part.__dict__[name])


def learning(method: _Method) -> _Method:
    """Decorate a method that changes learned state: no other thread reads or learns during the call."""

    @functools.wraps(method)
    def locked(self: Any, *args: Any, **kwargs: Any) -> Any:
        guard: Guard = self.__dict__.get("_guard") or guard_of(self)
        if guard.deliverer is not None and guard.deliverer == threading.get_ident():
            raise RuntimeError(
                "a callback of on_event may read, predict with or save its model, but must not teach it; "
                "learn after the callback has returned"
            )
        with guard.lock:
            guard.depth += 1
            to_notify = guard.to_notify
            try:
                result = method(self, *args, **kwargs)
            except BaseException:
                guard.to_notify = to_notify  # new events are delivered after the next call, if not undone
                raise
            finally:
                guard.depth -= 1
            has_events = guard.to_notify is not None and guard.depth == 0
        if has_events:
            guard.deliver()
        return result

    return cast(_Method, locked)


def reading(method: _Method) -> _Method:
    """Decorate a method that reads learned state: no other thread learns during the call."""

    @functools.wraps(method)
    def locked(self: Any, *args: Any, **kwargs: Any) -> Any:
        guard: Guard = self.__dict__.get("_guard") or guard_of(self)
        with guard.lock:
            return method(self, *args, **kwargs)

    return cast(_Method, locked)


class Guarded:
    """Base of objects with a guard: copies and pickles are consistent snapshots and get a new guard when needed."""

    _not_pickled: ClassVar[tuple[str, ...]] = ()

    @learning
    def _while_learning(self, task: Callable[..., _Result], *args: Any) -> _Result:
        """Run a task that changes the learned state of this object."""
        return task(*args)

    @reading
    def _while_reading(self, task: Callable[..., _Result], *args: Any) -> _Result:
        """Run a task that reads the learned state of this object."""
        return task(*args)

    @reading
    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        state = {name: value for name, value in state.items() if name not in (*self._not_pickled, "_guard")}
        if getattr(_copying, "whole", False):
            return state  # a part: the caller copies it
        _copying.whole = True
        try:
            return copy.deepcopy(state)
        finally:
            _copying.whole = False


class GuardedEstimator(Guarded):
    """Guarded base of scikit-learn estimators; scikit-learn's base class must come later in the inheritance list."""

    @reading  # parameters must not change during learning; a listener may change them for the next call
    def set_params(self, **params: Any) -> Self:
        """Set parameters, like scikit-learn's estimators; wait for a learning call to finish."""
        super().set_params(**params)  # type: ignore[misc]
        return self
