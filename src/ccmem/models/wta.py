"""Incremental winner-take-all (iWTA): the simplest competitive memory, online vector quantisation.

For a sample x and prototypes M[i] (paper, section 4.1):

    h[i] = ||x - M[i]||_p                   competition by distance
    w    = the K units with smallest h      distinct, nearest first, ties to the lowest index
    M[i] <- M[i] + v[i] (x - M[i])          for the winners only
    v[i] <- decay * v[i]                    per-unit rate (decay = 1 gives the paper's constant rate)

Source: A. Ororbia, "Continual Competitive Memory", 2021, equations 5 to 8. Choices of this implementation: the start of
the prototypes (``init``), which the paper does not specify; p-norms are compared without their root, which does not
change the order. Reference in plain numpy: ``tests/naive/wta.py``.

>>> import numpy as np
>>> memory = IncrementalWTA(n_units=2, learning_rate=0.5)
>>> memory.partial_fit(np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 0.0]])).prototypes_
array([[0.5, 0. ],
       [4. , 0. ]])
>>> memory.win_counts_.tolist(), memory.predict([[3.0, 1.0]]).tolist()
([2, 1], [1])
"""

from __future__ import annotations

from ccmem import ncl


class IncrementalWTA(ncl.Model):
    """Incremental winner-take-all: the nearest prototypes move towards every sample.

    The paper uses 125 units and gives no learning rate: constant rates of 0.005 to 0.02 approach its tables, a rate of
    0.35 with ``rate_decay=0.99`` gives better results.
    """

    competition = ncl.k_nearest
    update = ncl.STEPS
    parameters = ncl.SEEDED
