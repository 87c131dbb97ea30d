"""Updates: movement of a unit by a given amount, and the start of a new unit. All functions work in place.

:func:`adam` and :func:`rmsprop` scale each coordinate of the step by its earlier differences. There, ``amount`` is the
step of a coordinate whose differences have been about equal, not a fraction of the distance to the row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.parameters import number
from ccmem.core.typing import FloatArray
from ccmem.kernels.competition import minimum_sum
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import complement, copy_scaled, hebbian_move, renormalising_move, shrink_to
from ccmem.ncl.parts import Array, Parameter, by_parameter, update

SHARE = number(0.0, 1.0, open_above=True)
BETA_2 = Parameter(0.999, SHARE, about="Memory of the second moments of Adam and RMSprop.")
TINY = 1e-8
"""Added to the root of a second moment, which may be 0."""


@update
def hebbian(state: Any, settings: Any, unit: int, x: FloatArray, amount: float) -> None:
    """Set M <- M + amount (x - M), never beyond x; a negative amount repels."""
    hebbian_move(state.prototypes[unit], x, min(1.0, amount))


@update(
    parameters={"beta_1": Parameter(0.9, SHARE, about="Memory of Adam's first moments."), "beta_2": BETA_2},
    state={"first_moments": Array("column", None), "second_moments": Array("column", None), "steps": Array("unit")},
)
def adam(state: Any, settings: Any, unit: int, x: FloatArray, amount: float) -> None:
    """Set ``M <- M + |amount| m' / (sqrt(v') + e)``, with moments m, v of sign(amount) (x - M) (Kingma and Ba 2015)."""
    state.steps[unit] += 1.0
    M, first, second = state.prototypes[unit], state.first_moments[unit], state.second_moments[unit]
    number, beta_1, beta_2, t = M.dtype.type, settings.beta_1, settings.beta_2, state.steps[unit]
    keep_1, keep_2, sign = number(beta_1), number(beta_2), number(1.0 if amount >= 0.0 else -1.0)
    one, tiny, size = number(1.0), number(TINY), number(abs(amount) / (1.0 - beta_1**t))
    scale = number(1.0 / np.sqrt(1.0 - beta_2**t))
    for i in range(M.shape[0]):
        gradient = sign * (x[i] - M[i])
        first[i] = keep_1 * first[i] + (one - keep_1) * gradient
        second[i] = keep_2 * second[i] + (one - keep_2) * gradient * gradient
        M[i] += size * first[i] / (number(np.sqrt(second[i])) * scale + tiny)


@update(parameters={"beta_2": BETA_2}, state={"second_moments": Array("column", None)})
def rmsprop(state: Any, settings: Any, unit: int, x: FloatArray, amount: float) -> None:
    """Set M <- M + amount (x - M) / (sqrt(v) + e), v the running mean of (x - M)^2 (Tieleman and Hinton 2012)."""
    M, second = state.prototypes[unit], state.second_moments[unit]
    number = M.dtype.type
    keep, size, one, tiny = number(settings.beta_2), number(amount), number(1.0), number(TINY)
    for i in range(M.shape[0]):
        gradient = x[i] - M[i]
        second[i] = keep * second[i] + (one - keep) * gradient * gradient
        M[i] += size * gradient / (number(np.sqrt(second[i])) + tiny)


STEPS = by_parameter(
    "step",
    "Update of a unit: the printed one, or one that scales each coordinate by its past differences.",
    hebbian=hebbian,
    adam=adam,
    rmsprop=rmsprop,
)
"""Updates by gradient-like steps, chosen by the parameter ``step``."""


@kernel_in_place
def start_with_direction(state: Any, settings: Any, unit: int, x: FloatArray) -> None:
    """Set ``M <- x / (|x| + epsilon)``."""
    copy_scaled(state.prototypes[unit], x, settings.scale[0])


@update(hooks={"start": start_with_direction})
def renormalising(state: Any, settings: Any, unit: int, x: FloatArray, amount: float) -> None:
    """Set ``M <- (1 - amount) M + amount x / |x|``, scaled to length 1; for :func:`ccmem.ncl.activations.cosine`."""
    renormalising_move(state.prototypes[unit], x, settings.scale[0], amount, 0.0)


@kernel_in_place
def measure(state: Any, unit: int) -> None:
    """Store the norm of a unit."""
    lower, upper = state.prototypes[unit], state.complements[unit]
    state.norms[unit] = minimum_sum(lower, lower) + minimum_sum(upper, upper)


@kernel_in_place
def start_as_point(state: Any, settings: Any, unit: int, x: FloatArray) -> None:
    """Set w <- (x, 1 - x)."""
    copy_scaled(state.prototypes[unit], x, 1.0)
    complement(x, state.complements[unit])
    measure(state, unit)


@update(hooks={"start": start_as_point})
def fuzzy(state: Any, settings: Any, unit: int, x: FloatArray, amount: float) -> None:
    """Set w <- amount (I min w) + (1 - amount) w, where I = (x, 1 - x)."""
    shrink_to(state.prototypes[unit], x, amount)
    shrink_to(state.complements[unit], settings.complement, amount)
    measure(state, unit)
