"""Neighbourhoods: units that move at a row, and their strengths. A strength below the data's resolution counts as 0.

Each function writes the units that move to ``units``, their strengths to ``strengths``, and returns their number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.parameters import choice, integer, number
from ccmem.core.state import SEEN
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import find_winners, root, sort_units
from ccmem.kernels.jit import kernel_in_place
from ccmem.ncl.competitions import LABEL, UNIT_LABELS, nearest_labelled
from ccmem.ncl.parts import Array, Parameter, neighbourhood, per_unit

POSITIVE = number(0.0, open_below=True, open_above=True)
HORIZON = Parameter(10_000.0, number(1.0))
LEAVES_NO_TRACE = -36.8
"""Exponent below which exp is less than half the resolution of doubles at 1, so a sum >= 1 does not change."""
FEW = 8
"""Largest number of ranks found by insertion, which is then faster than sorting all units."""
HEXAGON_ROW = math.sqrt(0.75)
"""Distance between rows of hexagons whose neighbours are 1 apart."""


@kernel_in_place
def resolution(state: Any) -> float:
    """Return the spacing of numbers around 1 in the type of the data (np.finfo takes long to compile)."""
    return 2.0**-23 if state.prototypes.itemsize == 4 else 2.0**-52


@kernel_in_place
def faded(start: float, t: int, horizon: float) -> float:
    """Return ``start`` / (1 + 2 t / horizon): a schedule that has no end."""
    return start / (1.0 + 2.0 * t / horizon)


@neighbourhood(whole=True)
def winners(
    state: Any, settings: Any, n: int, h: FloatArray, k: int, best: IntArray, units: IntArray, strengths: FloatArray
) -> int:
    """Select the winners alone, each with strength 1."""
    for j in range(k):
        units[j], strengths[j] = best[j], 1.0
    return k


@kernel_in_place
def far_power(settings: Any, nearest: float) -> float:
    """Return a distance (before its root) beyond which the posterior of a unit is certainly 0."""
    far = (nearest - LEAVES_NO_TRACE * settings.temperature / settings.precision) * (1.0 + 1e-9)
    if settings.p == 2.0:
        return far * far
    return far if settings.p == 1.0 or settings.p == np.inf else far**settings.p


@neighbourhood(
    whole=True, parameters={"precision": Parameter(1.0, POSITIVE), "temperature": Parameter(0.0285, POSITIVE)}
)
def posterior(
    state: Any, settings: Any, n: int, h: FloatArray, k: int, best: IntArray, units: IntArray, strengths: FloatArray
) -> int:
    """Select all units, by exp(-precision h / temperature), normalised to sum 1, where h is a p-norm distance."""
    w, least = best[0], resolution(state)
    near = root(h[w], settings.p)
    far, found = far_power(settings, near), 0
    for i in range(n):  # without a branch, which would be mispredicted
        units[found] = i
        found += h[i] <= far and i != w
    total = 1.0
    for j in range(found):
        distance = root(h[units[j]], settings.p)
        strengths[j] = math.exp(-settings.precision * (distance - near) / settings.temperature)
        total += strengths[j]
    units[found], strengths[found] = w, 1.0
    m = 0
    for j in range(found + 1):
        units[m], strengths[m] = units[j], strengths[j] / total
        m += strengths[m] >= least
    return m


def positions(rows: int, columns: int, topology: str = "rectangular") -> FloatArray:
    """Return the position (x, y) of every unit of a map; odd rows of a hexagonal map are shifted by half a column."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    if topology == "hexagonal":
        return np.column_stack([column + 0.5 * (row % 2), row * HEXAGON_ROW])
    return np.column_stack([column, row]).astype(np.float64)


GRID = {
    "rows": Parameter(4, integer(1), None, fixed=True),
    "columns": Parameter(4, integer(1), None, fixed=True),
    "topology": Parameter("rectangular", choice("rectangular", "hexagonal"), None, fixed=True),
}
"""Parameters of a model on a map, required by :func:`grid` and :func:`elastic_grid`."""
ON_MAP = {"positions": lambda model, capacity: positions(model.rows, model.columns, model.topology)}


@kernel_in_place
def squared_gap(positions: FloatArray, a: int, b: int) -> float:
    """Return the squared distance of two units on the map."""
    across, along = positions[a, 0] - positions[b, 0], positions[a, 1] - positions[b, 1]
    return float(across * across + along * along)


