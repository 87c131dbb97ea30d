"""Growth: conditions under which a row becomes a new unit instead of moving one."""

from __future__ import annotations

from typing import Any

from ccmem.core.parameters import array, choice, either, integer, optional
from ccmem.kernels.competition import lowest
from ccmem.ncl.competitions import LABELLED
from ccmem.ncl.parts import Parameter, growth

INIT = Parameter(
    "first",
    either(choice("first"), array()),
    None,
    about="Start of the prototypes: the first distinct samples of the stream, or an array of shape (units, columns).",
)
N_UNITS = Parameter(8, integer(1), None, fixed=True, about="Number of units.")
MAX_UNITS = Parameter(
    None, optional(integer(1)), None, fixed=True, about="Bound on the number of units; None: no bound."
)
SEED = Parameter(None, (lambda value: True, "ignored"), None, about="This model draws no random numbers.")
SEEDED = {"n_units": N_UNITS, "random_state": SEED}
"""Parameters of a model that takes a seed for symmetry alone."""
PER_CLASS = Parameter(8, integer(1), int, fixed=True, about="Number of units of every label.")


@growth(whole=True, parameters={"init": INIT}, scratch={"similar": lambda model, capacity: not model._by_distance})
def first_samples(state: Any, settings: Any, n: int, k: int) -> bool:
    """True until all units are in use, for rows that equal none of them; for all rows if h is a similarity."""
    return n < settings.limit and (n == 0 or settings.similar or settings.h[lowest(settings.h, n)] != 0.0)


@growth(whole=True, gradual=True, parameters={"max_units": MAX_UNITS})
def unmatched(state: Any, settings: Any, n: int, k: int) -> bool:
    """True if no unit won and there is room for one more: growth by vigilance."""
    return k == 0 and n < settings.limit


@growth(whole=True, gradual=True, parameters={"units_per_class": PER_CLASS}, **LABELLED)
def first_samples_of_class(state: Any, settings: Any, n: int, k: int) -> bool:
    """True until the label of the row has ``units_per_class`` units, for rows that equal none of these."""
    found = 0
    for i in range(n):
        if state.labels[i] == settings.label[0]:
            found += 1
            if settings.h[i] == 0.0:
                return False
    if found < settings.units_per_class:
        state.labels[n] = settings.label[0]
    return found < settings.units_per_class
