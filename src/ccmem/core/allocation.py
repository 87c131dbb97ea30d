"""Arrays that begin at a cache line, several small ones in one buffer."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

CACHE_LINE = 64
SMALL = 1 << 16
"""Largest total size, in bytes, of arrays that share one buffer; growing one of them wastes at most this much."""
_MOST_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 40


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return zeros aligned to a cache line; a vector load that straddles two lines costs twice."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    check_size(size, f"{' x '.join(map(str, shape))} numbers")
    buffer = np.zeros(size + CACHE_LINE, np.uint8)
    start = -buffer.__array_interface__["data"][0] % CACHE_LINE  # faster than .ctypes
    return buffer[start : start + size].view(dtype).reshape(shape)


def aligned_zeros_of(layouts: list[tuple[tuple[int, ...], Any]]) -> list[Any]:
    """Allocate zeroed arrays of these shapes and types; small ones share one buffer, which saves allocations."""
    starts, end = [], 0
    for shape, dtype in layouts:
        starts.append(end)
        end += -(-math.prod(shape) * np.dtype(dtype).itemsize // CACHE_LINE) * CACHE_LINE
    if end > SMALL:
        return [aligned_zeros(*layout) for layout in layouts]
    buffer = aligned_zeros((end,), np.uint8)
    return [np.ndarray(*layout, buffer, start) for layout, start in zip(layouts, starts, strict=True)]


def check_size(n_bytes: int, what: str) -> None:
    """Raise if the machine lacks ``n_bytes`` of memory; overcommit would kill the process on first use."""
    if n_bytes > _MOST_BYTES:
        raise ValueError(f"{what} need {n_bytes / 2**30:,.0f} GiB, more than this machine has; choose smaller sizes")


def aligned(array: Any) -> Any:
    """Return ``array`` if it is writeable and aligned to a cache line, otherwise an aligned copy."""
    if array.flags.writeable and array.flags.c_contiguous and array.__array_interface__["data"][0] % CACHE_LINE == 0:
        return array
    fresh = aligned_zeros(array.shape, array.dtype)
    fresh[...] = array
    return fresh


def grown(array: Any, rows: int, fill: float = 0) -> Any:
    """Return a copy of ``array`` with ``rows`` rows; new rows are filled with ``fill``."""
    larger = aligned_zeros((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    larger[len(array) :] = fill
    return larger
