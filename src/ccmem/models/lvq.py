"""Learning vector quantisation (LVQ): units with labels, attracted by samples of their label and repelled by others.

For a sample x with label y, squared distances d[i], and w the nearest unit:

    rule="lvq1"     M[w] <- M[w] + v[w] (x - M[w]) if its label is y, otherwise M[w] - v[w] (x - M[w])
    rule="glvq"     with the nearest unit + of label y and the nearest - of another, s = d+ + d-:
                    M+ <- M+ + v+ gain d- / s^2 (x - M+),    M- <- M- - v- gain d+ / s^2 (x - M-)
    rule="attract"  the nearest unit of label y moves as in "lvq1"; others never compete

v[i] is the learning rate, times ``rate_decay`` per win. The first ``units_per_class`` distinct samples of a label
become its units, whenever the label appears. Ties go to the lowest index. A sample without a label is not learned.

Sources: T. Kohonen, "The self-organizing map", 1990 (LVQ1); A. Sato and K. Yamada, "Generalized learning vector
quantization", 1995, with f the identity instead of a sigmoid that sharpens over time. The exact gradient of
(d+ - d-) / s has a further factor 4, which is part of the gain here. Reference in plain numpy: ``tests/naive/lvq.py``.

>>> import numpy as np
>>> X, y = np.array([[0.0], [9.0], [1.0], [4.0]]), ["low", "high", "low", "high"]
>>> model = LVQ(units_per_class=1, learning_rate=0.5, rate_decay=1.0).fit(X, y)      # 4 is nearer to 0.5 than to 9
>>> model.memory_.prototypes_.tolist(), model.predict([[2.0], [6.0]]).tolist()
([[-1.25], [9.0]], ['low', 'high'])
"""

from __future__ import annotations

from typing import Any

from ccmem import ncl
from ccmem.ncl.competitions import LABELLED, nearest_labelled
from ccmem.ncl.neighbourhoods import POSITIVE

GAIN = ncl.Parameter(
    1.0, POSITIVE, about="Of GLVQ: factor of the printed step, which shrinks with the squared distances of the data."
)


@ncl.neighbourhood(whole=True, parameters={"gain": GAIN}, **LABELLED)
def relative(state: Any, settings: Any, n: int, k: int) -> int:
    """Select the nearest unit of the label and the nearest other, by the gradient of (d+ - d-) / (d+ + d-): GLVQ."""
    h, own, other = settings.h, settings.best[0], nearest_labelled(state, settings, n, False)
    if other < 0 or h[own] + h[other] == 0.0:
        return 0
    scale = (h[own] + h[other]) * (h[own] + h[other])
    settings.units[0], settings.strengths[0] = own, min(1.0, settings.gain * h[other] / scale)
    settings.units[1], settings.strengths[1] = other, -min(1.0, settings.gain * h[own] / scale)
    return 2


class LVQ(ncl.Classifier, rate_decay=0.99):
    """Learning vector quantisation: LVQ1, GLVQ, or attraction alone.

    Without decaying rates, repulsion destroys classes that no longer appear.
    """

    competition = ncl.by_parameter(
        "rule", "Update, as above.", lvq1=ncl.nearest, glvq=ncl.label_veto, attract=ncl.label_veto
    )
    neighbourhood = ncl.by_parameter("rule", lvq1=ncl.signed, glvq=relative, attract=ncl.winners)
    update = ncl.STEPS
    growth = ncl.first_samples_of_class
