"""Competitions: selection of the winners of a row. Ties go to the lowest index; prediction has no bias and no veto."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.core.parameters import integer, number
from ccmem.core.typing import FloatArray
from ccmem.kernels.competition import find_winners, lowest
from ccmem.kernels.jit import kernel_in_place
from ccmem.ncl.parts import Array, Parameter, competition, per_unit

LABELLED: dict[str, Any] = {
    "labelled": True,
    "state": {"labels": Array("unit", np.int64)},
    "scratch": {"label": lambda model, capacity: np.empty(1, np.int64)},
}
"""Declarations of a part that compares the label of the row with those of units."""
VIGILANCE = Parameter(
    0.5,
    number(0.0, 1.0),
    about="Match that a unit needs (rho): the larger, the smaller and the more numerous the units.",
)


@competition(whole=True)
def nearest(state: Any, settings: Any, n: int) -> int:
    """Select the unit with the lowest activation."""
    settings.best[0] = lowest(settings.h, n)
    return min(n, 1)


@competition(
    whole=True,
    parameters={"n_winners": Parameter(1, integer(1), int, about="Number of the nearest units that move (K).")},
)
def k_nearest(state: Any, settings: Any, n: int) -> int:
    """Select the ``n_winners`` units with the lowest activations, nearest first."""
    k = min(n, settings.n_winners)
    if k > 1:
        find_winners(settings.h[:n], False, settings.best[:k])
    elif k == 1:
        settings.best[0] = lowest(settings.h, n)
    return k


@competition(whole=True, scratch={"scores": per_unit()})
def frequency_sensitive(state: Any, settings: Any, n: int) -> int:
    """Select the unit with the lowest activation times wins (Ahalt et al. 1990); all units win about equally often."""
    for i in range(n):
        settings.scores[i] = settings.h[i] * state.wins[i]
    settings.best[0] = lowest(settings.scores, n)
    return min(n, 1)


@kernel_in_place
def update_shares(state: Any, settings: Any, X: FloatArray, row: int, n: int, winner: int) -> bool:
    """Update share[i] += B (1 if i is the nearest unit else 0 - share[i]), by the competition without bias."""
    near = lowest(settings.h, n)
    for i in range(n):
        state.shares[i] -= settings.share_rate * state.shares[i]
    if near >= 0:
        state.shares[near] += settings.share_rate
    return False


@competition(
    whole=True,
    parameters={
        "bias": Parameter(
            10.0, number(0.0, open_above=True), about="Of the conscience: weight of a share (C), on the scale of h."
        ),
        "share_rate": Parameter(
            1e-4,
            number(0.0, 1.0, open_below=True),
            about="Of the conscience: rate at which shares follow the stream (B).",
        ),
    },
    state={"shares": Array("unit")},
    scratch={"scores": per_unit()},
    hooks={"after": update_shares},
)
def conscience(state: Any, settings: Any, n: int) -> int:
    """Select the unit with the lowest h - C (1/N - share) (DeSieno 1988): units that win too often are handicapped."""
    for i in range(n):
        settings.scores[i] = settings.h[i] - settings.bias * (1.0 / n - state.shares[i])
    settings.best[0] = lowest(settings.scores, n)
    return min(n, 1)


SIMILARITY = Parameter(
    0.5, number(-1.0, 1.0), about="Similarity that a unit must exceed (rho), from -1 to 1 for directions."
)


@competition(whole=True, parameters={"vigilance": SIMILARITY})
def vigilant(state: Any, settings: Any, n: int) -> int:
    """Select the most similar unit if its similarity exceeds the vigilance; otherwise no unit."""
    settings.best[0] = lowest(settings.h, n)
    return 1 if n > 0 and -settings.h[settings.best[0]] > settings.vigilance else 0


@kernel_in_place
def resonating(settings: Any, n: int, vigilance: float) -> int:
    """Return the unit with the lowest h among those that match at least ``vigilance``; -1 if none does."""
    best = -1
    for i in range(n):
        if settings.overlaps[i] >= vigilance and (best < 0 or settings.h[i] < settings.h[best]):
            best = i
    return best


@competition(whole=True, parameters={"vigilance": VIGILANCE})
def fuzzy_vigilant(state: Any, settings: Any, n: int) -> int:
    """Select the best unit among those with ``|I min w| / |I| >= vigilance``: Fuzzy ART's search in one pass."""
    settings.best[0] = resonating(settings, n, settings.vigilance)
    return 1 if settings.best[0] >= 0 else 0


@kernel_in_place
def nearest_labelled(state: Any, settings: Any, n: int, own: bool) -> int:
    """Return the nearest unit with the label of the row, or the nearest with another label; -1 if there is none."""
    best = -1
    for i in range(n):
        if (state.labels[i] == settings.label[0]) == own and (best < 0 or settings.h[i] < settings.h[best]):
            best = i
    return best


@competition(whole=True, **LABELLED)
def label_veto(state: Any, settings: Any, n: int) -> int:
    """Select the nearest unit with the label of the row; all others are vetoed."""
    settings.best[0] = nearest_labelled(state, settings, n, True)
    return 1 if settings.best[0] >= 0 else 0
