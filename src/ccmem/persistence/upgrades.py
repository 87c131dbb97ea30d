"""Files of earlier versions in the words of this one."""

from __future__ import annotations

from typing import Any

import numpy as np

_ADAPTIVE = ("n_slots", "learning_rate", "false_alarm_every", "max_units")


def upgraded(name: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Class and parameters as they are called now: 0.1 had both block memories in one class, told by ``novelty``."""
    if name != "CCM" or "novelty" not in parameters:
        return name, parameters
    if parameters["novelty"] == "signature":
        return "AdaptiveCCM", {key: parameters[key] for key in _ADAPTIVE if key in parameters}
    return name, {k: v for k, v in parameters.items() if k not in ("novelty", "false_alarm_every", "max_units")}


_SINCE_COLUMNS = ("certain", "lead", "rows", "latest", "fresh", "stayed", "referred", "doubt", "partial")


def with_columns(fields: Any) -> Any:
    """What an AdaptiveCCM of 0.1 had learned, knowing nothing of its columns yet; anything else as it is."""
    from ccmem.models.adaptive.columns import N_AGES, N_KNOWN, N_READINGS, N_SLOT, RING

    try:
        state, counters = fields["state"], fields["counters"]
        if "columns" in state or _SINCE_COLUMNS[0] in counters:
            return fields
        rows, width = state["means"].shape
        empty = {
            "scalars": np.append(state["scalars"], 0.0),
            "columns": np.zeros((rows, 2 * N_KNOWN, width)),
            "ages": np.zeros((rows, N_AGES)),
            "readings": np.zeros((N_READINGS, width)),
            "ring": np.zeros((RING * N_SLOT, width)),
        }
        return {**fields, "state": {**state, **empty}, "counters": {**counters, **dict.fromkeys(_SINCE_COLUMNS, 0)}}
    except (TypeError, KeyError, AttributeError, ValueError):
        return fields  # damaged: whoever reads it next says where
