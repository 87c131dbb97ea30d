"""What a checkpoint of an AdaptiveCCM leaves out: rates that follow from wins, as they do until units are merged; and
what there is about missing readings, as long as none was missing."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ccmem._typing import FloatArray

MOST_WINS = 1 << 16
"""Of units with more wins rates are stored."""


@lru_cache(maxsize=8)
def rates_by_wins(learning_rate: float) -> FloatArray:
    """The rate of a unit that was opened with ``learning_rate`` after 0, 1, 2, ... wins, as the kernel counts it."""
    rates = [float(learning_rate)]
    for _ in range(MOST_WINS):
        rates.append(rates[-1] / (1.0 + 0.5 * rates[-1]))
    return np.array(rates)


def without_rates(fields: dict[str, Any], learning_rate: float) -> dict[str, Any]:
    """``fields`` without rates, if these follow from wins to the last bit."""
    state = fields["state"]
    expected = _expected(state["wins"], learning_rate)
    if expected is None or not (expected == state["rates"]).all():
        return fields
    state["rates"] = expected[:0]
    return fields


def with_rates(fields: Any, learning_rate: Any) -> Any:
    """What :func:`without_rates` was given; anything else as it is, for whoever reads it next to say what is wrong."""
    try:
        state = fields["state"]
        if len(state["rates"]) or not len(state["wins"]):
            return fields
        expected = _expected(state["wins"], learning_rate)
        return fields if expected is None else {**fields, "state": {**state, "rates": expected}}
    except (TypeError, LookupError, ValueError, AttributeError):
        return fields


def without_missing(fields: dict[str, Any]) -> dict[str, Any]:
    """``fields`` without what is known of missing readings, if that is nothing."""
    if not len(fields["state"]["missing"]):
        del fields["state"]["missing"]
    return fields


def with_missing(fields: Any) -> Any:
    """What :func:`without_missing` was given; anything else as it is."""
    try:
        state = fields["state"]
        if "missing" in state:
            return fields
        return {**fields, "state": {**state, "missing": np.zeros((0, state["means"].shape[1]))}}
    except (TypeError, LookupError, AttributeError):
        return fields


def without_errors(fields: Any) -> Any:
    """``fields`` of a memory without a bound, which has no errors of units, as files of 0.1 say it has."""
    try:
        state = fields["state"]
        return {**fields, "state": {**state, "errors": state["errors"][:0]}} if len(state["errors"]) else fields
    except (TypeError, LookupError):
        return fields


def _expected(wins: Any, learning_rate: Any) -> FloatArray | None:
    kind = wins.dtype.kind
    if kind not in "iu" or not wins.size or (kind == "i" and wins.min() < 0) or wins.max() > MOST_WINS:
        return None
    return rates_by_wins(learning_rate)[wins]
