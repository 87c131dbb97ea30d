"""Simplified ARTMAP: Fuzzy ART whose units have labels, with match tracking.

The equations of :mod:`ccmem.models.fuzzy_art` apply, with these changes for a sample x with label y:

    resonance needs |I min w[i]| / d >= rho and label[i] = y
    match tracking: if the unit that matches has another label,   rho <- its match + match_tracking, for this sample
    if none resonates:                                            I becomes a new unit with label y

Ties go to the lowest index. A sample without a label is not learned. Once ``max_units`` is reached, a sample that
resonates with no unit replaces the least used unit of the label with the most units, if that label has at least two
units more than y; otherwise the sample is rejected. So a label that appears late gets its share of the units, and no two
labels take units from each other in turn. This is a choice of this implementation; below the bound it has no effect.

Sources: G. Carpenter et al., "Fuzzy ARTMAP", 1992; T. Kasuba,
"Simplified fuzzy ARTMAP", 1993. Equal to artlib's SimpleARTMAP exactly. Reference in plain numpy:
``tests/naive/artmap.py``.

>>> import numpy as np
>>> X, y = np.array([[0.1], [0.3], [0.9]]), ["a", "b", "b"]
>>> model = ARTMAP(vigilance=0.0).fit(X, y)
>>> model.unit_labels_.tolist(), model.predict([[0.15], [0.7]]).tolist()
(['a', 'b'], ['a', 'b'])
"""

from __future__ import annotations

from ccmem import ncl


class ARTMAP(ncl.Classifier):
    """Simplified fuzzy ARTMAP: boxes with labels. Scale every column to [0, 1] first.

    Parameters
    ----------
    max_units : int or None, default=None
        Bound on the number of units; None means no bound.
    vigilance : float, default=0.0
        Match that a unit needs before match tracking (rho), from 0 to 1.
    match_tracking : float, default=1e-10
        Amount by which the vigilance exceeds the match of a unit with another label (epsilon).
    choice : float, default=1e-3
        Choice parameter (alpha): small values prefer the box that would grow least.
    learning_rate : float, default=1.0
        Fraction of the distance by which a box grows towards a sample outside (beta); 1 is fast learning.

    Attributes
    ----------
    classes_, unit_labels_
        Labels seen so far, sorted; the label of every unit.
    memory_
        The units: ``memory_.prototypes_`` are the lower corners of the boxes.
    """

    activation = ncl.fuzzy_minimum
    competition = ncl.match_tracking
    rate = ncl.constant
    update = ncl.fuzzy
    growth = ncl.unmatched_labelled

    def __init__(
        self,
        max_units: int | None = None,
        *,
        vigilance: float = 0.0,
        match_tracking: float = 1e-10,
        choice: float = 1e-3,
        learning_rate: float = 1.0,
    ) -> None:
        self._assign(locals())
