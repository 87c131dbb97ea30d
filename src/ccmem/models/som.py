"""Self-organising map (SOM): units on a grid; the neighbours of the winner move with it.

For sample t of the stream, the nearest unit w, and g[i] the distance of unit i to w on the grid:

    M[i] <- M[i] + v[i] a(t) exp(-g[i]^2 / (2 sigma(t)^2)) (x - M[i])      schedule="fading"
    a(t) = 1 / (1 + 2 t / horizon),   sigma(t) = sigma a(t)
    M[i] <- M[i] + v[i] d[i] exp(-g[i]^2 / (elasticity d[w])^2) (x - M[i]) schedule="elastic"

v[i] is the learning rate, times ``rate_decay`` per win. t counts all samples since learning began, so
:meth:`partial_fit` never restarts the schedule; ``horizon=inf`` keeps rates and sigma constant. The elastic map needs
no horizon (DSOM): d is the distance to x over the largest distance seen, and g is measured in diagonals of the grid, as
in the authors' code for square grids. A strength below the resolution of the data counts as zero. Ties go to the
lowest index.

Sources: T. Kohonen, "The self-organizing map", 1990; N. Rougier and Y. Boniface, "Dynamic self-organising map", 2011.
Equal to MiniSom to 1e-12 with the same start. Reference in plain numpy: ``tests/naive/som.py``.

>>> import numpy as np
>>> corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
>>> som = SelfOrganisingMap(2, 2, learning_rate=0.5, sigma=0.5).fit(np.vstack([corners, [[0.0, 0.4]]]))
>>> som.prototypes_.round(2)
array([[0.  , 0.2 ],
       [0.  , 0.96],
       [0.93, 0.03],
       [0.99, 0.99]])
"""

from __future__ import annotations

import math
from typing import Any

from ccmem import ncl
from ccmem.ncl.neighbourhoods import ON_MAP, POSITIVE, resolution, squared_gap


@ncl.neighbourhood(
    whole=True,
    parameters={
        "elasticity": ncl.Parameter(1.0, POSITIVE, about="Reach of the elastic neighbourhood; keeps units together.")
    },
    state={"span": ncl.Array("one")},
    scratch=ON_MAP,
)
def elastic_grid(state: Any, settings: Any, n: int, k: int) -> int:
    """Select all units, by d[i] exp(-gap^2 / (elasticity d[winner])^2); ``span`` is the largest squared distance."""
    h, units, strengths, w, m = settings.h, settings.units, settings.strengths, settings.best[0], 0
    corner = settings.positions[settings.positions.shape[0] - 1]
    for i in range(n):
        state.span[0] = max(state.span[0], h[i])
    reach = settings.elasticity * settings.elasticity * h[w] / max(state.span[0], 1e-300)
    reach *= max(1.0, corner[0] * corner[0] + corner[1] * corner[1])
    if reach > 0.0:  # if the winner equals the row, its neighbours do not move
        for i in range(n):
            units[m] = i
            strengths[m] = math.sqrt(h[i] / state.span[0]) * math.exp(-squared_gap(settings.positions, i, w) / reach)
            m += strengths[m] >= resolution(state)
    return m


class SelfOrganisingMap(ncl.Model, learning_rate=0.5):
    """Self-organising map on a rectangular or hexagonal grid."""

    neighbourhood = ncl.by_parameter(
        "schedule",
        "Rates and sigma that fade with the stream, or the horizon-free rule of the dynamic map.",
        fading=ncl.grid,
        elastic=elastic_grid,
    )
    rate = ncl.by_parameter("schedule", fading=ncl.scheduled, elastic=ncl.decaying)
    update = ncl.STEPS
    parameters = ncl.GRID

    @property
    def positions_(self) -> Any:
        """Position (x, y) of every unit on the grid; direct neighbours are 1 apart."""
        return ncl.positions(self.rows, self.columns, self.topology)
