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

from ccmem import ncl


class NeuralGas(ncl.Model, learning_rate=0.5):
    """Neural gas: the nearest unit moves most, the next nearest less, and so on."""

    neighbourhood = ncl.ranks
    update = ncl.STEPS
