"""Timing of several subjects in turn: rounds, medians, and ratios taken within a round.

The clock is the processor time of this process, on one core: what other processes do to the wall clock on a shared
machine is not ccmem's doing. Subjects take turns, so that a change of clock speed hits all of them alike.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np


class Subject(NamedTuple):
    """A subject to time: ``prepare()`` returns a fresh ``run()`` that handles ``samples`` samples."""

    name: str
    samples: int
    prepare: Callable[[], Callable[[], Any]]


def take_turns(subjects: Iterable[Subject], rounds: int) -> dict[str, np.ndarray]:
    """Return the seconds per sample of every subject, one number per round, after one warm-up run."""
    subjects = list(subjects)
    for subject in subjects:
        subject.prepare()()
    seconds: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for subject in subjects:
                run = subject.prepare()
                begin = time.process_time()
                run()
                seconds[subject.name].append((time.process_time() - begin) / subject.samples)
    finally:
        gc.enable()
    return {name: np.array(values) for name, values in seconds.items()}


def spread(values: np.ndarray) -> dict[str, float]:
    """Return the median and the range of the middle 80 percent."""
    low, middle, high = np.percentile(values, [10, 50, 90])
    return {"median": float(middle), "low": float(low), "high": float(high)}


def ratio(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Return the time of ``one`` relative to ``other``, round by round (of medians if the numbers of rounds differ)."""
    return spread(one / other if len(one) == len(other) else one / np.median(other))
