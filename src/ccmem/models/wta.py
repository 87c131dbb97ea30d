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

from typing import Any

from ccmem import ncl


class IncrementalWTA(ncl.Model):
    """Incremental winner-take-all: the nearest prototypes move towards every sample.

    Parameters
    ----------
    n_units : int, default=8
        Number of prototypes. The paper's experiments use 125.
    n_winners : int, default=1
        Number of the nearest units that move at each sample (K).
    p : float, default=2.0
        Order of the distance, from 1 to 16, or infinity.
    learning_rate : float, default=0.1
        Fraction of the distance to the sample that a winner moves, at its first win. The paper gives no value; constant
        rates of 0.005 to 0.02 approach its tables, a rate of 0.35 with ``rate_decay=0.99`` gives better results.
    rate_decay : float, default=1.0
        Factor of a unit's rate at each win.
    step : "hebbian", "adam" or "rmsprop", default="hebbian"
        Update of a winner: the printed one, or one that scales each coordinate by its past differences
        (:mod:`ccmem.ncl.updates`).
    beta_1, beta_2 : float, default=0.9, 0.999
        Memory of the first and second moments of Adam, and of the second moments of RMSprop.
    init : "first" or array of shape (n_units, n_features), default="first"
        Start of the prototypes: the first distinct samples of the stream as they arrive, or as given.
    random_state : ignored
        This model draws no random numbers; the parameter exists for symmetry.

    Attributes
    ----------
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        The content of the memory; see :class:`ccmem.base.memory.CompetitiveMemory`.
    """

    competition = ncl.k_nearest
    update = ncl.STEPS

    def __init__(
        self,
        n_units: int = 8,
        *,
        n_winners: int = 1,
        p: float = 2.0,
        learning_rate: float = 0.1,
        rate_decay: float = 1.0,
        step: str = "hebbian",
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        init: Any = "first",
        random_state: Any = None,
    ) -> None:
        self._assign(locals())
