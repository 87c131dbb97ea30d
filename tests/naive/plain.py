"""Slow, obvious arithmetic for the naive twins of the kernels. Shares no code with the kernels it checks."""

from __future__ import annotations

import math

import numpy as np

from ccmem.core.typing import FloatArray


def lane_sum(terms: FloatArray) -> float:
    """Sum in the order that :mod:`ccmem.kernels.competition` promises: 32 lanes, then halves."""
    lanes = [terms.dtype.type(0)] * 32
    for i, term in enumerate(terms):
        lanes[i % 32] = lanes[i % 32] + term
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [lanes[i] + lanes[i + half] for i in range(half)]
    return float(lanes[0])


def dot(a: FloatArray, b: FloatArray) -> float:
    """a . b"""
    return lane_sum(a * b)


def distance_power(a: FloatArray, b: FloatArray, p: float) -> float:
    """Sum of |a - b|^p (p = inf: the largest)."""
    difference = np.abs(a - b)
    if p == math.inf:
        return float(difference.max())
    if p == 1 or p == 2:
        return lane_sum(difference**p)
    total = 0.0
    for value in difference:
        total += math.pow(value, p)
    return total


def distance(a: FloatArray, b: FloatArray, p: float) -> float:
    """||a - b||_p"""
    power = distance_power(a, b, p)
    if p == 2:
        return math.sqrt(power)
    return power if p in (1, math.inf) else math.pow(power, 1 / p)


def unit_scale(x: FloatArray, epsilon: float) -> float:
    """1 / (|x| + epsilon)"""
    return 1.0 / (math.sqrt(dot(x, x)) + epsilon)


def faded(m: FloatArray) -> FloatArray:
    """m, where numbers whose square is no normal number are 0."""
    return np.where(np.abs(m) < np.sqrt(np.finfo(m.dtype).tiny), m.dtype.type(0), m)


def renormalised(m: FloatArray, epsilon: float) -> FloatArray:
    """m / (|m| + epsilon), after what has faded is 0."""
    m = faded(m)
    length = math.sqrt(dot(m, m)) + epsilon
    return m * m.dtype.type(1.0 / length) if length > 0 else m
