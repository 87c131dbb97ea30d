"""Abstention: replacing uncertain predictions by None, and recognising rows that are far from everything known."""

from __future__ import annotations

import numbers
from statistics import NormalDist
from typing import Any

import numpy as np

from ccmem.core.typing import BoolArray, FloatArray

TINY = 1e-30
"""Smallest distance whose logarithm is taken."""
MOST_SKEWED = 0.5
"""Largest skewness that is believed: a few hundred rows estimate it with an error of about 0.2, and small levels follow
it closely. With 1.0, up to 4 % of known rows were called unknown at level 0.001, with 0.5 up to 1.6 %."""


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


def unusually_far(distances: FloatArray, moments: FloatArray, level: float) -> BoolArray:
    """Return True for distances that are exceeded with probability ``level``, False if no distance is known yet.

    ``moments`` are weight, mean, variance and third central moment of the logarithms of known distances. Their
    distribution is taken as Pearson's type III, whose quantiles follow from the skewness (Wilson and Hilferty, 1931).
    """
    _, mean, variance, third = moments
    if not variance > 0:
        return np.zeros(len(distances), np.bool_)
    skewness = min(max(third / variance**1.5, -MOST_SKEWED), MOST_SKEWED)
    z = NormalDist().inv_cdf(1.0 - level)
    if skewness:
        z = 2.0 / skewness * ((1.0 + skewness * z / 6.0 - skewness**2 / 36.0) ** 3 - 1.0)
    return np.asarray(np.log(distances + TINY) > mean + z * np.sqrt(variance))
