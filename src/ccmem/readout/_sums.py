"""Running sums over all rows: :class:`ccmem.DiscriminantClassifier` for many columns, or without forgetting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.base.estimator import SavedEstimator
from ccmem.core.codes import UNLABELED
from ccmem.core.typing import FloatArray, IntArray
from ccmem.readout._rule import make_rule, scores
from ccmem.readout._statistics import SCORED_AT, SEEN, TAUGHT, WAITING, Statistics, take_in_buffer
from ccmem.readout.packed import on_one_thread

_SCORE_AFTER = 1.1
"""Growth factor of the number of learned rows between two updates of the temperature."""
_FADES = 0.75
"""Decay factor of the temperature's precision at each update."""
_MATURE = 0.25
"""Rows of classes below this fraction of the mean class count are not scored: their early scores are not typical."""


class RunningSums(SavedEstimator):
    """Mixin of the discriminant classifier that learns and predicts from running sums."""

    _state: Any
    _made: list[Any]
    own_share: float
    ridge: float

    def _learn_sums(self, rows: FloatArray, codes: IntArray) -> None:
        self._made = []
        self._state.counters[SEEN] += len(rows)
        taught = np.flatnonzero(codes != UNLABELED)
        state, counters = self._state, self._state.counters
        done = 0
        while done < len(taught):
            waiting = int(counters[WAITING])
            now = taught[done : done + len(state.buffer) - waiting]
            state.buffer[waiting : waiting + len(now)] = rows[now]
            state.buffer_codes[waiting : waiting + len(now)] = codes[now]
            counters[WAITING] += len(now)
            counters[TAUGHT] += len(now)
            done += len(now)
            if counters[WAITING] == len(state.buffer):
                with on_one_thread():
                    if counters[TAUGHT] >= _SCORE_AFTER * counters[SCORED_AT] + len(state.buffer):
                        self._calibrate()
                    take_in_buffer(state)

    def _calibrate(self) -> None:
        """Move the temperature towards the value that minimises the log loss of the buffered rows."""
        state = self._state
        present = np.flatnonzero(state.counts)
        state.counters[SCORED_AT] = state.counters[TAUGHT]
        if len(present) < 2:
            return
        known = state.counts[state.buffer_codes] > _MATURE * state.counts[present].mean()
        if not known.any():
            return
        rule = make_rule(self._copied_without_buffer(), float(self.own_share), float(self.ridge))
        found = scores(rule, state.buffer[known])[:, present] / 2
        own = np.searchsorted(present, state.buffer_codes[known])
        before, certainty = state.calibration

        def cost(t: float) -> float:
            return _log_loss(found / np.exp(t), own) + 0.5 * (certainty + 1.0) * (t - before) ** 2

        best = min(before + np.linspace(-2.0, 2.0, 81), key=cost)
        best = min(best + np.linspace(-0.05, 0.05, 21), key=cost)
        p = softmax(-found / np.exp(best))
        spread = (p * (found - (p * found).sum(axis=1, keepdims=True)) ** 2).sum() / np.exp(2 * best)
        state.calibration[:] = best, _FADES * certainty + spread

    def _score(self, rows: FloatArray) -> FloatArray:
        settings = float(self.own_share), float(self.ridge)
        kept = self._made[0] if self._made else None
        with on_one_thread():
            if kept is None or kept[0] != settings:
                self._check_settings()
                kept = settings, make_rule(self._copied_without_buffer(taken_in=True), *settings)
                self._made[:] = [kept]  # one assignment, because other threads may read meanwhile
            return scores(kept[1], rows)

    def _copied_without_buffer(self, taken_in: bool = False) -> Statistics:
        state = self._state
        copy = state._replace(
            counts=state.counts.copy(),
            classes=state.classes.copy(),
            scatter=state.scatter.copy(),
            counters=state.counters.copy(),
        )
        if taken_in:
            take_in_buffer(copy)
        return copy


def _log_loss(found: FloatArray, own: IntArray) -> float:
    """Return the log loss of the rows, summed; ``found`` are half the scores divided by the temperature."""
    least = found.min(axis=1)
    there = found[np.arange(len(found)), own]
    return float((there - least + np.log(np.exp(least[:, np.newaxis] - found).sum(axis=1))).sum())


def softmax(values: FloatArray) -> FloatArray:
    """Return the softmax of every row."""
    p = np.exp(values - values.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
