"""Rates: step size of a unit, and its change after a win. Adam and RMSprop: :mod:`ccmem.ncl.updates`.

The initial rates of the state are ``learning_rate``.
"""

from __future__ import annotations

from typing import Any

from ccmem.core.parameters import number
from ccmem.core.state import SEEN
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import count_win
from ccmem.ncl.neighbourhoods import HORIZON, faded
from ccmem.ncl.parts import Parameter, rate
from ccmem.ncl.parts import count as count

UNIT_INTERVAL = number(0.0, 1.0, open_below=True)
DECAY = {
    "learning_rate": Parameter(
        0.1, UNIT_INTERVAL, about="Fraction of the distance to the sample that a winner moves, at its first win."
    ),
    "rate_decay": Parameter(1.0, UNIT_INTERVAL, about="Factor of a unit's rate at each win."),
}


@kernel_in_place
def decay(state: Any, settings: Any, unit: int) -> None:
    """Count a win and multiply the unit's rate by ``rate_decay``."""
    count_win(state.rates, state.wins, unit, settings.rate_decay)


@kernel_in_place
def average(state: Any, settings: Any, unit: int) -> None:
    """Count a win and set the next rate to 1 / (wins + 1)."""
    state.wins[unit] += 1
    state.rates[unit] = 1.0 / (state.wins[unit] + 1.0)


@rate(parameters={"learning_rate": DECAY["learning_rate"]})
def constant(state: Any, settings: Any, unit: int) -> float:
    """Return ``learning_rate``."""
    return float(settings.learning_rate)


@rate(parameters=DECAY, hooks={"won": decay})
def decaying(state: Any, settings: Any, unit: int) -> float:
    """Return ``learning_rate`` times ``rate_decay`` to the power of the unit's wins."""
    return float(state.rates[unit])


@rate(hooks={"won": average})
def harmonic(state: Any, settings: Any, unit: int) -> float:
    """Return 1 / n at the n-th sample of the unit, which makes the unit the mean of its samples."""
    return 1.0 / (state.wins[unit] + 1.0)


@rate(parameters={**DECAY, "horizon": HORIZON}, hooks={"won": decay})
def scheduled(state: Any, settings: Any, unit: int) -> float:
    """Return the rate of :func:`decaying`, divided by 1 + 2 t / horizon at sample t of the stream."""
    return faded(state.rates[unit], state.counters[SEEN], settings.horizon)
