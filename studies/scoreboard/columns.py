"""Kinds of columns: constants, counts, codes, gaps, bursts, failing sensors, levels far from zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from studies.segments import score_recording

from .table import Figure, Row
from .trial import Trial

ONSET, RETURN, ROWS = 2000, 3000, 4000
QUIET_ROWS = 20_000
COLUMN = 2
"""Index of the column that changes."""
UNITS = 10.0 ** np.linspace(-3, 3, 8)

Column = Callable[[Any, int, bool], Any]
"""Generates a column from a random generator, a number of rows, and True if it changes from ONSET to RETURN."""


def level(rows: int, changes: bool, usual: float, other: float) -> Any:
    """Return the level of every row: ``other`` while the change lasts."""
    return np.where(_during(rows) & changes, other, usual)


def _during(rows: int) -> Any:
    at = np.arange(rows)
    return (at >= ONSET) & (at < RETURN)


def constant(rng: Any, rows: int, changes: bool) -> Any:
    """Return a constant column: 7, or 7.01 during the change."""
    return level(rows, changes, 7.0, 7.01)


def counts(mean: float) -> Column:
    """Return Poisson counts whose mean doubles."""
    return lambda rng, rows, changes: rng.poisson(level(rows, changes, mean, 2 * mean)).astype(float)


def codes(rng: Any, rows: int, changes: bool) -> Any:
    """Return categories 0 to 5; the first two, half of all rows before the change, become rare."""
    usual, other = [0.3, 0.2, 0.15, 0.15, 0.1, 0.1], [0.05, 0.05, 0.25, 0.25, 0.2, 0.2]
    drawn = [rng.choice(6, rows, p=p) for p in (usual, other)]
    return np.where(_during(rows) & changes, drawn[1], drawn[0]).astype(float)


def shifted(rng: Any, rows: int, changes: bool) -> Any:
    """Return normal noise whose mean rises by two standard deviations."""
    return rng.normal(size=rows) + level(rows, changes, 5.0, 7.0)


def gappy(share: float) -> Column:
    """Return the column of :func:`shifted` with readings missing at random."""

    def draw(rng: Any, rows: int, changes: bool) -> Any:
        return np.where(rng.random(rows) < share, np.nan, shifted(rng, rows, changes))

    return draw


def every(n: int) -> Column:
    """Return the column of :func:`shifted`, read in every nth row."""
    return lambda rng, rows, changes: np.where(np.arange(rows) % n, np.nan, shifted(rng, rows, changes))


def outages(rng: Any, rows: int, changes: bool) -> Any:
    """Return the column of :func:`shifted` with gaps of about 15 rows, one in 150 rows."""
    x = shifted(rng, rows, changes)
    for start in np.cumsum(rng.geometric(1 / 150, rows // 150)):
        x[start : start + rng.geometric(1 / 15)] = np.nan
    return x


def dies(rng: Any, rows: int, changes: bool) -> Any:
    """Return a column without readings during the change."""
    return np.where(_during(rows) & changes, np.nan, shifted(rng, rows, False))


def saturates(most: float) -> Column:
    """Return readings clipped at ``most`` standard deviations above the mean."""

    def draw(rng: Any, rows: int, changes: bool) -> Any:
        x = shifted(rng, rows, False)
        return np.where(_during(rows) & changes, np.minimum(x, 5.0 + most), x)

    return draw


def sticks(rng: Any, rows: int, changes: bool) -> Any:
    """Return a column that repeats its last reading during the change."""
    x = shifted(rng, rows, False)
    return np.where(_during(rows) & changes, x[min(ONSET, rows - 1)], x)


def bursts(rng: Any, rows: int, changes: bool) -> Any:
    """Return a slow process read in bursts of 50 rows, one second apart, one hour between bursts; four deviations."""
    waits = np.where(np.arange(rows) % 50, 1.0, 3600.0)
    kept, x = np.exp(-waits / 30.0), np.zeros(rows)
    noise = rng.normal(size=rows)
    for t in range(1, rows):
        x[t] = kept[t] * x[t - 1] + np.sqrt(1 - kept[t] ** 2) * noise[t]
    return x + level(rows, changes, 5.0, 9.0)


def number(rng: Any, rows: int, changes: bool) -> Any:
    """Return the row number, like a time stamp taken for a reading; another column changes."""
    return np.arange(rows, dtype=float)


def far(mean: float, deviation: float, shift: float) -> Column:
    """Return noise whose mean is large relative to its deviation and moves by ``shift`` deviations."""

    def draw(rng: Any, rows: int, changes: bool) -> Any:
        return mean + deviation * (rng.normal(size=rows) + level(rows, changes, 0.0, shift))

    return draw


KINDS: dict[str, Column] = {
    "a constant moves by a thousandth": constant,
    "counts, 2 on average, double": counts(2.0),
    "counts, 0.1 on average, double": counts(0.1),
    "codes 0 to 5: their shares change": codes,
    "two deviations, all readings": shifted,
    "two deviations, 10 % of readings missing": gappy(0.1),
    "two deviations, 50 % of readings missing": gappy(0.5),
    "two deviations, read every tenth row": every(10),
    "two deviations, outages of 15 rows": outages,
    "a column dies (lost, and back)": dies,
    "a sensor saturates half a deviation above its mean": saturates(0.5),
    "a sensor saturates at its mean": saturates(0.0),
    "a sensor saturates half a deviation below its mean": saturates(-0.5),
    "a sensor sticks": sticks,
    "four deviations, rows in bursts": bursts,
    "a row number; another column by two deviations": number,
    "level 101,325, deviation 1e-4: 50 deviations": far(101_325.0, 1e-4, 50),
    "level 1e9, deviation 1e-3: 100,000 deviations": far(1e9, 1e-3, 1e5),
    "unit 1e-150: 4 deviations": far(5e-150, 1e-150, 4),
}


def stream(kind: str, seed: int, rows: int, changes: bool) -> Any:
    """Generate eight columns over six decades, one of them of this kind."""
    rng = np.random.default_rng(seed)
    X = UNITS * (5.0 + rng.normal(size=(rows, 8)))
    unit = 1.0 if "unit" in kind or "level" in kind else UNITS[COLUMN]
    X[:, COLUMN] = unit * KINDS[kind](rng, rows, changes)
    if KINDS[kind] is number:
        X[:, 5] = UNITS[5] * shifted(rng, rows, changes)
    return X


def columns(test: Trial) -> list[Row]:
    """Score one kind of column at a time, and count the events in streams of that kind without a change."""
    rows, seeds = [], test.seeds(test.size.planted_seeds)
    for kind in KINDS:
        count = dict.fromkeys(("found", "returns", "false or repeated", "lost", "back", "reported blind", "quiet"), 0)
        for seed in seeds:
            memory = test.candidate.learn(stream(kind, seed, ROWS, True))
            events = memory.events_
            score = score_recording([event.step for event in events if event.changes_block], ONSET, RETURN)
            count["found"] += score.onset
            count["returns"] += bool(score.returned)
            count["false or repeated"] += score.false + score.repeated
            count["lost"] += sum(event.kind == "column_lost" and event.column == COLUMN for event in events)
            count["back"] += sum(event.kind == "column_back" and event.column == COLUMN for event in events)
            count["reported blind"] += len(getattr(memory, "blind_", ())) > 0
            count["quiet"] += len(test.candidate.learn(stream(kind, seed, QUIET_ROWS, False)).events_)
        figures = {
            name: Figure(value, len(seeds) if name in ("found", "returns") else None) for name, value in count.items()
        }
        figures[f"events in {QUIET_ROWS * len(seeds):,} rows without a change"] = figures.pop("quiet")
        rows.append(Row(f"column: {kind}", {k: f for k, f in figures.items() if f.value or k in ("found", "returns")}))
    return rows
