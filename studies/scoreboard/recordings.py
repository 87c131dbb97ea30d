"""Recordings of machines, people and segmented series, read from a data folder outside the project."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FAULT_ROW = 160
"""Row of a Tennessee Eastman test run at which the fault begins."""


class MissingData(Exception):  # noqa: N818 - not an error: the part is skipped
    """Exception for a folder without the recordings of a part."""


class Recording(NamedTuple):
    """Recording with a fault: normal, faulty from ``onset``, normal again from ``return_at`` (None: never)."""

    name: str
    X: Any
    onset: int
    return_at: int | None

    @property
    def truth(self) -> Any:
        """Regime of every row: 1 while the fault lasts, else 0."""
        at = np.arange(len(self.X))
        return ((at >= self.onset) & (at < (self.return_at or len(self.X)))).astype(int)


class Segment(NamedTuple):
    """Rows ``start`` to ``end``, all of one regime."""

    start: int
    end: int
    label: int


class Activity(NamedTuple):
    """Recording of a person; ``truth`` is -1 in rows without a labelled activity."""

    name: str
    X: Any
    truth: Any

    @property
    def segments(self) -> list[Segment]:
        """Runs of rows with equal activity; unlabelled rows inside a run of one activity are ignored."""
        known = np.flatnonzero(self.truth >= 0)
        labels = self.truth[known]
        borders = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(known)]
        return [Segment(int(known[a]), int(known[b - 1]) + 1, int(labels[a])) for a, b in itertools.pairwise(borders)]


class Series(NamedTuple):
    """Segmented series with its change points."""

    name: str
    X: Any
    changes: list[int]


def files(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a pattern in numerical order."""
    found = sorted(folder.rglob(pattern), key=_in_numbers)
    if not found:
        raise MissingData(f"no {pattern} in {folder}")
    return found


def _in_numbers(file: Path) -> tuple[str, int]:
    name, _, number = file.name.split(".")[0].partition("-")
    return name, int(number) if number.isdigit() else 0


def _table(file: Path, delimiter: str | None = None, skip: int = 0, first: int = 0) -> Any:
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        for _ in range(skip):
            next(lines)
        if first:  # the first column holds times
            return np.array([[float(value) for value in line.split(delimiter)[first:]] for line in lines])
        return np.loadtxt(lines, delimiter=delimiter)


def skab(folder: Path) -> list[Recording]:
    """Read the SKAB recordings with a fault."""
    found = []
    for file in files(folder / "skab", "*.csv*"):
        if "anomaly-free" in file.name:
            continue
        table = _table(file, ";", skip=1, first=1)
        faulty, marks = np.flatnonzero(table[:, 8] == 1), np.flatnonzero(table[:, 9] == 1)
        back = None
        if len(marks) >= 3:
            back = int(marks[2])
        elif len(marks) == 2 and marks[1] > 700:
            back = int(marks[1])
        found.append(Recording(file.name.split(".")[0], np.ascontiguousarray(table[:, :8]), int(faulty[0]), back))
    return found


def skab_normal(folder: Path) -> list[Any]:
    """Read the SKAB recording without a fault, cut into pieces as long as the other recordings."""
    table = _table(files(folder / "skab", "anomaly-free.csv*")[0], ";", skip=1, first=1)[:, :8]
    return [np.ascontiguousarray(table[at : at + 1150]) for at in range(0, len(table) - 1149, 1150)]


def tep(folder: Path) -> list[Recording]:
    """Read the Tennessee Eastman test runs; their faults last until the end."""
    runs = [file for file in files(folder / "tep", "d*_te.dat*") if not file.name.startswith("d00")]
    return [Recording(file.name[:3], _table(file), FAULT_ROW, None) for file in runs]


def tep_normal(folder: Path) -> list[Any]:
    """Read the two runs without a fault; the training run is stored with one row per variable."""
    training, test = (files(folder / "tep", name)[0] for name in ("d00.dat*", "d00_te.dat*"))
    return [_table(training).T.copy(), _table(test)]


def activity(folder: Path, which: str) -> list[Activity]:
    """Read a folder of activity recordings; postures and gaits are regimes, transitions (7 to 12) are not."""
    found = []
    most = 6 if which == "hapt" else 7
    for file in files(folder / "activity" / which, "*.csv*"):
        table = _table(file, ",", skip=1)
        labels = table[:, -1].astype(int)
        truth = np.where((labels >= 1) & (labels <= most), labels, -1)
        found.append(Activity(file.name.split(".")[0], np.ascontiguousarray(table[:, :-1]), truth))
    return found


def segmented(folder: Path, which: str) -> list[Series]:
    """Read a folder of segmented series; ``desc.txt`` has name, window and change points of each."""
    found = []
    for line in files(folder / "segments" / which, "desc.txt")[0].read_text().split():
        name, _, *changes = line.split(",")
        values = _table(files(folder / "segments" / which, f"{name}.txt*")[0])
        found.append(Series(name, values, [int(change) for change in changes if change]))
    return found
