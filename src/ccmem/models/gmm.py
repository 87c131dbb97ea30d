"""Incremental Gaussian mixture (iGMM): every unit moves, in proportion to its posterior.

For a sample x, prototypes M[i], precision g = 1 / variance and temperature T (paper, section 4.2):

    h[i] = ||x - M[i]||_p
    z[i] = exp(-g h[i] / T) / sum_j exp(-g h[j] / T)        posterior, soft winners
    M[i] <- M[i] + v[i] g z[i] (x - M[i])                   for all units

Source: A. Ororbia, "Continual Competitive Memory", 2021, equations 9 to 11. The printed denominator,
sum_j -g exp(h[j] / T), is a misprint, because the result is not a distribution. Choices of this implementation: a
posterior below the resolution of the data's float type counts as zero; a move never overshoots the sample; the nearest
unit is the winner, and only its rate decays. Ties go to the lowest index. All terms are divided by that of the nearest
unit, so the sum over j starts with 1, and terms below its resolution are not computed. Reference in plain numpy:
``tests/naive/gmm.py``.

>>> import numpy as np
>>> memory = IncrementalGMM(n_units=2, temperature=1.0, learning_rate=0.5)
>>> memory.partial_fit(np.array([[0.0], [4.0], [2.0]])).prototypes_      # 2 is as far from 0 as from 4
array([[0.5],
       [3.5]])
"""

from __future__ import annotations

from typing import Any

from ccmem import ncl
from ccmem.ncl.rates import decaying_by_precision


class IncrementalGMM(ncl.Model):
    """Incremental Gaussian mixture: isotropic components of one fixed variance, all moved by their posterior.

    Parameters
    ----------
    n_units : int, default=8
        Number of components. The paper's experiments use 125.
    precision : float, default=1.0
        1 / variance of every component (gamma in the paper).
    temperature : float, default=0.0285
        Softness of the posterior; the paper's value. The smaller, the nearer to winner-take-all.
    p : float, default=2.0
        Order of the distance, from 1 to 16, or infinity.
    learning_rate : float, default=0.1
        Fraction of the distance to the sample that a unit with posterior 1 moves, before its first win.
    rate_decay : float, default=1.0
        Factor of the nearest unit's rate at each sample.
    step : "hebbian", "adam" or "rmsprop", default="hebbian"
        Update of a unit; see :class:`ccmem.IncrementalWTA`.
    beta_1, beta_2 : float, default=0.9, 0.999
        Memory of the moments of Adam and RMSprop.
    init : "first" or array of shape (n_units, n_features), default="first"
        Start of the prototypes: the first distinct samples of the stream as they arrive, or as given.
    random_state : ignored
        This model draws no random numbers; the parameter exists for symmetry.

    Attributes
    ----------
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        The content of the memory; see :class:`ccmem.base.memory.CompetitiveMemory`.
    """

    neighbourhood = ncl.posterior
    rate = decaying_by_precision
    update = ncl.STEPS

    def __init__(
        self,
        n_units: int = 8,
        *,
        precision: float = 1.0,
        temperature: float = 0.0285,
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
