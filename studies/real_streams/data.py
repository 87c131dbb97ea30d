"""Real recordings and the controls beside them. SKAB and Tennessee Eastman are read from a folder, never kept here."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

WARM_UP = 400
"""Rows at the start of a recording of SKAB in which alarms count for nothing."""
FAULT_ROW = 160
"""Row of a test run of Tennessee Eastman at which the fault begins."""
UNDETECTABLE = (3, 9, 15)
"""Faults of Tennessee Eastman that the literature calls undetectable; they are told, not counted."""


class Recording(NamedTuple):
    name: str
    X: Any
    onset: int
    return_at: int | None


# SKAB ----------------------------------------------------------------------------------------------------------------


def skab(folder: Path) -> list[Recording]:
    """Recordings with a fault: normal, faulty from ``onset``, normal again from ``return_at``."""
    found = []
    files = sorted((f for f in folder.rglob("*.csv*") if "anomaly-free" not in f.name), key=_in_numbers)
    for file in files:
        table = _semicolons(file)
        faulty, marks = np.flatnonzero(table[:, 8] == 1), np.flatnonzero(table[:, 9] == 1)
        back = None
        if len(marks) >= 3:
            back = int(marks[2])
        elif len(marks) == 2 and marks[1] > 700:
            back = int(marks[1])
        found.append(Recording(file.name.split(".")[0], np.ascontiguousarray(table[:, :8]), int(faulty[0]), back))
    return found


def skab_normal(folder: Path) -> list[Any]:
    """The one recording without a fault, in pieces as long as the others."""
    table = _semicolons(next(folder.rglob("anomaly-free.csv*")))[:, :8]
    return [np.ascontiguousarray(table[at : at + 1150]) for at in range(0, len(table) - 1149, 1150)]


def _semicolons(file: Path) -> Any:
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        next(lines)
        return np.array([[float(value) for value in line.split(";")[1:]] for line in lines])


def _in_numbers(file: Path) -> tuple[str, int]:
    name, _, number = file.name.split(".")[0].partition("-")
    return name, int(number) if number.isdigit() else 0


# Tennessee Eastman ---------------------------------------------------------------------------------------------------


def tep(folder: Path) -> list[Recording]:
    """Test runs with a fault that stays."""
    files = sorted(file for file in folder.glob("d*_te.dat*") if not file.name.startswith("d00"))
    return [Recording(file.name[:3], _numbers(file), FAULT_ROW, None) for file in files]


def tep_normal(folder: Path) -> list[Any]:
    """The two runs without a fault; the training run lies on its side in the file."""
    return [_numbers(next(folder.glob("d00.dat*"))).T.copy(), _numbers(next(folder.glob("d00_te.dat*")))]


def _numbers(file: Path) -> Any:
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        return np.loadtxt(lines)


# Controls: nothing changes -------------------------------------------------------------------------------------------


def controls(n_rows: int, n_columns: int = 8, seed: int = 0) -> Iterator[tuple[str, Any]]:
    """Streams in which nothing happens, each in its own way; a random walk is the one that never settles."""
    rng = np.random.default_rng(seed)
    shape, decades = (n_rows, n_columns), 10.0 ** np.linspace(-3, 3, n_columns)
    yield "iid", rng.normal(size=shape)
    yield "t3", rng.standard_t(3, size=shape)
    yield "exponential", rng.exponential(size=shape)
    yield "AR .95", autoregressive(0.95, rng.normal(size=shape))
    yield "AR .99", autoregressive(0.99, rng.normal(size=shape))
    yield "random walk", np.cumsum(rng.normal(size=shape), axis=0)
    periods = np.geomspace(50, 7000, n_columns)
    angles = 2 * np.pi * np.arange(n_rows)[:, None] / periods + np.arange(n_columns)
    yield "periodic", np.sin(angles) + 0.1 * rng.normal(size=shape)
    yield "six decades", decades * (5 + rng.normal(size=shape))


def autoregressive(weight: float, noise: Any) -> Any:
    """x_t = weight x_(t-1) + noise_t."""
    rows, last = np.empty_like(noise), np.zeros(noise.shape[1])
    for t, row in enumerate(noise):
        last = rows[t] = weight * last + row
    return rows


# Planted changes: rows 2,000 to 3,000 of 4,000 differ ----------------------------------------------------------------


def planted(seed: int) -> Iterator[tuple[str, Any]]:
    """Each kind of change by itself, in noise that is otherwise the same."""
    rng = np.random.default_rng(seed)
    changed, time = slice(2000, 3000), 2 * np.pi * np.arange(4000) / 40

    def noise(n_columns: int = 8) -> Any:
        return rng.normal(size=(4000, n_columns))

    X = noise(50)
    X[changed, 7] += 2
    yield "one column of 50, by two deviations", X
    X = noise()
    X[changed, 3] += 2
    decades = 10.0 ** np.linspace(-3, 3, 8)
    yield "one column of 8 over six decades, by two deviations", decades * (5 + X)
    X = noise()
    X[changed] *= 1.5
    yield "every spread times 1.5", X
    X = noise(2)
    X[changed, 1] = 0.9 * X[changed, 0] + np.sqrt(1 - 0.81) * X[changed, 1]
    yield "two columns become correlated, .9", X
    X = noise()
    X[:, 0] += 4 * np.clip((np.arange(4000) - 2000) / 1000, 0, 1)
    yield "one column drifts by four deviations in 1,000 rows, and stays", X
    for rows in (20, 60):
        X = noise()
        X[2000 : 2000 + rows, 0] += 4
        yield f"one column by four deviations, for {rows} rows", X
    square = np.sqrt(0.5) * np.sign(np.sin(time))
    for how, wave in (
        ("a sine becomes a square wave of its spread", square),
        ("a period of 40 becomes 32", np.sin(1.25 * time)),
    ):
        x = np.sin(time) + 0.1 * rng.normal(size=4000)
        x[changed] += wave[changed] - np.sin(time)[changed]
        yield how, x[:, np.newaxis]
    for n_columns in (8, 50):
        X = noise(n_columns)
        X[changed, 1] = 0.9 * X[changed, 0] + np.sqrt(1 - 0.81) * X[changed, 1]
        yield f"two columns of {n_columns} become correlated, .9", X


def slow_return(seed: int, weight: float, deviations: float, over: int) -> tuple[Any, int, int]:
    """Four autoregressive columns of which one moves at row 1,500 and is back ``over`` rows from row 2,500 on."""
    onset, return_at = 1500, 2500
    noise = np.sqrt(1 - weight**2) * np.random.default_rng(seed).normal(size=(4000, 4))
    X = autoregressive(weight, noise)
    X[onset:return_at, 1] += deviations
    X[return_at : return_at + over, 1] += np.linspace(deviations, 0, over)
    return X, onset, return_at


# Streams of labelled samples from scikit-learn and River -------------------------------------------------------------


class TaskStream(NamedTuple):
    name: str
    X: Any
    changes: list[int]
    tasks: list[int]


def labelled(seed: int = 0) -> list[TaskStream]:
    """Classes of sets that come with scikit-learn and River, visited in turn, and once more."""
    from river.datasets import ImageSegments
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine

    segments = [(list(x.values()), y) for x, y in ImageSegments()]
    names = sorted({y for _, y in segments})
    sets = {
        "digits, pairs": (load_digits().data, load_digits().target // 2),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "image segments": (np.array([x for x, _ in segments], float), np.array([names.index(y) for _, y in segments])),
    }
    return [_in_visits(name, X, y, np.random.default_rng(seed)) for name, (X, y) in sets.items()]


def _in_visits(name: str, X: Any, y: Any, rng: np.random.Generator) -> TaskStream:
    halves = [np.array_split(rng.permutation(np.flatnonzero(y == task)), 2) for task in np.unique(y)]
    visits = [half[turn] for turn in (0, 1) for half in halves]
    changes = np.cumsum([len(visit) for visit in visits])[:-1].tolist()
    rows = np.concatenate(visits)
    return TaskStream(name, np.ascontiguousarray(X[rows], float), changes, [*range(len(halves))] * 2)
