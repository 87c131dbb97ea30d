"""Synthetic but realistic stream: sensors of a machine that switches between recurring states.

Row t in state s reads ``level[s] + cycle + drift + noise``: every state has a separate level for every sensor, the
cycle is a daily sine, and the drift is a slow random walk of each sensor by a few per cent over the whole stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ccmem.core.typing import FloatArray, IntArray

STATES = ("idle", "warm-up", "full load", "cooling", "cleaning", "fault")
DAY = 10_000
"""Rows in a day."""
_AT_A_TIME = 50_000


class DriftingSensors(NamedTuple):
    """Plan of a synthetic sensor stream; :meth:`chunks` generates its rows."""

    n_rows: int
    names: tuple[str, ...]
    starts: IntArray
    """Row at which each visit to a state begins."""
    visits: IntArray
    """State of each visit."""
    levels: FloatArray
    missing: float
    seed: int
    """Seed that defines the machine."""
    recording: int = 0
    """Number of the recording of the same machine; visits and noise differ between recordings."""

    @property
    def changes(self) -> list[tuple[int, int]]:
        """Row and new state of every change."""
        return list(zip(self.starts[1:].tolist(), self.visits[1:].tolist(), strict=True))

    def chunks(self) -> Iterator[tuple[FloatArray, list[str | None]]]:
        """Yield rows and states in chunks; repeated calls yield identical rows."""
        rng = np.random.default_rng([self.seed, 1])
        names = np.array([*STATES, None], object)
        phase, wander = rng.uniform(0, 2 * np.pi, (2, len(self.names)))
        if self.recording:
            rng = np.random.default_rng([self.seed, 1, self.recording])
        for start in range(0, self.n_rows, _AT_A_TIME):
            t = np.arange(start, min(start + _AT_A_TIME, self.n_rows))
            state = self.visits[np.searchsorted(self.starts, t, side="right") - 1]
            X = self.levels[state]
            X = X + 0.04 * np.sin(2 * np.pi * t[:, None] / DAY + phase)
            X += 0.05 * np.sin(2 * np.pi * t[:, None] / (3 * self.n_rows) + wander)
            X += rng.normal(0, 0.04, X.shape)
            label = np.where(rng.random(len(t)) < self.missing, len(STATES), state)
            yield X.round(5), names[label].tolist()


def drifting_sensors(
    n_rows: int = 100_000,
    n_features: int = 8,
    n_states: int = 4,
    segment: int = 4000,
    missing: float = 0.1,
    seed: int = 0,
    recording: int = 0,
) -> DriftingSensors:
    """Plan a stream of ``n_rows``: all states once in order, then in random order, each for about ``segment`` rows.

    ``seed`` defines the machine; ``recording`` distinguishes streams of the same machine.

    >>> stream = drifting_sensors(n_rows=20_000, seed=0)
    >>> [STATES[state] for _, state in stream.changes]
    ['warm-up', 'full load', 'cooling', ...]
    """
    rng = np.random.default_rng([seed, 0])
    levels: Any = np.empty((n_states, n_features))
    for state in range(n_states):  # some sensors run high; of a few drafts, keep the least similar to earlier states
        drafts = []
        for _ in range(50):
            high = rng.choice(n_features, max(1, n_features // 2), replace=False)
            draft = np.full(n_features, 0.2)
            draft[high] = rng.uniform(0.8, 1.4, len(high))
            drafts.append(draft / np.linalg.norm(draft) * np.sqrt(n_features / 2))
        levels[state] = min(drafts, key=lambda draft: max((draft @ levels[:state].T), default=0.0))
    if recording:
        rng = np.random.default_rng([seed, 0, recording])
    starts, visits = [0], [0]
    while True:
        begin = starts[-1] + max(1, int(segment * rng.uniform(0.5, 1.5)))
        if begin >= n_rows:
            break
        other = [state for state in range(n_states) if state != visits[-1]]
        visits.append(len(visits) if len(visits) < n_states else int(rng.choice(other)))
        starts.append(begin)
    names = tuple(f"sensor_{i}" for i in range(n_features))
    return DriftingSensors(n_rows, names, np.array(starts), np.array(visits), levels, missing, seed, recording)
