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
    parameters={"elasticity": ncl.Parameter(1.0, POSITIVE)},
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


class SelfOrganisingMap(ncl.Model):
    """Self-organising map on a rectangular or hexagonal grid.

    Parameters
    ----------
    rows, columns : int, default=4, 4
        Size of the grid. Unit i is in row ``i // columns`` and column ``i % columns``.
    topology : "rectangular" or "hexagonal", default="rectangular"
        Form of the grid. The odd rows of a hexagonal grid are shifted to the right by half a column.
    schedule : "fading" or "elastic", default="fading"
        Rates and sigma that fade with the stream, or the horizon-free rule of the dynamic map.
    learning_rate : float, default=0.5
        Fraction of the distance to the sample that the winner moves at the start.
    rate_decay : float, default=1.0
        Factor of a unit's rate at each win.
    sigma : float, default=0.5
        Width of the neighbourhood on the grid at the start (fading).
    horizon : float, default=10000
        Number of samples after which rate and sigma are a third of their initial values (fading); ``inf``: constant.
    elasticity : float, default=1.0
        Reach of the neighbourhood (elastic): large values keep units together.
    p : float, default=2.0
        Order of the distance, from 1 to 16, or infinity.
    step : "hebbian", "adam" or "rmsprop", default="hebbian"
        Update of a unit; see :class:`ccmem.IncrementalWTA`.
    beta_1, beta_2 : float, default=0.9, 0.999
        Memory of the moments of Adam and RMSprop.
    init : "first" or array of shape (rows * columns, n_features), default="first"
        Start of the prototypes: the first distinct samples of the stream as they arrive, or as given.
    """

    neighbourhood = ncl.by_parameter("schedule", fading=ncl.grid, elastic=elastic_grid)
    rate = ncl.by_parameter("schedule", fading=ncl.scheduled, elastic=ncl.decaying)
    update = ncl.STEPS
    parameters = ncl.GRID

    def __init__(
        self,
        rows: int = 4,
        columns: int = 4,
        *,
        topology: str = "rectangular",
        schedule: str = "fading",
        learning_rate: float = 0.5,
        rate_decay: float = 1.0,
        sigma: float = 0.5,
        horizon: float = 10_000,
        elasticity: float = 1.0,
        p: float = 2.0,
        step: str = "hebbian",
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        init: Any = "first",
    ) -> None:
        self._assign(locals())

    @property
    def positions_(self) -> Any:
        """Position (x, y) of every unit on the grid; direct neighbours are 1 apart."""
        return ncl.positions(self.rows, self.columns, self.topology)
