"""Recordings for the study of shapes: activity, segmented series and synthetic signals."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

N_ACTIVITIES = 6
"""Walking, stairs up, stairs down, sitting, standing, lying; higher numbers are transitions."""


class Recording(NamedTuple):
    person: int
    X: Any
    activity: Any
    """Activity of each row, from 1; 0 in rows without an activity."""


def waist(folder: Path) -> list[Recording]:
    """Return recordings of ten people, 50 Hz, six channels, two recordings per person."""
    found = []
    for path in sorted((folder / "activity" / "hapt").glob("*.csv.gz")):
        table = _table(path)
        activity = table[:, -1].astype(int)
        activity[activity > N_ACTIVITIES] = 0
        found.append(Recording(int(path.name.split("user")[1][:2]), table[:, :-1], activity))
    return found


def chest(folder: Path) -> list[Recording]:
    """Return recordings of five people, 52 Hz, three channels."""
    tables = [(path, _table(path)) for path in sorted((folder / "activity" / "chest").glob("*.csv.gz"))]
    return [Recording(int(path.name.split(".")[0]), table[:, :-1], table[:, -1].astype(int)) for path, table in tables]


class Series(NamedTuple):
    name: str
    X: Any
    changes: list[int]


def segmented(folder: Path, collection: str) -> list[Series]:
    """Return the series of ``tssb`` or ``utsa`` with their change points."""
    found = []
    for line in (folder / "segments" / collection / "desc.txt").read_text().split("\n"):
        name, *numbers = line.strip().split(",")
        if name:
            with gzip.open(folder / "segments" / collection / f"{name}.txt.gz", "rt") as file:
                found.append(Series(name, np.loadtxt(file), [int(n) for n in numbers[1:] if n.strip()]))
    return found


def _table(path: Path) -> Any:
    with gzip.open(path, "rt") as file:
        return np.loadtxt(file, delimiter=",", skiprows=1)


# Synthetic signals ---------------------------------------------------------------------------------------------------


def wave(kind: str, n: int, period: float, rng: np.random.Generator) -> Any:
    """Return a wave of unit variance at a random phase, with noise of a tenth of that variance."""
    turns = np.arange(n) / period + rng.random()
    shape = {
        "sine": np.sqrt(2) * np.sin(2 * np.pi * turns),
        "saw": np.sqrt(12) * (turns % 1 - 0.5),
        "square": np.sign(np.sin(2 * np.pi * turns)),
    }[kind]
    return shape + np.sqrt(0.1) * rng.normal(size=n)


def planted(n: int, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield signals that change in their middle, only in the property that their name states."""
    half = n // 2
    for kind in ("saw", "square"):
        yield f"waveform: sine to {kind}", np.r_[wave("sine", half, 30, rng), wave(kind, half, 30, rng)][:, None]
    yield "period: 30 to 36 rows", np.r_[wave("saw", half, 30, rng), wave("saw", half, 36, rng)][:, None]
    noise = rng.normal(size=(n, 2))
    noise[half:, 1] = 0.8 * noise[half:, 0] + 0.6 * noise[half:, 1]
    yield "correlation: 0 to 0.8", noise


def controls(n: int, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield signals without a change."""
    from scipy.signal import lfilter

    yield "iid", rng.normal(size=(n, 1))
    yield "AR .95", lfilter([1], [1, -0.95], rng.normal(size=n))[:, None]
    yield "random walk", np.cumsum(rng.normal(size=n))[:, None]
    yield "noisy sine", wave("sine", n, 30, rng)[:, None]
    yield "noisy saw", wave("saw", n, 30, rng)[:, None]
