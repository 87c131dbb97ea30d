"""Any thread may call any method: many read at a time, or one learns.

Kernels run without Python's interpreter lock, so nothing but this keeps two threads from writing to the same arrays.
Methods are marked :func:`learning` or :func:`reading`; what belongs together (a classifier and its memory) shares one
guard, so that a reader never sees one part of a chunk learned and the other not. A thread that reads may read again; a
thread that learns may do either, until it tells its listeners: from then on it is a reader, like the threads it let in.
They are told when the outermost method is done, so that a call is learned whole before anybody hears of it.
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
"""Attributes under which objects here keep what they share their guard with."""
_copying = threading.local()
_making = threading.RLock()


class Guard:
    """Many readers or one learner; whoever waits to learn goes before new readers."""

    __slots__ = ("depth", "is_mine", "lock", "readers", "someone_left", "to_notify")

    def __init__(self) -> None:
        self.lock = threading.RLock()  # held by the learner, and for a moment by whoever begins to read
        self.is_mine: Callable[[], bool] = self.lock._is_owned  # type: ignore[attr-defined]
        self.depth = 0  # how many methods that learn the learner is in, one inside the other
        self.readers: dict[int, bool] = {}  # threads; never any beside a learner
        self.someone_left: threading.Event | None = None
        self.to_notify: Any = None  # a memory that has something to tell when the outermost method is done

    def become_reader(self) -> bool:
        """Let other readers in, but no learner; False inside of another method that learns, which has to go on."""
        if self.is_mine():
            if self.depth > 1:
                return False
            self.depth = 0
            self.readers[get_ident()] = True
            self.lock.release()
        return True

    def notify(self) -> None:
        """Let the memory tell what it could not while the method that learned went on."""
        memory, self.to_notify = self.to_notify, None
        memory._notify()

    def stop_reading(self) -> None:
        """The calling thread reads no more; tell whoever waits to learn."""
        del self.readers[get_ident()]
        if (waiting := self.someone_left) is not None:
            waiting.set()

    def wait_for_readers(self) -> None:
        """Wait until nobody reads; only for whoever holds the lock, so that nobody begins to."""
        waiting = self.someone_left = threading.Event()  # before looking again, so that no leave is missed
        while self.readers:
            waiting.wait()
            waiting.clear()
        self.someone_left = None


def guard_of(owner: Any) -> Guard:
    """The guard of ``owner`` and its parts, made when it is first asked for."""
    known = owner.__dict__
    if "_guard" not in known:
        with _making:  # a part must not get one of its own meanwhile
            parts = [known[name] for name in _PARTS if name in known]
            shared = next((part.__dict__["_guard"] for part in parts if "_guard" in part.__dict__), None)
            known.setdefault("_guard", shared if shared is not None else Guard())
            for part in parts:
                share_guard(owner, part)
    guard: Guard = known["_guard"]
    return guard


def share_guard(owner: Any, part: Any) -> None:
    """From now on ``part`` is read and taught with ``owner``."""
    guard = owner.__dict__["_guard"] if "_guard" in owner.__dict__ else guard_of(owner)
    part.__dict__["_guard"] = guard
    for name in _PARTS:
        if name in part.__dict__:
            share_guard(part, part.__dict__[name])


# What a call costs beside its method counts where one sample is learned at a time: so nothing is called in between.


def learning(method: _Method) -> _Method:
    """A method that changes what its object has learned: nobody else reads or learns meanwhile."""

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
            guard.to_notify = None  # what it has to tell is told with what comes next, if it is still there
            raise
        finally:
            if guard.is_mine():
                guard.depth -= 1
                guard.lock.release()
            else:  # it told its listeners, and became a reader for that
                guard.stop_reading()

    return cast(_Method, alone)


def reading(method: _Method) -> _Method:
    """A method that reads what its object has learned: others may read, but not learn meanwhile."""

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
    """Base of what has a guard: copies and pickles are of one moment, and have none until they need one."""

    _not_pickled: ClassVar[tuple[str, ...]] = ()

    @learning
    def _while_learning(self, task: Callable[..., _Result], *args: Any) -> _Result:
        """Do a task that changes what this object has learned."""
        return task(*args)

    @reading
    def _while_reading(self, task: Callable[..., _Result], *args: Any) -> _Result:
        """Do a task that reads what this object has learned."""
        return task(*args)

    @reading
    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        state = {name: value for name, value in state.items() if name not in (*self._not_pickled, "_guard")}
        if getattr(_copying, "whole", False):
            return state  # a part: whoever asked copies it
        _copying.whole = True
        try:
            return copy.deepcopy(state)
        finally:
            _copying.whole = False


class GuardedEstimator(Guarded):
    """The same for an estimator of scikit-learn, the base of which has to come later."""

    @reading  # what is read while learning must not change then; a listener may change it for the next call
    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn's estimators do; waits for a call that learns."""
        super().set_params(**params)  # type: ignore[misc]
        return self
