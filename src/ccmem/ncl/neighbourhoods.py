"""Neighbourhoods: units that move at a row, and their strengths. A strength below the data's resolution counts as 0.

Each function writes the units that move to ``settings.units``, their strengths to ``settings.strengths``, and returns
their number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.parameters import choice, integer, number
from ccmem.core.state import SEEN
from ccmem.core.typing import FloatArray
from ccmem.kernels.competition import find_winners, sort_units
from ccmem.kernels.jit import kernel_in_place
from ccmem.ncl.competitions import LABELLED
from ccmem.ncl.parts import Parameter, neighbourhood, per_unit

POSITIVE = number(0.0, open_below=True, open_above=True)
HORIZON = Parameter(
    10_000.0, number(1.0), about="Length of the schedules in samples, as in the equations; inf keeps them constant."
)
FEW = 8
"""Largest number of ranks found by insertion, which is then faster than sorting all units."""


@kernel_in_place
def resolution(state: Any) -> float:
    """Return the spacing of numbers around 1 in the type of the data (np.finfo takes long to compile)."""
    return 2.0**-23 if state.prototypes.itemsize == 4 else 2.0**-52


@kernel_in_place
def faded(start: float, t: int, horizon: float) -> float:
    """Return ``start`` / (1 + 2 t / horizon): a schedule that has no end."""
    return start / (1.0 + 2.0 * t / horizon)


@neighbourhood(whole=True)
def winners(state: Any, settings: Any, n: int, k: int) -> int:
    """Select the winners alone, each with strength 1."""
    for j in range(k):
        settings.units[j], settings.strengths[j] = settings.best[j], 1.0
    return k


@neighbourhood(whole=True, **LABELLED)
def signed(state: Any, settings: Any, n: int, k: int) -> int:
    """Select the winners, attracted by a row of their label and repelled by others: LVQ1."""
    for j in range(k):
        settings.units[j] = settings.best[j]
        settings.strengths[j] = 1.0 if state.labels[settings.best[j]] == settings.label[0] else -1.0
    return k


def positions(rows: int, columns: int, topology: str = "rectangular") -> FloatArray:
    """Return the position (x, y) of every unit of a map; odd rows of a hexagonal map are shifted by half a column."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    if topology == "hexagonal":  # neighbours are 1 apart
        return np.column_stack([column + 0.5 * (row % 2), row * math.sqrt(0.75)])
    return np.column_stack([column, row]).astype(np.float64)


GRID = {
    "rows": Parameter(4, integer(1), None, fixed=True, about="Rows of the grid; unit i is in row i // columns."),
    "columns": Parameter(4, integer(1), None, fixed=True, about="Columns of the grid."),
    "topology": Parameter(
        "rectangular",
        choice("rectangular", "hexagonal"),
        None,
        fixed=True,
        about="Form of the grid. The odd rows of a hexagonal grid are shifted to the right by half a column.",
    ),
}
"""Parameters of a model on a map, required by :func:`grid`."""
SIGMA = Parameter(0.5, POSITIVE, about="Width of the neighbourhood on the grid at the start.")
ON_MAP = {"positions": lambda model, capacity: positions(model.rows, model.columns, model.topology)}


@kernel_in_place
def squared_gap(positions: FloatArray, a: int, b: int) -> float:
    """Return the squared distance of two units on the map."""
    across, along = positions[a, 0] - positions[b, 0], positions[a, 1] - positions[b, 1]
    return float(across * across + along * along)


@neighbourhood(whole=True, parameters={"sigma": SIGMA, "horizon": HORIZON}, scratch=ON_MAP)
def grid(state: Any, settings: Any, n: int, k: int) -> int:
    """Select all units, by exp(-gap^2 / 2 sigma^2) of their gap to the winner on the map; sigma fades."""
    units, strengths, winner, near, m = settings.units, settings.strengths, settings.best[0], 0, 0
    sigma, least = faded(settings.sigma, state.counters[SEEN], settings.horizon), resolution(state)
    width = 2.0 * sigma * sigma
    far = -1.001 * math.log(least) * width  # beyond, strengths are certainly below the resolution
    for i in range(n):
        units[near], strengths[near] = i, squared_gap(settings.positions, i, winner)
        near += strengths[near] <= far
    for j in range(near):
        units[m], strengths[m] = units[j], math.exp(-strengths[j] / width)
        m += strengths[m] >= least
    return m


@neighbourhood(
    whole=True,
    parameters={
        "reach": Parameter(2.0, POSITIVE, about="Ranks over which the strength falls by a factor of e, at the start."),
        "final_reach": Parameter(0.01, POSITIVE, about="The same at the horizon."),
        "final_rate": Parameter(0.005, number(0.0, 1.0, open_below=True), about="Learning rate at the horizon."),
        "horizon": HORIZON,
    },
    scratch={"order": per_unit(np.int64)},
)
def ranks(state: Any, settings: Any, n: int, k: int) -> int:
    """Select units by exp(-rank / reach), rank 0 the nearest; rate and reach fall exponentially until the horizon."""
    part = min(1.0, state.counters[SEEN] / settings.horizon)
    reach = settings.reach * (settings.final_reach / settings.reach) ** part
    m = min(n, int(-reach * math.log(resolution(state))) + 1)
    if m > FEW:
        sort_units(settings.h, n, settings.units, settings.order)
    else:
        find_winners(settings.h[:n], False, settings.units[:m])
    fall, strength = math.exp(-1.0 / reach), (settings.final_rate / settings.learning_rate) ** part
    for j in range(m):
        settings.strengths[j] = strength
        strength *= fall
    return m
