"""The step of one key: state and rows in, new state and events out.

A state is bytes (:mod:`ccmem.io.persistence`) without the parameters, which all keys of a fleet share in a
:class:`Recipe`. The step is pure and independent of the engine. It sorts rows by their order, drops rows that are not
after the last one learned (so repeated rows change nothing), and seeds its random numbers from the key: the bytes are
the same in any engine and any batching.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from ccmem.base.memory import CompetitiveMemory
from ccmem.core.events import Event
from ccmem.core.typing import FloatArray, IntArray
from ccmem.io.persistence.checkpoint import CheckpointError, decode, deflated
from ccmem.io.persistence.values import parameter_names
from ccmem.layers.scaling import SCALES, Scale
from ccmem.models.adaptive import AdaptiveCCM
from ccmem.readout.modal import ModalClassifier

Key = str | int
KEPT_EVENTS = 16
"""Number of recent events a state keeps; all events are returned and belong in a table."""


class Rows(NamedTuple):
    """Rows of one key."""

    order: IntArray | FloatArray
    """Position of each row in the stream of its key: unique; int64 (such as nanoseconds) or float64."""
    X: FloatArray
    labels: Any = None
    """One label per row for a classifier; None or NaN if missing."""

    def take(self, places: Any) -> Rows:
        """Return a subset of the rows."""
        return Rows(self.order[places], self.X[places], None if self.labels is None else self.labels[places])


class KeyedEvent(NamedTuple):
    """An event in the stream of one key; see :class:`ccmem.Event`."""

    key: Key
    order: int | float
    """Order of the row at which the event was detected."""
    kind: str
    step: int
    from_block: int
    to_block: int
    count: int  # type: ignore[assignment]
    uncertainty: int = 0
    column: int = -1
    evidence: float = 0.0


class Recipe:
    """Settings shared by all keys of a fleet.

    Parameters
    ----------
    model : estimator, default=AdaptiveCCM()
        A memory or a ``ModalClassifier`` that has learned nothing; every key gets one like it. A ``random_state`` is
        replaced by a seed made from the key.
    scale : "none", "unit" or "standard", default="none"
        As for ``ccmem learn``, separately for every key.
    """

    def __init__(self, model: Any = None, scale: str = "none") -> None:
        model = AdaptiveCCM() if model is None else model
        if not isinstance(model, (CompetitiveMemory, ModalClassifier)):
            raise TypeError(f"a fleet is made of memories or classifiers on them, not of {type(model).__name__}")
        if scale not in SCALES:
            raise ValueError(f"scale={scale!r} is unknown; use one of {', '.join(SCALES)}")
        self.model, self.scale = model, scale

    @property
    def takes_missing(self) -> bool:
        """True if rows may have missing readings."""
        return bool(self.model._takes_missing)

    def new_model(self, key: Key, model: Any = None) -> Any:
        """Return an untrained copy of ``model`` (the model of the recipe) for ``key``."""
        model = self.model if model is None else model
        parameters = {name: getattr(model, name) for name in parameter_names(model.__class__)}
        if "random_state" in parameters:
            parameters["random_state"] = seed_of(key)
        if "memory" in parameters:
            parameters["memory"] = self.new_model(key, parameters["memory"])
        return type(model)(**parameters)


def seed_of(key: Key) -> int:
    """Return a seed derived from a key; 1 and "1" are different keys."""
    text = f"{'i' if isinstance(key, int) else 's'}{key}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "little")


class Member:
    """The model of one key and its bookkeeping."""

    def __init__(self, recipe: Recipe, key: Key, state: bytes | None = None) -> None:
        self.key, self._recipe = key, recipe
        self.model = recipe.new_model(key)
        self.scale: Scale | None = None
        self.scale_kind = recipe.scale
        self.last: int | float | None = None
        """Order of the last row learned."""
        self.rows = 0
        if state is not None:
            try:
                self._take(decode(state, f"the state of {key!r}").content)
            except (LookupError, TypeError, ValueError) as problem:
                if isinstance(problem, CheckpointError):
                    raise
                raise CheckpointError(f"the state of {key!r} cannot be loaded: {problem}") from problem

    @property
    def memory(self) -> CompetitiveMemory:
        """Memory that learns."""
        return getattr(self.model, "memory_", self.model)

    def learn(self, rows: Rows) -> list[KeyedEvent]:
        """Learn rows that are in order and after the last one."""
        events: list[Event] = []
        before = self.memory.n_samples_seen_ if self.rows else 0
        listening: Any = self.memory if self.rows else getattr(self.model, "memory", self.model)
        if hasattr(listening, "on_event"):
            listening._listeners = (events.append,)
        if self.scale is None:
            self.scale = Scale(self.scale_kind, rows.X.shape[1])
        X = self.scale.learn(rows.X)
        if rows.labels is None or not isinstance(self.model, ModalClassifier):
            self.model.partial_fit(X)
        else:
            self.model.partial_fit(X, rows.labels)
        self.last = rows.order[-1].item()
        self.rows += len(X)
        return [KeyedEvent(self.key, rows.order[event.step - before].item(), *event[:8]) for event in events]

    def to_bytes(self) -> bytes:
        """Return the state as bytes."""
        fitted = self.model._export()
        inner = fitted["memory_"]._export() if "memory_" in fitted else fitted
        inner["events"] = inner["events"][-KEPT_EVENTS:]
        if "memory_" in fitted:
            fitted["memory_"] = inner
        scale = self.scale.export() if self.scale is not None and self.scale.kind == "standard" else None
        content = {"fitted": fitted, "last": np.array(self.last), "rows": np.array(self.rows), "scale": scale}
        state = deflated(content)
        if not _is_finite(fitted) or not _is_finite(scale):
            Member(self._recipe, self.key, state)  # raises if the loader would, before the last good state is replaced
        return state

    def _take(self, content: dict[str, Any]) -> None:
        fitted = content["fitted"]
        self.last, self.rows = (np.asarray(content[name]).item() for name in ("last", "rows"))
        if type(self.rows) is not int or not 0 < self.rows < 2**62 or type(self.last) not in (int, float):
            raise ValueError("impossible number or order of rows")
        if "memory_" in fitted:
            memory = self._recipe.new_model(self.key, self.model.memory)
            memory._import(fitted["memory_"])
            fitted = {**fitted, "memory_": memory}
        self.model._import(fitted)
        n_features = int(self.memory.n_features_in_)
        if self.scale_kind == "standard":
            self.scale = Scale.of(content["scale"], n_features)
        else:
            self.scale = Scale(self.scale_kind, n_features)


def _is_finite(content: Any) -> bool:
    """Return True if no array in nested dictionaries of arrays holds NaN or infinity: then nothing overflowed."""
    if isinstance(content, dict):
        return all(map(_is_finite, content.values()))
    is_float = isinstance(content, np.ndarray) and content.dtype.kind == "f"
    return not is_float or bool(np.isfinite(np.add.reduce(content, axis=None)))


def step(
    key: Key, state: bytes | None, rows: Rows, recipe: Recipe | None = None
) -> tuple[bytes | None, list[KeyedEvent]]:
    """Learn the rows of ``key`` that are new to ``state`` (None for a new key).

    >>> import numpy as np
    >>> rows = Rows(np.arange(3), np.eye(3))
    >>> state, events = step("pump 7", None, rows)
    >>> step("pump 7", state, rows)[0] == state                  # rows already seen are dropped
    True
    >>> later, events = step("pump 7", state, Rows(np.array([9, 8]), np.eye(3)[1:]))
    >>> Member(Recipe(), "pump 7", later).last
    9
    """
    member = Member(recipe or Recipe(), key, state)
    events, dropped = advance(member, rows)
    return (state if dropped == len(rows.order) else member.to_bytes()), events


def advance(member: Member, rows: Rows, late: str = "drop") -> tuple[list[KeyedEvent], int]:
    """Let ``member`` learn the rows that are new; return its events and the number of rows dropped.

    ``late="stop"`` raises :class:`LateRowsError` over such rows instead of dropping them.
    """
    fresh = in_order(member.key, rows, member.last)
    dropped = len(rows.order) - len(fresh.order)
    if dropped and late == "stop":
        last = "" if member.last is None else f" is not after the last one learned ({member.last}), or"
        raise LateRowsError(
            f"key {member.key!r}: {dropped} of {len(rows.order)} rows have an order that{last} is that of another row: "
            "they were learned already, or come too late; skip such rows (--late drop), or give every row "
            "a unique order and learn the row in the same run as the rows before it"
        )
    return (member.learn(fresh) if len(fresh.order) else []), dropped


class LateRowsError(ValueError):
    """Raised for rows that arrive after later rows were learned."""


def in_order(key: Key, rows: Rows, last: int | float | None) -> Rows:
    """Return the rows after ``last``, sorted by order; the first of several rows with the same order."""
    order = rows.order
    if order.dtype not in (np.int64, np.float64) or order.shape != rows.X.shape[:1]:
        raise ValueError(f"key {key!r}: the order must be one int64 or float64 a row, not {order.dtype} {order.shape}")
    if order.dtype == np.float64 and not np.isfinite(order).all():
        raise ValueError(f"key {key!r}: the order of row {int(np.flatnonzero(~np.isfinite(order))[0])} is not a number")
    steps = np.diff(order)
    if len(steps) and steps.min() <= 0:
        places = np.argsort(order, kind="stable")
        places = places[np.append(True, np.diff(order[places]) > 0)]
        rows, order = rows.take(places), order[places]
    if last is not None and len(order) and order[0] <= last:
        rows = rows.take(slice(int(np.searchsorted(order, last, side="right")), None))
    return rows
