"""Columns as they come: what the memory makes of constants, counts, codes, gaps, bursts and sensors that fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import AdaptiveCCM
from ccmem.metrics import score_recording

SEEDS = 10
ONSET, RETURN, ROWS = 2000, 3000, 4000
QUIET_ROWS = 20_000
UNITS = 10.0 ** np.linspace(-3, 3, 8)

Column = Callable[[Any, int, bool], Any]
"""Draws a column of so many rows; whether it changes from ONSET to RETURN."""


def levels(usual: float, other: float) -> Callable[[int, bool], Any]:
    """A level that changes, if it does."""
    return lambda rows, changes: np.where(_during(rows) & changes, other, usual)


def _during(rows: int) -> Any:
    at = np.arange(rows)
    return (at >= ONSET) & (at < RETURN)


def constant(rng: Any, rows: int, changes: bool) -> Any:
    """7, or 7.01."""
    return levels(7.0, 7.01)(rows, changes)


def counts(mean: float) -> Column:
    """Poisson counts, twice as many after the change."""
    return lambda rng, rows, changes: rng.poisson(levels(mean, 2 * mean)(rows, changes)).astype(float)


def codes(rng: Any, rows: int, changes: bool) -> Any:
    """Categories 0 to 5; after the change the first two, half of all before, are rare."""
    usual, other = [0.3, 0.2, 0.15, 0.15, 0.1, 0.1], [0.05, 0.05, 0.25, 0.25, 0.2, 0.2]
    drawn = [rng.choice(6, rows, p=p) for p in (usual, other)]
    return np.where(_during(rows) & changes, drawn[1], drawn[0]).astype(float)


def shifted(rng: Any, rows: int, changes: bool) -> Any:
    """Noise, two deviations higher after the change."""
    return rng.normal(size=rows) + levels(5.0, 7.0)(rows, changes)


def gappy(share: float) -> Column:
    """The same with readings missing at random."""

    def draw(rng: Any, rows: int, changes: bool) -> Any:
        return np.where(rng.random(rows) < share, np.nan, shifted(rng, rows, changes))

    return draw


def every(n: int) -> Column:
    """The same, read in every nth row."""
    return lambda rng, rows, changes: np.where(np.arange(rows) % n, np.nan, shifted(rng, rows, changes))


def outages(rng: Any, rows: int, changes: bool) -> Any:
    """The same with gaps of about 15 rows, one every 150."""
    x = shifted(rng, rows, changes)
    for start in np.cumsum(rng.geometric(1 / 150, rows // 150)):
        x[start : start + rng.geometric(1 / 15)] = np.nan
    return x


def dies(rng: Any, rows: int, changes: bool) -> Any:
    """No reading between the two."""
    return np.where(_during(rows) & changes, np.nan, shifted(rng, rows, False))


def saturates(most: float) -> Column:
    """Nothing above so many deviations over its mean is told."""

    def draw(rng: Any, rows: int, changes: bool) -> Any:
        x = shifted(rng, rows, False)
        return np.where(_during(rows) & changes, np.minimum(x, 5.0 + most), x)

    return draw


def sticks(rng: Any, rows: int, changes: bool) -> Any:
    """The last value, over and over."""
    x = shifted(rng, rows, False)
    return np.where(_during(rows) & changes, x[min(ONSET, rows - 1)], x)


def bursts(rng: Any, rows: int, changes: bool) -> Any:
    """A slow process read in bursts of 50 rows, a second apart, with an hour between bursts."""
    waits = np.where(np.arange(rows) % 50, 1.0, 3600.0)
    kept, x = np.exp(-waits / 30.0), np.zeros(rows)
    noise = rng.normal(size=rows)
    for t in range(1, rows):
        x[t] = kept[t] * x[t - 1] + np.sqrt(1 - kept[t] ** 2) * noise[t]
    return x + levels(5.0, 9.0)(rows, changes)


def number(rng: Any, rows: int, changes: bool) -> Any:
    """The number of the row: a time that was taken for a reading."""
    return np.arange(rows, dtype=float)


KINDS: dict[str, Column] = {
    "a constant moves by a thousandth": constant,
    "counts, 2 on average, double": counts(2.0),
    "counts, 0.1 on average, double": counts(0.1),
    "codes 0 to 5: their shares change": codes,
    "two deviations, all readings there": shifted,
    "two deviations, 10 % of readings missing": gappy(0.1),
    "two deviations, 50 % of readings missing": gappy(0.5),
    "two deviations, read every tenth row": every(10),
    "two deviations, outages of 15 rows": outages,
    "a column dies (told as lost, and back)": dies,
    "a sensor saturates half a deviation above its mean": saturates(0.5),
    "a sensor saturates at its mean": saturates(0.0),
    "a sensor saturates half a deviation below its mean": saturates(-0.5),
    "a sensor sticks": sticks,
    "four deviations, rows in bursts": bursts,
    "a row number; another column by two deviations": number,
}


def stream(kind: str, seed: int, rows: int, changes: bool) -> Any:
    """Eight columns over six decades, the third of which is of this kind."""
    rng = np.random.default_rng(seed)
    X = 5.0 + rng.normal(size=(rows, 8))
    X[:, 2] = KINDS[kind](rng, rows, changes)
    if KINDS[kind] is number:
        X[:, 5] = shifted(rng, rows, changes)
    return X * UNITS


def columns(folder: Path, names: list[str] | None = None) -> list[dict[str, Any]]:
    """One kind of column at a time: whether its change is noticed, and how many alarms there are without any."""
    table = []
    for kind in KINDS:
        row: dict[str, Any] = {"the third of eight columns, from row 2,000 to 3,000": kind, "of": SEEDS}
        row |= dict.fromkeys(("noticed", "return noticed", "false or repeated", "lost", "back"), 0)
        quiet = 0
        for seed in range(SEEDS):
            events = AdaptiveCCM().partial_fit(stream(kind, seed, ROWS, True)).events_
            score = score_recording([event.step for event in events if event.changes_block], ONSET, RETURN)
            row["noticed"] += score.onset
            row["return noticed"] += bool(score.returned)
            row["false or repeated"] += score.false + score.repeated
            row["lost"] += sum(event.kind == "column_lost" and event.column == 2 for event in events)
            row["back"] += sum(event.kind == "column_back" and event.column == 2 for event in events)
            quiet += len(AdaptiveCCM().partial_fit(stream(kind, seed, QUIET_ROWS, False)).events_)
        row["events in 200,000 rows without a change"] = quiet
        table.append(row)
    return table
