"""Type aliases for arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[Any]
"""float32 or float64; kernels are compiled for both on demand."""
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

LARGEST = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e70}
"""Largest magnitude accepted for a reading. Sums of fourth powers are kept in float64, and must stay finite."""
