"""Files of earlier versions in the words of this one."""

from __future__ import annotations

from typing import Any

_ADAPTIVE = ("n_slots", "learning_rate", "false_alarm_every", "max_units")


def upgraded(name: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Class and parameters as they are called now: 0.1 had both block memories in one class, told by ``novelty``."""
    if name != "CCM" or "novelty" not in parameters:
        return name, parameters
    if parameters["novelty"] == "signature":
        return "AdaptiveCCM", {key: parameters[key] for key in _ADAPTIVE if key in parameters}
    return name, {k: v for k, v in parameters.items() if k not in ("novelty", "false_alarm_every", "max_units")}