@neighbourhood(whole=True, parameters={"sigma": Parameter(0.5, POSITIVE), "horizon": HORIZON}, scratch=ON_MAP)
def grid(
    state: Any, settings: Any, n: int, h: FloatArray, k: int, best: IntArray, units: IntArray, strengths: FloatArray
) -> int:
    """Select all units, by exp(-gap^2 / 2 sigma^2) of their gap to the winner on the map; sigma fades."""
    sigma, least, m = faded(settings.sigma, state.counters[SEEN], settings.horizon), resolution(state), 0
    for i in range(n):
        units[m] = i
        strengths[m] = math.exp(-squared_gap(settings.positions, i, best[0]) / (2.0 * sigma * sigma))
        m += strengths[m] >= least
    return m


@neighbourhood(
    whole=True, parameters={"elasticity": Parameter(1.0, POSITIVE)}, state={"span": Array("one")}, scratch=ON_MAP
)
def elastic_grid(
    state: Any, settings: Any, n: int, h: FloatArray, k: int, best: IntArray, units: IntArray, strengths: FloatArray
) -> int:
    """Select all units, by d[i] exp(-gap^2 / (elasticity d[winner])^2): DSOM, which needs no horizon.

    d is the distance divided by the largest distance so far; the gap is measured in diagonals of the map.
    """
    least, m, corner = resolution(state), 0, settings.positions[settings.positions.shape[0] - 1]
    for i in range(n):
        state.span[0] = max(state.span[0], h[i])
    reach = settings.elasticity * settings.elasticity * h[best[0]] / max(state.span[0], 1e-300)
    reach *= max(1.0, corner[0] * corner[0] + corner[1] * corner[1])
    if reach > 0.0:  # if the winner equals the row, its neighbours do not move
        for i in range(n):
            units[m] = i
            distance = math.sqrt(h[i] / state.span[0])
            strengths[m] = distance * math.exp(-squared_gap(settings.positions, i, best[0]) / reach)
            m += strengths[m] >= least
    return m


@neighbourhood(
    whole=True,
    parameters={
        "reach": Parameter(2.0, POSITIVE),
        "final_reach": Parameter(0.01, POSITIVE),
        "final_rate": Parameter(0.005, number(0.0, 1.0, open_below=True)),
        "horizon": HORIZON,
    },
    scratch={"order": per_unit(np.int64)},
)
def ranks(
    state: Any, settings: Any, n: int, h: FloatArray, k: int, best: IntArray, units: IntArray, strengths: FloatArray
) -> int:
    """Select units by exp(-rank / reach), rank 0 the nearest; rate and reach fall exponentially until the horizon."""
    part = min(1.0, state.counters[SEEN] / settings.horizon)
    reach = settings.reach * (settings.final_reach / settings.reach) ** part
    m = min(n, int(-reach * math.log(resolution(state))) + 1)
    if m > FEW:
        sort_units(h, n, units, settings.order)
    else:
        find_winners(h[:n], False, units[:m])
    fall, strength = math.exp(-1.0 / reach), (settings.final_rate / settings.learning_rate) ** part
    for j in range(m):
        strengths[j] = strength
        strength *= fall
    return m


@neighbourhood(whole=True, labelled=True, state=UNIT_LABELS, scratch=LABEL)
def signed(
    state: Any, settings: Any, n: int, h: FloatArray, k: int, best: IntArray, units: IntArray, strengths: FloatArray
) -> int:
    """Select the winners, attracted by a row of their label and repelled by others: LVQ1."""
    for j in range(k):
        units[j] = best[j]
        strengths[j] = 1.0 if state.labels[best[j]] == settings.label[0] else -1.0
    return k


@neighbourhood(
    whole=True, labelled=True, parameters={"gain": Parameter(1.0, POSITIVE)}, state=UNIT_LABELS, scratch=LABEL
)
def relative(
    state: Any, settings: Any, n: int, h: FloatArray, k: int, best: IntArray, units: IntArray, strengths: FloatArray
) -> int:
    """Select the nearest unit of the label and the nearest other, by the gradient of (d+ - d-) / (d+ + d-): GLVQ."""
    units[0], units[1] = best[0], nearest_labelled(state, settings, n, h, False)
    total = h[best[0]]
    if units[1] >= 0:
        total += h[units[1]]
    if units[1] < 0 or total == 0.0:
        return 0
    strengths[0] = min(1.0, settings.gain * h[units[1]] / (total * total))
    strengths[1] = -min(1.0, settings.gain * h[best[0]] / (total * total))
    return 2
