"""Fuzzy ART: units are boxes; a box grows to include a sample if it stays small enough.

With complement coding I = (x, 1 - x), weights w[i] of 2d numbers, |.| the sum and d columns:

    T[i] = |I min w[i]| / (choice + |w[i]|)            the unit of largest T is tried first
    resonance if |I min w[i]| / d >= vigilance:        w <- rate (I min w) + (1 - rate) w
    otherwise the next; if none resonates:             I becomes a new unit

The first unit in the order of T that resonates is the one with largest T among all that match, so one pass finds it.
Ties go to the lowest index. w is the box between its lower corner ``prototypes_`` and upper corner ``upper_``, and d -
\\|I min w\\| the size that it would have with x inside, so a vigilance is a bound on the size of boxes. Scale every
column to [0, 1] first. Other values are allowed: then 1 is only the size that a column counts for.

With ``max_units``, a sample that matches no unit is rejected (winner -1) once this bound is reached. Source:
G. Carpenter, S. Grossberg and D. Rosen, "Fuzzy ART", 1991. Equal to artlib exactly. Reference in plain numpy:
``tests/naive/fuzzy_art.py``.

>>> import numpy as np
>>> memory = FuzzyART(vigilance=0.7).fit(np.array([[0.1, 0.2], [0.9, 0.8], [0.3, 0.4]]))
>>> memory.prototypes_.tolist(), memory.upper_.round(6).tolist()
([[0.1, 0.2], [0.9, 0.8]], [[0.3, 0.4], [0.9, 0.8]])
"""

from __future__ import annotations

from typing import Any, ClassVar

from ccmem import ncl
from ccmem.core.locking import reading


class FuzzyART(ncl.Model, learning_rate=1.0):
    """Fuzzy ART with complement coding: ``prototypes_`` are the lower corners of the boxes, ``upper_`` the upper ones.

    A learning rate of 1, by which a box grows to the sample at once, is fast learning (beta).
    """

    activation = ncl.fuzzy_minimum
    competition = ncl.fuzzy_vigilant
    rate = ncl.constant
    update = ncl.fuzzy
    growth = ncl.unmatched
    parameters: ClassVar[dict[str, ncl.Parameter]] = {}

    @property
    @reading
    def upper_(self) -> Any:
        """Upper corners of the boxes, a copy."""
        return 1 - self._started().complements[: self.n_units_]
