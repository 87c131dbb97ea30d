"""Arrays one after the other in one piece, described where the document names them.

A checkpoint of a few kilobytes would be a fifth names and offsets if each of its arrays were a tensor of its own, and
take twice as long to read. Arrays are read in the order in which they were written.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ccmem.persistence.tensorfile import DTYPES, NAMES, Array, FormatError, little_endian

_TYPES = {name: np.dtype(ours) for name, ours in DTYPES.items()}
_MOST_AXES = 8


class Named(dict[str, Array]):
    """Arrays that are tensors of their own, under the place they have in the document."""

    def add(self, place: str, array: Array) -> str:
        """Keep an array; return what the document calls it."""
        self[place] = array
        return place


class Joined:
    """Arrays to be written in one piece."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, place: str, array: Array) -> list[Any]:
        """Keep an array; return what the document says of it: type and shape."""
        if array.dtype not in NAMES:
            array = little_endian(array)
        self._parts.append(array.tobytes())
        return [NAMES[array.dtype], *array.shape]

    def join(self) -> Array:
        """All of them."""
        return np.frombuffer(b"".join(self._parts), np.uint8)


class Separated:
    """The arrays of one piece, each handed over when its description comes up, a copy."""

    def __init__(self, piece: Array) -> None:
        self._piece, self._next = piece, 0

    def __getitem__(self, description: Any) -> Array:
        if not (isinstance(description, list) and description and len(description) <= 1 + _MOST_AXES):
            raise FormatError("an array is not described by type and shape")
        kind, *shape = description
        if not isinstance(kind, str) or kind not in _TYPES:
            raise FormatError(f"an array has the unknown type {kind!r}")
        for n in shape:
            if type(n) is not int or not 0 <= n < 2**62:
                raise FormatError("an array has impossible sizes")
        dtype = _TYPES[kind]
        end = self._next + math.prod(shape) * dtype.itemsize
        if end > len(self._piece):
            raise FormatError("its arrays are cut off")
        if kind == "BOOL" and self._piece[self._next : end].max(initial=0) > 1:
            raise FormatError("an array holds a truth value that is neither 0 nor 1")
        part: Array = np.ndarray(shape, dtype, self._piece, self._next)
        self._next = end
        return part.copy()

    def end(self) -> None:
        """Raise if there is more than was asked for."""
        if self._next != len(self._piece):
            raise FormatError(f"it should hold {self._next} bytes of arrays and holds {len(self._piece)}")
