"""Abstention: replacing uncertain predictions by None."""

from __future__ import annotations

import numbers
from typing import Any

from ccmem.core.typing import BoolArray


def check_reject(owner: str, reject: Any) -> None:
    """Raise unless ``reject`` is None or a probability."""
    if reject is None:
        return
    if isinstance(reject, bool) or not isinstance(reject, numbers.Real) or not 0.0 <= float(reject) <= 1.0:
        raise ValueError(f"{owner}: reject={reject!r} is not possible; it must be a probability from 0 to 1, or None")


def rejected(labels: Any, withheld: BoolArray) -> Any:
    """Return the labels as objects, with None where ``withheld`` is True."""
    answers = labels.astype(object)
    answers[withheld] = None
    return answers
