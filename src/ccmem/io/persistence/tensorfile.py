"""The safetensors format: 8 bytes of header length, a JSON header, raw little-endian arrays without gaps.

The format is small enough to implement here, so saving needs no further package. The safetensors library opens the
files, and the reader below validates every field.
"""

from __future__ import annotations

import json
import math
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_SIZES = {"F": (8, 4, 2), "I": (8, 4, 2, 1), "U": (8, 4, 2, 1)}
DTYPES = {f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind, sizes in _SIZES.items() for size in sizes}
DTYPES["BOOL"] = "|b1"
"""Type names in the file -> numpy type codes."""
NAMES = {np.dtype(ours): theirs for theirs, ours in DTYPES.items()}
_SMALL = ((1 << 8, np.uint8), (1 << 16, np.uint16), (1 << 32, np.uint32))
_LONGEST_HEADER = 100_000_000
"""Longest header in bytes, the limit of the safetensors library."""


class FormatError(ValueError):
    """File content that violates the safetensors format."""


def storable(array: Array) -> bool:
    """True if the format has a name for the type of ``array``."""
    return array.dtype in NAMES or array.dtype.newbyteorder("<") in NAMES


def narrowed(array: Array) -> Array:
    """Return non-negative integers in the smallest type that holds them all; arrays of other types unchanged."""
    if array.dtype != np.int64:
        return array
    most = np.maximum.reduce(array, axis=None, initial=0)  # the method takes twice as long on small arrays
    for bound, kind in _SMALL:
        if most < bound:
            return array.astype(kind)
    return array


def raw_bytes(array: Array) -> memoryview:
    """Return the memory of a contiguous array."""
    return memoryview(array.reshape(-1).view(np.uint8) if array.size else bytearray())  # type: ignore[arg-type]


def little_endian(array: Array) -> Array:
    """Return ``array`` in file layout: contiguous and little-endian."""
    if array.dtype in NAMES and array.flags.c_contiguous:
        return array
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)


def dump(arrays: dict[str, Array], metadata: dict[str, str]) -> tuple[bytes, list[Array]]:
    """Return the head of the file (length and header), and the arrays to write after the head, in order."""
    header: dict[str, Any] = {"__metadata__": metadata}
    ordered, offset = [], 0
    for name in sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)):  # keeps every array aligned
        array = little_endian(arrays[name])
        header[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(arrays[name].shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
        ordered.append(array)
    text = as_json(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, ordered


def read_header(file: BinaryIO, size: int) -> dict[str, Any]:
    """Return the header of a file of ``size`` bytes; the file position is then at the first array."""
    start = file.read(8)
    if len(start) < 8:
        raise FormatError("it is too short to be a safetensors file")
    length = int.from_bytes(start, "little")
    if length > min(size - 8, _LONGEST_HEADER):
        raise FormatError("it is not a safetensors file, or it is cut off inside its header")
    text = file.read(length)
    if len(text) < length:
        raise FormatError("it is cut off inside its header")
    header = parse_json(text)
    if not isinstance(header, dict):
        raise FormatError("its header is not a JSON object")
    return header


def read_arrays(file: BinaryIO, header: dict[str, Any], n_bytes: int) -> dict[str, Array]:
    """Return the arrays that ``header`` describes, copied from the ``n_bytes`` bytes that follow it."""
    described = ((name, entry) for name, entry in header.items() if name != "__metadata__")
    entries = sorted((_entry(name, entry) for name, entry in described), key=lambda entry: entry[3:])
    end = 0
    for name, _, _, first, last in entries:
        if first != end:
            raise FormatError(f"array {name!r} does not begin where the one before it ends")
        end = last
    if end != n_bytes:
        raise FormatError(f"it should hold {end} bytes of arrays and holds {n_bytes}: cut off or added to")
    arrays = {}
    for name, dtype, shape, first, last in entries:
        array = np.empty(shape, dtype)
        if file.readinto(raw_bytes(array)) != last - first:  # type: ignore[attr-defined]
            raise FormatError(f"it is cut off inside array {name!r}")
        if dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
            raise FormatError(f"array {name!r} holds a truth value that is neither 0 nor 1")
        arrays[name] = array
    return arrays


def _entry(name: str, entry: Any) -> tuple[str, np.dtype[Any], tuple[int, ...], int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"array {name!r} is not described by dtype, shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in DTYPES:
        raise FormatError(f"array {name!r} has the unknown type {kind!r}")
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < 2**62 for n in numbers):
            raise FormatError(f"array {name!r} has impossible sizes")
    dtype = np.dtype(DTYPES[kind])
    if len(offsets) != 2 or len(shape) > 8 or offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise FormatError(f"array {name!r} has a shape that does not fit its length")
    return name, dtype, tuple(shape), offsets[0], offsets[1]


def _unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(items)
    if len(result) < len(items):
        raise FormatError("a name occurs twice in its JSON")
    return result


def _no_constant(name: str) -> Any:
    raise FormatError(f"its JSON holds {name}")


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)  # created once, for speed
as_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
"""Compact JSON encoder that rejects NaN and infinity."""


def parse_json(text: bytes | str) -> Any:
    """Parse strict JSON: no NaN, no infinity, no duplicate names."""
    try:
        return _decoder.decode(text if isinstance(text, str) else text.decode())
    except FormatError:
        raise
    except (ValueError, RecursionError) as problem:
        raise FormatError(f"its JSON cannot be read ({problem})") from problem
