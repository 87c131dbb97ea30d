"""Which witness could notice no change whatever: a limit that nothing can exceed, or nothing to look at.

*Direction* is blind where both of its limits are beyond what directions can be apart: means of unit vectors lie within
the unit ball, so that none is further than 1 + \\|m\\| from m. A block that wanders that far gets there. *Columns*
have no such limit, each being a multiple of what the column has shown. They are blind where every column is silent, or
where a thousand rows have passed without four batches to learn a variance from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.models._blocks import POINTER
from ccmem.models.adaptive.columns import LATEST, N_SLOT, PRIOR, SILENT, STAYED, WATCHED
from ccmem.models.adaptive.decision import RECENT_WEIGHT, REFERENCE, REFERENCE_SHARED, REFERENCE_WEIGHT, SHARED_WEIGHT
from ccmem.models.adaptive.signature import COUNT, DRIFT, WANDER, WEIGHT, limit

PATIENCE = 1000
"""Rows after which a block should know its columns."""
MANY = 10_000
"""Rows of a stream after which a memory that is blind says so."""
WARNING = (
    "this memory can notice no change any more: after {:,} samples its direction wanders as far as directions can be "
    "apart and its columns are silent; see blind_, and look at what the stream delivers"
)


def blind_witnesses(state: Any, settings: Any) -> tuple[str, ...]:
    """Of ``"direction"`` and ``"columns"`` those that cannot notice anything now."""
    counters = state.counters
    silent = bool(counters[STAYED]) and bool((state.ring[N_SLOT * counters[LATEST] + 2] > 0.1 * SILENT).all())
    young = settings.batch * counters[STAYED] >= PATIENCE and counters[WATCHED] < PRIOR
    found = ("direction",) if silent or _beyond_reach(state, settings) else ()
    return (*found, "columns") if silent or young else found


def _beyond_reach(state: Any, settings: Any) -> bool:
    """Whether neither limit of the recent mean can be exceeded."""
    mean, statistics = state.means[state.counters[POINTER]], state.statistics[state.counters[POINTER]]
    scalars = state.scalars
    if statistics[COUNT] < settings.youngest:
        return False
    far = scalars[RECENT_WEIGHT] - 2.0 * scalars[SHARED_WEIGHT] + statistics[WEIGHT]
    near = scalars[RECENT_WEIGHT] - 2.0 * scalars[REFERENCE_SHARED] + scalars[REFERENCE_WEIGHT]
    return all(
        limit(statistics, which, float(weight), settings.z_suspect, settings.z_wander)
        > (1.0 + float(np.linalg.norm(centre))) ** 2
        for which, weight, centre in ((WANDER, far, mean), (DRIFT, near, state.vectors[REFERENCE]))
    )
