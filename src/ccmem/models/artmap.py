"""Simplified ARTMAP: Fuzzy ART whose units have labels, with match tracking.

The equations of :mod:`ccmem.models.fuzzy_art` apply, with these changes for a sample x with label y:

    resonance needs |I min w[i]| / d >= rho and label[i] = y
    match tracking: if the unit that matches has another label,   rho <- its match + match_tracking, for this sample
    if none resonates:                                            I becomes a new unit with label y

Ties go to the lowest index. A sample without a label is not learned. Once ``max_units`` is reached (a choice of this
implementation), a sample that resonates with no unit replaces the least used unit of the label with the most units, if
that label has at least two units more than y; otherwise the sample is rejected. A late label thus gets its share, and
no two labels take units from each other in turn. Sources: G. Carpenter et al., "Fuzzy ARTMAP", 1992; T. Kasuba,
"Simplified fuzzy ARTMAP", 1993. Equal to artlib's SimpleARTMAP exactly. Reference: ``tests/naive/artmap.py``.

>>> import numpy as np
>>> X, y = np.array([[0.1], [0.3], [0.9]]), ["a", "b", "b"]
>>> model = ARTMAP(vigilance=0.0).fit(X, y)
>>> model.unit_labels_.tolist(), model.predict([[0.15], [0.7]]).tolist()
(['a', 'b'], ['a', 'b'])
"""

from __future__ import annotations

from typing import Any

from ccmem import ncl
from ccmem.kernels.jit import kernel_in_place
from ccmem.ncl.competitions import LABELLED, VIGILANCE, resonating
from ccmem.ncl.growths import MAX_UNITS


@ncl.competition(
    whole=True,
    parameters={
        "vigilance": VIGILANCE,
        "match_tracking": ncl.Parameter(
            1e-10, ncl.number(0.0, open_above=True), about="Amount by which rho exceeds the match (epsilon)."
        ),
    },
    **LABELLED,
)
def match_tracking(state: Any, settings: Any, n: int) -> int:
    """Select as in Fuzzy ART; a unit of another label raises the row's vigilance just above its match."""
    best, matches, vigilance = settings.best, settings.overlaps, settings.vigilance
    while vigilance <= 1.0:
        best[0] = resonating(settings, n, vigilance)
        if best[0] < 0 or state.labels[best[0]] == settings.label[0]:
            return 1 if best[0] >= 0 else 0
        vigilance = matches[best[0]] + settings.match_tracking
        matches[best[0]] = -1.0
    return 0


@kernel_in_place
def replaceable(state: Any, settings: Any, n: int) -> int:
    """Return the least used unit of the label with the most units, or -1 if it has less than two more than y has."""
    firsts, members = settings.units, settings.strengths  # first unit of each label, and the number of its units
    own, most, least = 0, 0, -1
    for i in range(n):
        members[i], firsts[i] = 0.0, 0
        while state.labels[firsts[i]] != state.labels[i]:
            firsts[i] += 1
        members[firsts[i]] += 1.0
        own += state.labels[i] == settings.label[0]
    for i in range(n):
        most = i if members[i] > members[most] else most
    for i in range(n):
        if firsts[i] == most and (least < 0 or state.wins[i] < state.wins[least]):
            least = i
    return least if members[most] > own + 1.0 else -1


@kernel_in_place
def labelled_place(state: Any, settings: Any, n: int) -> int:
    """Return the unit that the row becomes, with the label of the row and without wins."""
    unit = n if n < settings.limit else replaceable(state, settings, n)
    state.labels[unit], state.wins[unit] = settings.label[0], 0
    return unit


@ncl.growth(whole=True, gradual=True, parameters={"max_units": MAX_UNITS}, hooks={"place": labelled_place}, **LABELLED)
def unmatched_labelled(state: Any, settings: Any, n: int, k: int) -> bool:
    """True if no unit won and there is room for one more, or at the bound a unit to replace."""
    return k == 0 and (n < settings.limit or replaceable(state, settings, n) >= 0)


class ARTMAP(ncl.Classifier, vigilance=0.0, learning_rate=1.0):
    """Simplified fuzzy ARTMAP: boxes with labels. Scale every column to [0, 1] first.

    ``memory_.prototypes_`` are the lower corners of the boxes. A learning rate of 1 is fast learning (beta).
    """

    activation = ncl.fuzzy_minimum
    competition = match_tracking
    rate = ncl.constant
    update = ncl.fuzzy
    growth = unmatched_labelled
