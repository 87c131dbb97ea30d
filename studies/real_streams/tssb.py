"""The Time Series Segmentation Benchmark: read as published, or cut from the UCR archive by the same recipe.

The published files (``NAME.txt`` in a folder) are taken where they are. Where there are only the archive's training
sets (``NAME_TRAIN.tsv``, ``NAME_TRAIN.ts``, or ``NAME.npz`` with ``X_train`` and ``y_train``) the series is made again:
samples of a class are z-scored and laid end to end, classes follow each other in a given order, and rows are averaged
in groups. A series whose change points do not come out as published is refused.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TABLE = Path(__file__).with_name("tssb.csv")
N_DEVELOPMENT = 37
PUBLISHED = ("BOCD", "PELT", "FLOSS", "ClaSP")
_BORDERS = {1: [0.4, 0.6], 2: [0.25, 0.5, 0.75]}


class Series(NamedTuple):
    name: str
    values: Any
    changes: tuple[int, ...]
    labels: tuple[int, ...]
    """State of each segment: a number that comes back when the state does."""
    window: int
    """What the authors of the benchmark think a good window is; nothing here uses it but the tables."""
    development: bool
    published: dict[str, float]
    """Covering of others, as published with the benchmark."""


def load(folders: list[Path]) -> list[Series]:
    """Every series that can be found or made, by name; the first 37 names of the 75 are for development."""
    with TABLE.open() as file:
        rows = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter=";"))
    early = set(sorted(row["name"] for row in rows)[:N_DEVELOPMENT])
    found = []
    for row in sorted(rows, key=lambda row: row["name"]):
        changes = tuple(int(c) for c in row["changes"].split())
        labels = tuple(int(label) for label in row["labels"].split())
        cuts, rate = int(row["cuts"]), int(row["rate"])
        made = (_find(folder, row["name"], labels, cuts, rate, changes) for folder in folders)
        values = next((values for values in made if values is not None), None)
        if values is not None:
            published = {name: float(row[name]) for name in PUBLISHED}
            states = tuple(label // (cuts + 1) for label in labels)
            found.append(
                Series(row["name"], values, changes, states, int(row["window"]), row["name"] in early, published)
            )
    return found


def _find(folder: Path, name: str, labels: tuple[int, ...], cuts: int, rate: int, changes: tuple[int, ...]) -> Any:
    if (file := folder / f"{name}.txt").exists():
        return np.loadtxt(file)
    samples = _samples(folder, name)
    if samples is None:
        return None
    values, made = cut(*samples, labels, cuts, rate)
    if made != changes:
        raise ValueError(f"{name} made from {folder} changes at {made}, as published at {changes}")
    return values


def _samples(folder: Path, name: str) -> tuple[Any, Any] | None:
    """Training samples of the archive and their classes."""
    if (file := folder / f"{name}_TRAIN.tsv").exists():
        table = np.loadtxt(file)
        return [row[~np.isnan(row)] for row in table[:, 1:]], table[:, 0]
    if (file := folder / f"{name}_TRAIN.ts").exists():
        lines = [line for line in file.read_text().splitlines() if line and line[0] not in "#@"]
        return (
            [np.array(line.split(":")[0].split(","), float) for line in lines],
            np.array([float(line.split(":")[1]) for line in lines]),
        )
    if (file := folder / f"{name}.npz").exists():
        with np.load(file) as arrays:
            return list(arrays["X_train"][..., 0]), arrays["y_train"].astype(float)
    return None


def cut(samples: Any, classes: Any, labels: tuple[int, ...], cuts: int, rate: int) -> tuple[Any, tuple[int, ...]]:
    """One series and its change points: see the module."""
    segments: list[Any] = []
    for label in np.unique(classes):
        whole = np.concatenate([(x - x.mean()) / x.std() for x, c in zip(samples, classes, strict=True) if c == label])
        borders = [0, len(whole)]
        if cuts:
            rng = np.random.RandomState(len(whole))  # as the benchmark does
            inner = np.sort(rng.choice(_BORDERS[cuts], cuts, replace=False)) * len(whole)
            borders[1:1] = inner.astype(int).tolist()
        segments += [whole[a:b] for a, b in itertools.pairwise(borders)]
    chosen = [segments[label] for label in labels]
    means = [x[: len(x) // rate * rate].reshape(-1, rate).mean(axis=1) for x in chosen]
    return np.concatenate(means), tuple(np.cumsum([len(x) for x in means])[:-1].tolist())
