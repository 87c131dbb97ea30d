"""Neural gas: units move by the rank of their distance to the sample.

For sample t of the stream and k[i] the number of units nearer to x than unit i:

    M[i] <- M[i] + v[i] f(t) exp(-k[i] / reach(t)) (x - M[i])
    f(t) = (final_rate / learning_rate)^(t / horizon),   reach(t) = reach (final_reach / reach)^(t / horizon)

v[i] is the learning rate, times ``rate_decay`` per win. Both schedules end at the horizon; t counts all samples since
learning began, so :meth:`partial_fit` never restarts them; ``horizon=inf`` keeps them constant. Strengths below the
resolution of the data count as zero. Ties go to the lowest index.

Source: T. Martinetz, S. Berkovich and K. Schulten, "Neural-gas network for vector quantization", 1993. Reference in
plain numpy: ``tests/naive/gas.py``.

>>> import numpy as np
>>> X = np.array([[0.0], [4.0], [1.0]])
>>> NeuralGas(n_units=2, learning_rate=0.5, reach=1.0, horizon=np.inf).fit(X).prototypes_.round(3)
array([[0.5  ],
       [3.448]])
"""

from __future__ import annotations

from typing import Any

from ccmem import ncl


class NeuralGas(ncl.Model):
    """Neural gas: the nearest unit moves most, the next nearest less, and so on.

    Parameters
    ----------
    n_units : int, default=8
        Number of prototypes.
    reach, final_reach : float, default=2.0, 0.01
        Number of ranks over which the strength falls by a factor of e, at the start and at the horizon.
    learning_rate, final_rate : float, default=0.5, 0.005
        Fraction of the distance to the sample that the nearest unit moves, at the start and at the horizon.
    rate_decay : float, default=1.0
        Factor of the nearest unit's rate at each sample.
    horizon : float, default=10000
        Number of samples at which the schedules end; ``inf``: reach and rate are constant.
    p : float, default=2.0
        Order of the distance, from 1 to 16, or infinity.
    step : "hebbian", "adam" or "rmsprop", default="hebbian"
        Update of a unit; see :class:`ccmem.IncrementalWTA`.
    beta_1, beta_2 : float, default=0.9, 0.999
        Memory of the moments of Adam and RMSprop.
    init : "first" or array of shape (n_units, n_features), default="first"
        Start of the prototypes: the first distinct samples of the stream as they arrive, or as given.

    Attributes
    ----------
    prototypes_, win_counts_, learning_rates_, n_units_, n_samples_seen_
        The content of the memory; see :class:`ccmem.base.memory.CompetitiveMemory`.
    """

    neighbourhood = ncl.ranks
    update = ncl.STEPS

    def __init__(
        self,
        n_units: int = 8,
        *,
        reach: float = 2.0,
        final_reach: float = 0.01,
        learning_rate: float = 0.5,
        final_rate: float = 0.005,
        rate_decay: float = 1.0,
        horizon: float = 10_000,
        p: float = 2.0,
        step: str = "hebbian",
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        init: Any = "first",
    ) -> None:
        self._assign(locals())
