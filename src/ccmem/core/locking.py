"""Locking: one thread at a time learns or reads a model.

Kernels run without Python's interpreter lock, so this lock alone keeps two threads from writing to the same arrays.
Methods are decorated with :func:`learning` or :func:`reading`. Objects that belong together (a classifier and its
memory) share one guard, so that a reader never sees a chunk learned by only one of them. Listeners are notified when
the outermost learning method has finished, so that a call is learned completely before any callback runs.
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

    __slots__ = ("depth", "is_notifying", "lock", "to_notify")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.depth = 0  # nesting depth of learning methods
        self.is_notifying = False  # True while listeners run, which may read but not learn
        self.to_notify: Any = None  # memory whose listeners are notified when the outermost method ends

    def notify(self, memory: Any, listeners: Callable[[], None]) -> None:
        """Call the listeners of a memory; inside a nested learning method, leave this to the outermost one."""
        if self.depth > 1:
            self.to_notify = memory
            return
        self.is_notifying = True
        try:
            listeners()
        finally:
            self.is_notifying = False


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
        with guard.lock:
            if guard.is_notifying:
                raise RuntimeError(
                    "a callback of on_event may read, predict with or save its model, but must leave learning for later"
                )
            guard.depth += 1
            try:
                result = method(self, *args, **kwargs)
                if guard.to_notify is not None and guard.depth == 1:
                    memory, guard.to_notify = guard.to_notify, None
                    memory._notify()
                return result
            except BaseException:
                guard.to_notify = None  # pending events are reported with the next call, if not undone
                raise
            finally:
                guard.depth -= 1

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
