"""Repetitions of the parts, and the blind clock beside every labelled stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .candidates import Candidate, Found, blind
from .table import Figure, Row

WARM_UP = 400
"""Number of first rows of SKAB recordings and synthetic plants in which alarms do not count."""


class Size(NamedTuple):
    """Repetitions of every part; recordings start at several offsets, because the position of batches is arbitrary."""

    starts: tuple[int, ...] = (0, 4, 8, 12, 16)
    people: int | None = None
    orders: int = 20
    control_seeds: int = 6
    plants: int = 100
    slow_seeds: int = 20
    planted_seeds: int = 10
    drift_seeds: int = 8
    trials: int = 10
    long_trials: int = 3
    first_seed: int = 0
    control_rows: int = 100_000


FULL = Size()
QUICK = Size((0, 8), 2, 4, 1, 40, 4, 2, 2, 2, 1)


class Trial(NamedTuple):
    """Input of a part: the candidate, the data folder, the repetitions."""

    candidate: Candidate
    folder: Path
    size: Size

    @property
    def seeds(self) -> Callable[[int], range]:
        """Function that returns the seeds of a part, given their number."""
        return lambda n: range(self.size.first_seed, self.size.first_seed + n)


def with_blind(runs: list[Found], score: Callable[[list[Found]], Row]) -> list[Row]:
    """Return the row of a candidate, and the row of the blind clock with an equal number of alarms and no targets."""
    row, clock = score(runs), score([blind(found) for found in runs])
    figures = {name: Figure(figure.value, figure.of) for name, figure in clock.figures.items()}
    return [row, Row(f"{row.benchmark}: blind clock", figures, Figure(clock.ari.value))]


def mean(values: list[Any]) -> float:
    """Return the mean of numbers or booleans; NaN if there are none."""
    return float(np.mean(values)) if values else float("nan")
