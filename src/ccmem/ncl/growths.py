"""Growth: conditions under which a row becomes a new unit instead of moving one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.parameters import array, choice, either, integer, optional
from ccmem.core.typing import FloatArray
from ccmem.kernels.competition import lowest, squared_distance
from ccmem.kernels.jit import kernel_in_place
from ccmem.ncl.competitions import LABEL, UNIT_LABELS
from ccmem.ncl.parts import Parameter, growth

INIT = Parameter("first", either(choice("first"), array()), None)
N_UNITS = Parameter(8, integer(1), None, fixed=True)
MAX_UNITS = Parameter(None, optional(integer(1)), None, fixed=True)


@growth(whole=True, parameters={"init": INIT})
def first_samples(state: Any, settings: Any, n: int, h: FloatArray, k: int) -> bool:
    """True until all units are in use, for rows that equal none of them."""
    return n < settings.limit and (n == 0 or h[lowest(h, n)] > 0.0)


@growth(whole=True, gradual=True, parameters={"max_units": MAX_UNITS})
def unmatched(state: Any, settings: Any, n: int, h: FloatArray, k: int) -> bool:
    """True if no unit won and there is room for one more: growth by vigilance."""
    return k == 0 and n < settings.limit


@kernel_in_place
def replaceable(state: Any, settings: Any, n: int) -> int:
    """Return the unit to replace at the bound: the least used one of the label with the most units, or -1.

    That label must have at least two units more than the label of the row, so that no two labels take units from each
    other in turn. Ties go to the lowest index.
    """
    leaders, members, label = settings.units, settings.strengths, settings.label[0]
    own, most, least = 0, 0, -1
    for i in range(n):
        members[i] = 0.0
    for i in range(n):
        leader = 0
        while state.labels[leader] != state.labels[i]:
            leader += 1
        leaders[i] = leader
        members[leader] += 1.0
        own += state.labels[i] == label
    for i in range(n):
        if members[i] > members[most]:
            most = i
    for i in range(n):
        if leaders[i] == most and (least < 0 or state.wins[i] < state.wins[least]):
            least = i
    return least if members[most] > own + 1.0 else -1


@kernel_in_place
def labelled_place(state: Any, settings: Any, n: int) -> int:
    """Return the unit that a row becomes, labelled as the row and without wins; below the bound a further unit."""
    unit = n if n < settings.limit else replaceable(state, settings, n)
    state.labels[unit] = settings.label[0]
    state.wins[unit] = 0
    return unit


@growth(
    whole=True,
    gradual=True,
    labelled=True,
    parameters={"max_units": MAX_UNITS},
    state=UNIT_LABELS,
    scratch=LABEL,
    hooks={"place": labelled_place},
)
def unmatched_labelled(state: Any, settings: Any, n: int, h: FloatArray, k: int) -> bool:
    """True if no unit won and there is room for one more, or at the bound a unit of a label with more units."""
    return k == 0 and (n < settings.limit or replaceable(state, settings, n) >= 0)


@growth(
    whole=True,
    gradual=True,
    labelled=True,
    parameters={"units_per_class": Parameter(8, integer(1), int, fixed=True)},
    state=UNIT_LABELS,
    scratch=LABEL,
)
def first_samples_of_class(state: Any, settings: Any, n: int, h: FloatArray, k: int) -> bool:
    """True until the label of the row has ``units_per_class`` units, for rows that equal none of these."""
    found = 0
    for i in range(n):
        if state.labels[i] == settings.label[0]:
            found += 1
            if h[i] == 0.0:
                return False
    if found >= settings.units_per_class:
        return False
    state.labels[n] = settings.label[0]
    return True


@kernel_in_place
def largest(values: FloatArray, n: int) -> int:
    """Return the unit with the largest value, ties to the lowest index: growth by accumulated error."""
    best = 0
    for i in range(1, n):
        if values[i] > values[best]:
            best = i
    return best


@kernel_in_place
def local_threshold(state: Any, n: int, unit: int) -> float:
    """Return the squared distance of a unit to its farthest neighbour or, if it has none, to the nearest other unit.

    Growth by local threshold: a row that is farther away than that becomes a new unit.
    """
    farthest = -1.0
    for i in range(n):
        if state.edges[unit, i] > 0:
            farthest = max(farthest, squared_distance(state.prototypes[unit], state.prototypes[i]))
    if farthest >= 0.0:
        return farthest
    closest = np.inf
    for i in range(n):
        if i != unit:
            closest = min(closest, squared_distance(state.prototypes[unit], state.prototypes[i]))
    return closest
