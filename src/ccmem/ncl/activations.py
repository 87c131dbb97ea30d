"""Activations: distance of each unit to a row. The unit with the lowest activation wins; similarities are negated.

Prediction compares rows with units by the activation that learning uses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.core.parameters import either, exactly, number
from ccmem.core.state import SEEN
from ccmem.core.typing import FloatArray
from ccmem.kernels.competition import distance_powers, dots_and_square, minimum_sums
from ccmem.kernels.update import complement
from ccmem.ncl.parts import Array, Parameter, activation, per_unit

ORDER = Parameter(  # infinity hardly differs from orders beyond 16
    2.0, either(number(1.0, 16.0), exactly(np.inf)), about="Order of the distance."
)


@activation(whole=True, parameters={"p": ORDER})
def p_norm(state: Any, settings: Any, X: FloatArray, row: int, n: int) -> None:
    """Compute ``h[i] = sum |x - M[i]|^p``, the p-norm distance without its root, which would not change the order."""
    distance_powers(state.prototypes, n, X, row, settings.p, settings.h)


@activation(whole=True)
def euclidean(state: Any, settings: Any, X: FloatArray, row: int, n: int) -> None:
    """Compute ``h[i] = |x - M[i]|^2``."""
    distance_powers(state.prototypes, n, X, row, 2.0, settings.h)


@activation(
    whole=True,
    similarity=True,
    rejects=True,
    scratch={"scale": lambda model, capacity: np.empty(1), "epsilon": lambda model, capacity: float(model._epsilon)},
)
def cosine(state: Any, settings: Any, X: FloatArray, row: int, n: int) -> bool:
    """Compute ``h[i] = -M[i] . x / (|x| + epsilon)`` for units of length 1; reject a zero vector: it has no direction.

    ``settings.scale[0]`` receives ``1 / (|x| + epsilon)``, or 0 for a zero vector.
    """
    backwards = state.counters[SEEN] % 2 == 1
    square = dots_and_square(state.prototypes, 0, n, X, row, backwards, settings.h)
    settings.scale[0] = 1.0 / (math.sqrt(square) + settings.epsilon) if square > 0.0 else 0.0
    for i in range(n):
        settings.h[i] *= -settings.scale[0]
    return square > 0.0


@activation(
    whole=True,
    similarity=True,
    parameters={
        "choice": Parameter(
            1e-3,
            number(0.0, open_below=True, open_above=True),
            about="Choice parameter (alpha): small values prefer the box that would grow least.",
        )
    },
    state={"complements": Array("column", None, 1.0), "norms": Array("unit")},
    scratch={"overlaps": per_unit(), "complement": lambda model, capacity: np.empty_like(model._state.prototypes[0])},
)
def fuzzy_minimum(state: Any, settings: Any, X: FloatArray, row: int, n: int) -> None:
    """Compute ``h[i] = -|I min w[i]| / (choice + |w[i]|)`` with ``I = (x, 1 - x)``, ``w[i] = (prototype, complement)``.

    ``settings.overlaps[i]`` receives the match ``|I min w[i]| / columns``.
    """
    h, overlaps = settings.h, settings.overlaps
    complement(X[row], settings.complement)
    minimum_sums(state.prototypes, n, X[row], overlaps)
    minimum_sums(state.complements, n, settings.complement, h)
    for i in range(n):
        overlaps[i] += h[i]
        h[i] = -overlaps[i] / (settings.choice + state.norms[i])
        overlaps[i] /= X.shape[1]
