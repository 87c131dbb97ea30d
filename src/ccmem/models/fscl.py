"""Frequency-sensitive winner-take-all (FSCL): units that have won often must be nearer to win again.

For a sample x, prototypes M[i] and their wins C[i]:

    h[i] = ||x - M[i]||_p^p
    w    = argmin h[i] C[i]                                fairness="wins"
    w    = argmin h[i] - bias (1/N - share[i])             fairness="conscience"
    M[w] <- M[w] + v[w] (x - M[w]),   v[w] <- decay v[w],   C[w] <- C[w] + 1

With a conscience, the share of the nearest unit (by h alone) moves towards 1 at every sample, all others towards 0, by
``share_rate``. Prediction compares distances alone. Ties go to the lowest index. Sources: S. Ahalt et al.,
"Competitive learning algorithms for vector quantization", 1990; D. DeSieno, "Adding a conscience to competitive
learning", 1988. Reference in plain numpy: ``tests/naive/fscl.py``.

>>> import numpy as np
>>> X = np.array([[0.0], [9.0], [1.0], [0.0], [4.0]])
>>> FrequencySensitiveWTA(n_units=2, learning_rate=0.5).fit(X).win_counts_.tolist()  # 4 is nearer to 0 than to 9
[3, 2]
"""

from __future__ import annotations

from ccmem import ncl


class FrequencySensitiveWTA(ncl.Model):
    """Winner-take-all with fair competition: every unit wins about as often."""

    competition = ncl.by_parameter(
        "fairness",
        "Handicap of a unit: its distance times its wins, or a bias by its share of the latest samples.",
        wins=ncl.frequency_sensitive,
        conscience=ncl.conscience,
    )
    update = ncl.STEPS
