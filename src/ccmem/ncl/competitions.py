"""Competitions: selection of the winners of a row. Ties go to the lowest index; prediction has no bias and no veto."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.parameters import integer, number
from ccmem.core.typing import FloatArray, IntArray
from ccmem.kernels.competition import find_winners, lowest
from ccmem.kernels.jit import kernel_in_place
from ccmem.ncl.parts import Array, Parameter, competition, per_unit

LABEL = {"label": lambda model, capacity: np.empty(1, np.int64)}
UNIT_LABELS = {"labels": Array("unit", np.int64)}
VIGILANCE = Parameter(0.5, number(0.0, 1.0))


@competition(whole=True)
def nearest(state: Any, settings: Any, n: int, h: FloatArray, best: IntArray) -> int:
    """Select the unit with the lowest activation."""
    best[0] = lowest(h, n)
    return min(n, 1)


@competition(whole=True, parameters={"n_winners": Parameter(1, integer(1), int)})
def k_nearest(state: Any, settings: Any, n: int, h: FloatArray, best: IntArray) -> int:
    """Select the ``n_winners`` units with the lowest activations, nearest first."""
    k = min(n, settings.n_winners)
    if k > 1:
        find_winners(h[:n], False, best[:k])
    elif k == 1:
        best[0] = lowest(h, n)
    return k


@competition(whole=True, scratch={"scores": per_unit()})
def frequency_sensitive(state: Any, settings: Any, n: int, h: FloatArray, best: IntArray) -> int:
    """Select the unit with the lowest activation times wins (Ahalt et al. 1990); all units win about equally often."""
    for i in range(n):
        settings.scores[i] = h[i] * state.wins[i]
    best[0] = lowest(settings.scores, n)
    return min(n, 1)


@kernel_in_place
def update_shares(state: Any, settings: Any, n: int, h: FloatArray, winner: int) -> bool:
    """Update share[i] += B (1 if i is the nearest unit else 0 - share[i]), by the competition without bias."""
    near = lowest(h, n)
    for i in range(n):
        state.shares[i] -= settings.share_rate * state.shares[i]
    if near >= 0:
        state.shares[near] += settings.share_rate
    return False


@competition(
    whole=True,
    parameters={
        "bias": Parameter(10.0, number(0.0, open_above=True)),
        "share_rate": Parameter(1e-4, number(0.0, 1.0, open_below=True)),
    },
    state={"shares": Array("unit")},
    scratch={"scores": per_unit()},
    hooks={"after": update_shares},
)
def conscience(state: Any, settings: Any, n: int, h: FloatArray, best: IntArray) -> int:
    """Select the unit with the lowest h - C (1/N - share) (DeSieno 1988): units that win too often are handicapped."""
    for i in range(n):
        settings.scores[i] = h[i] - settings.bias * (1.0 / n - state.shares[i])
    best[0] = lowest(settings.scores, n)
    return min(n, 1)


@competition(whole=True, parameters={"vigilance": VIGILANCE})
def vigilant(state: Any, settings: Any, n: int, h: FloatArray, best: IntArray) -> int:
    """Select the most similar unit if its similarity exceeds the vigilance; otherwise no unit."""
    best[0] = lowest(h, n)
    return 1 if n > 0 and -h[best[0]] > settings.vigilance else 0


@kernel_in_place
def resonating(h: FloatArray, matches: FloatArray, n: int, vigilance: float) -> int:
    """Return the unit with the lowest h among those that match at least ``vigilance``; -1 if none does."""
    best = -1
    for i in range(n):
        if matches[i] >= vigilance and (best < 0 or h[i] < h[best]):
            best = i
    return best


@competition(whole=True, parameters={"vigilance": VIGILANCE})
def fuzzy_vigilant(state: Any, settings: Any, n: int, h: FloatArray, best: IntArray) -> int:
    """Select the unit of best choice among those with |I min w| / |I| >= vigilance: Fuzzy ART's search in one pass."""
    columns = state.prototypes.shape[1]
    for i in range(n):
        settings.overlaps[i] /= columns
    best[0] = resonating(h, settings.overlaps, n, settings.vigilance)
    return 1 if best[0] >= 0 else 0


@competition(
    whole=True,
    labelled=True,
    parameters={"vigilance": VIGILANCE, "match_tracking": Parameter(1e-10, number(0.0, open_above=True))},
    state=UNIT_LABELS,
    scratch=LABEL,
)
def match_tracking(state: Any, settings: Any, n: int, h: FloatArray, best: IntArray) -> int:
    """Select as :func:`fuzzy_vigilant`; a unit of another label raises the row's vigilance just above its match."""
    columns, vigilance = state.prototypes.shape[1], settings.vigilance
    for i in range(n):
        settings.overlaps[i] /= columns
    while vigilance <= 1.0:
        best[0] = resonating(h, settings.overlaps, n, vigilance)
        if best[0] < 0 or state.labels[best[0]] == settings.label[0]:
            return 1 if best[0] >= 0 else 0
        vigilance = settings.overlaps[best[0]] + settings.match_tracking
        settings.overlaps[best[0]] = -1.0
    return 0


@kernel_in_place
def nearest_labelled(state: Any, settings: Any, n: int, h: FloatArray, own: bool) -> int:
    """Return the nearest unit with the label of the row, or the nearest with another label; -1 if there is none."""
    best = -1
    for i in range(n):
        if (state.labels[i] == settings.label[0]) == own and (best < 0 or h[i] < h[best]):
            best = i
    return best


@competition(whole=True, labelled=True, state=UNIT_LABELS, scratch=LABEL)
def label_veto(state: Any, settings: Any, n: int, h: FloatArray, best: IntArray) -> int:
    """Select the nearest unit with the label of the row; all others are vetoed."""
    best[0] = nearest_labelled(state, settings, n, h, True)
    return 1 if best[0] >= 0 else 0
