"""Detectors under test behind one interface: rows in, alarms and the block of every row out."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from ccmem import WindowLayer


class Found(NamedTuple):
    """Alarms of one recording."""

    steps: list[int]
    """Row at which each alarm was raised."""
    onsets: list[int]
    """Row at which each change began, as estimated by the detector."""
    blocks: Any
    """Block in use after each row."""
    n_blocks: int

    @classmethod
    def of(cls, steps: Sequence[int], n_rows: int) -> Found:
        """Return alarms without blocks: each alarm begins a new block."""
        blocks = blocks_of_rows(steps, range(1, len(steps) + 1), n_rows)
        return cls(list(steps), list(steps), blocks, len(steps) + 1)


def blocks_of_rows(steps: Sequence[int], blocks: Sequence[int], n_rows: int) -> Any:
    """Return the block in use after each row: block 0, then ``blocks[i]`` from row ``steps[i]``.

    >>> blocks_of_rows([2, 4], [1, 0], 6).tolist()
    [0, 0, 1, 1, 0, 0]
    """
    return np.repeat([0, *blocks], np.diff([0, *steps, n_rows]))


def blind(found: Found) -> Found:
    """Return the blind clock: as many alarms as ``found``, evenly spaced, each with a new block."""
    n, n_rows = len(found.steps), len(found.blocks)
    return Found.of([(i + 1) * n_rows // (n + 1) for i in range(n)], n_rows)


def rand_index(truth: Any, blocks: Any) -> float:
    """Return the adjusted Rand index of blocks against regimes, over the rows with a regime (not negative)."""
    known = np.asarray(truth) >= 0
    return float(adjusted_rand_score(np.asarray(truth)[known], np.asarray(blocks)[known]))


class Candidate:
    """Memory under test, and the layer that turns signals into windows.

    Parameters
    ----------
    memory : callable
        Returns an empty memory with ``partial_fit``, ``events_`` and ``n_blocks_``.
    front : callable
        Returns an empty layer with ``push`` and ``event_in_rows``.

    Processor time and rows are summed in ``seconds`` and ``rows_seen``.
    """

    has_windows = True
    """True if the detector can run on window features; False if it takes raw signals only."""

    def __init__(self, memory: Callable[[], Any], front: Callable[[], Any] = WindowLayer) -> None:
        self.memory, self.front = memory, front
        self.seconds, self.rows_seen = 0.0, 0

    def learn(self, X: Any, front: Any = None) -> Any:
        """Return a memory that has learned the rows of one recording, or the windows of a ``front``."""
        began = time.process_time()
        memory = self.memory()
        if hasattr(front, "set_overlap"):
            front.set_overlap(memory)
        memory.partial_fit(X)
        self.seconds += time.process_time() - began
        self.rows_seen += len(X)
        return memory

    def rows(self, X: Any) -> Found:
        """Run a memory over the rows of one recording."""
        memory = self.learn(X)
        return _found([event for event in memory.events_ if event.changes_block], len(X), memory.n_blocks_)

    def windows(self, X: Any) -> Found:
        """Run a memory behind the window layer; alarms and blocks are counted in rows of the signal."""
        began = time.process_time()
        front = self.front()
        features = front.push(X)
        self.seconds += time.process_time() - began
        if not len(features):
            return _found([], len(X), 1)
        memory = self.learn(features, front)
        self.rows_seen += len(X) - len(features)
        events = [front.event_in_rows(event) for event in memory.events_ if event.changes_block]
        return _found(events, len(X), memory.n_blocks_)


def _found(events: list[Any], n_rows: int, n_blocks: int) -> Found:
    steps = [event.step for event in events]
    onsets = [min(max(event.onset, 1), n_rows - 1) for event in events]
    return Found(steps, onsets, blocks_of_rows(steps, [event.to_block for event in events], n_rows), n_blocks)


def load(path: str) -> Callable[[], Any]:
    """Return the callable named ``package.module:name``."""
    module, _, name = path.partition(":")
    if not name:
        raise ValueError(f"{path!r} names no object: write package.module:name")
    found: Callable[[], Any] = getattr(importlib.import_module(module), name)
    return found
