"""Memories of 0.1, which knew nothing of columns and looked at batches of 20."""

from __future__ import annotations

from typing import Any

import numpy as np

from ccmem.models.adaptive.columns import N_BLOCK, N_READINGS, N_SLOT, RING
from ccmem.models.adaptive.decision import BATCH_SHARE

_OF_BATCHES = ("alarm", "batches", "against", "last", "filled")
"""What 0.1 was counting towards batches longer than those of today: it begins anew."""
_SINCE_COLUMNS = ("certain", "lead", "rows", "latest", "fresh", "stayed", "reference_age", "doubt", "partial")


def with_columns(fields: Any) -> Any:
    """What an AdaptiveCCM of 0.1 had learned, knowing nothing of its columns yet; anything else as it is."""
    try:
        state, counters = fields["state"], fields["counters"]
        if "columns" in state or _SINCE_COLUMNS[0] in counters:
            return fields
        rows, width = state["means"].shape
        scalars = np.append(state["scalars"], 0.0)
        scalars[BATCH_SHARE] = 0.0
        empty = {
            "scalars": scalars,
            "columns": np.zeros((rows, N_BLOCK, width)),
            "ages": np.zeros(rows),
            "readings": np.zeros((N_READINGS, width)),
            "ring": np.zeros((RING * N_SLOT, width)),
        }
        return {
            **fields,
            "state": {**state, **empty},
            "counters": {**counters, **dict.fromkeys((*_OF_BATCHES, *_SINCE_COLUMNS, "watched", "began", "off"), 0)},
        }
    except (TypeError, LookupError, AttributeError, ValueError):
        return fields  # damaged: whoever reads it next says where
