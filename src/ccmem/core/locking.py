"""Reader-writer locking: many threads read a model at a time, or one thread learns.

Kernels run without Python's interpreter lock, so this lock alone keeps two threads from writing to the same arrays.
Methods are decorated with :func:`learning` or :func:`reading`. Objects that belong together (a classifier and its
memory) share one guard, so that a reader never sees a chunk learned by only one of them. A reading thread may call
further reading methods; a learning thread may call both kinds. Listeners are notified when the outermost learning
method has finished, so that a call is learned completely before any callback runs; from then on the thread is a reader.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable
from threading import get_ident
from typing import Any, ClassVar, Self, TypeVar, cast

_Method = TypeVar("_Method", bound=Callable[..., Any])
_Result = TypeVar("_Result")
_PARTS = ("memory_", "last_", "_model")
"""Attributes that hold the objects with which an object shares its guard."""
_copying = threading.local()
_making = threading.RLock()


class Guard:
    """Lock for many readers or one learner; a waiting learner takes precedence over new readers."""

    __slots__ = ("depth", "is_mine", "lock", "readers", "someone_left", "to_notify")

    def __init__(self) -> None:
        self.lock = threading.RLock()  # held by the learner, and briefly by a thread that begins to read
        self.is_mine: Callable[[], bool] = self.lock._is_owned  # type: ignore[attr-defined]
        self.depth = 0  # nesting depth of learning methods in the learner's thread
        self.readers: dict[int, bool] = {}  # thread ids; empty while a thread learns
        self.someone_left: threading.Event | None = None
        self.to_notify: Any = None  # memory whose listeners are notified when the outermost method ends

    def become_reader(self) -> bool:
        """Downgrade the calling learner to a reader; return False inside a nested learning method, which goes on."""
        if self.is_mine():
            if self.depth > 1:
                return False
            self.depth = 0
            self.readers[get_ident()] = True
            self.lock.release()
        return True

    def notify(self) -> None:
        """Notify the listeners of the memory, which was deferred until the outermost learning method finished."""
        memory, self.to_notify = self.to_notify, None
        memory._notify()

    def stop_reading(self) -> None:
        """Unregister the calling thread as a reader and wake a waiting learner."""
        del self.readers[get_ident()]
        if (waiting := self.someone_left) is not None:
            waiting.set()

    def wait_for_readers(self) -> None:
        """Wait until no thread reads; the caller must hold the lock, so that no thread begins to read."""
        waiting = self.someone_left = threading.Event()  # set before checking readers, so that no wake-up is lost
        while self.readers:
            waiting.wait()
            waiting.clear()
        self.someone_left = None


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


# Call overhead matters when samples are learned one at a time, so the wrappers below inline their logic.


def learning(method: _Method) -> _Method:
    """Decorate a method that changes learned state: no other thread reads or learns during the call."""

    @functools.wraps(method)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        guard: Guard = self.__dict__.get("_guard") or guard_of(self)
        if guard.readers and get_ident() in guard.readers:
            raise RuntimeError(
                "a thread that reads a model cannot teach it at the same time; a callback of on_event may read, "
                "predict with or save its model, but must leave learning for later"
            )
        guard.lock.acquire()
        try:
            guard.depth += 1
            if guard.readers:
                guard.wait_for_readers()
            result = method(self, *args, **kwargs)
            if guard.to_notify is not None and guard.depth == 1:
                guard.notify()
            return result
        except BaseException:
            guard.to_notify = None  # pending events are reported with the next call, if not undone
            raise
        finally:
            if guard.is_mine():
                guard.depth -= 1
                guard.lock.release()
            else:  # listeners were notified, which made the thread a reader
                guard.stop_reading()

    return cast(_Method, alone)


def reading(method: _Method) -> _Method:
    """Decorate a method that reads learned state: other threads may read, but not learn, during the call."""

    @functools.wraps(method)
    def together(self: Any, *args: Any, **kwargs: Any) -> Any:
        guard: Guard = self.__dict__.get("_guard") or guard_of(self)
        me = get_ident()
        if me in guard.readers or guard.is_mine():
            return method(self, *args, **kwargs)
        with guard.lock:
            guard.readers[me] = True
        try:
            return method(self, *args, **kwargs)
        finally:
            guard.stop_reading()

    return cast(_Method, together)


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
