"""Compact layout of small checkpoints: the document and all arrays in one piece, the compressible part deflated.

In a checkpoint of a few kilobytes, one tensor per array would spend a fifth of the file on names and offsets. In this
layout, the document, the integer arrays and the first byte of every float (sign and exponent, similar in all floats)
are deflated together, using a preset dictionary of common document text. The other bytes of floats are incompressible
noise and follow uncompressed. Arrays are read in the order in which they were written.

    deflated: number of doubles and of singles, document, 0, first bytes of doubles and of singles, all other arrays
    stored: the other 7 bytes of every double, the other 3 of every single
"""

from __future__ import annotations

import functools
import math
import struct
import zlib
from typing import Any

import numpy as np

from ccmem.io.persistence.tensorfile import DTYPES, NAMES, Array, FormatError, little_endian

MOST_DEFLATED = 1 << 20
"""Largest deflated part in bytes; larger checkpoints use one tensor per array and are never inflated."""
_FLOATS = {"F64": np.dtype([("rest", "V7"), ("front", "u1")]), "F32": np.dtype([("rest", "V3"), ("front", "u1")])}
_COUNTS = struct.Struct("<2I")
_WINDOW = -12
_DICTIONARY = (
    b'"labels_":{"$array":["I64","feature_names_in_":{"$strings":["block_names":[[0,"classes_":{"$array":["I64",2]},'
    b'"votes":{"$array":["U16",100,2]}},"random_state":{"$generator":{"bit_generator":"PCG64","state":{"state":'
    b'"inc":"has_uint32":0,"uinteger":0}}"recalls":["U8","missing":["F64",11,8]{"model":{"$estimator":"ModalClassifier",'
    b'"parameters":{"memory":{"fitted":{"memory_":{"last":{"$array":["F64"]},"rows":{"$array":["I64"]},"scale":null}'
    b'{"model":{"$estimator":"AdaptiveCCM","parameters":{"false_alarm_every":1000000.0,"learning_rate":0.35,'
    b'"max_units":null,"n_slots":25},{"fitted":{"state":{"$arrays":{"prototypes":["F32",100,8],"rates":["F64",0],'
    b'"wins":["U8",100],"unit_blocks":["U8",100],"errors":["F64",0],"means":["F32",4,8],"statistics":["F64",4,11],'
    b'"vectors":["F32",6,8],"scalars":["F64",8],"columns":["F64",4,6,8],"ages":["F64",4],"readings":["F64",25,8],'
    b'"ring":["F64",25,8]}},"counters":{"$counts":[["U16",20],"seen","units","blocks","pointer","alarm","size","batches",'
    b'"against","last","filled","certain","lead","rows","latest","fresh","stayed","reference_age","doubt","partial","watched"]},'
    b'"events":{"$array":["U16",5,7]},"n_features_in_":8}}}'
)
"""Preset deflate dictionary, part of the file format: a change makes old files unreadable. Likely text comes last."""
_TYPES = {name: np.dtype(ours) for name, ours in DTYPES.items()}
_MOST_AXES = 8


class Named(dict[str, Array]):
    """Collector that stores each array as a separate tensor, named after its place in the document."""

    def add(self, place: str, array: Array) -> str:
        """Store an array; return the reference to put into the document."""
        self[place] = array
        return place


class Joined:
    """Collector that stores all arrays in one piece."""

    def __init__(self) -> None:
        self._parts: dict[str, list[bytes]] = {"F64": [], "F32": [], "other": []}

    def add(self, place: str, array: Array) -> list[Any]:
        """Store an array; return its description for the document: type and shape."""
        if array.dtype not in NAMES:
            array = little_endian(array)
        name = NAMES[array.dtype]
        self._parts[name if name in _FLOATS else "other"].append(array.tobytes())
        return [name, *array.shape]

    def add_all(self, arrays: dict[Any, Any]) -> dict[str, list[Any]] | None:
        """Store all values if they are arrays with valid names; return their descriptions for the document."""
        described = {}
        for key, array in arrays.items():
            name = NAMES.get(array.dtype) if type(array) is np.ndarray else None
            if name is None or type(key) is not str or key[:1] == "$":
                return None
            described[key] = [name, *array.shape]
        for array, (name, *_) in zip(arrays.values(), described.values(), strict=True):
            self._parts[name if name in _FLOATS else "other"].append(array.tobytes())
        return described or None

    def piece(self, document: str) -> bytes | None:
        """Return the document and all arrays as one piece; None if they are too large."""
        fronts, rests, counts = [], [], []
        for name, layout in _FLOATS.items():
            data = b"".join(self._parts[name])
            floats = np.ndarray((len(data) // layout.itemsize,), layout, data)
            counts.append(len(floats))
            fronts.append(floats["front"].tobytes())
            rests.append(floats["rest"].tobytes())
        regular = b"".join([document.encode(), b"\0", *fronts, *self._parts["other"]])
        if len(regular) + _COUNTS.size >= MOST_DEFLATED:
            return None
        deflate = zlib.compressobj(2, zlib.DEFLATED, _WINDOW, 5, zdict=_DICTIONARY)
        return b"".join([deflate.compress(_COUNTS.pack(*counts) + regular), deflate.flush(), *rests])


class Separated:
    """Arrays of one piece, each returned as a writeable array when its description comes up."""

    def __init__(self, piece: Any) -> None:
        self.document, self._pieces = _inflated(piece)
        self._next = dict.fromkeys(self._pieces, 0)

    def __getitem__(self, description: Any) -> Array:
        if not (isinstance(description, list) and description and len(description) <= 1 + _MOST_AXES):
            raise FormatError("an array is not described by type and shape")
        dtype, shape, size, kind = _described(*description)
        place = kind if kind in self._pieces else "other"
        piece, start = self._pieces[place], self._next[place]
        end = self._next[place] = start + size
        if end > piece.nbytes:
            raise FormatError("its arrays are cut off")
        part: Array = np.ndarray(shape, dtype, piece, start)
        if kind == "BOOL" and part.view(np.uint8).max(initial=0) > 1:
            raise FormatError("an array holds a truth value that is neither 0 nor 1")
        return part.copy() if place == "other" else part  # floats are already copies of the data read

    def end(self) -> None:
        """Raise if the piece holds more data than the document described."""
        for name, piece in self._pieces.items():
            read, there = self._next[name], piece.nbytes
            if read != there:
                raise FormatError(f"it should hold {read} bytes of arrays ({name}) and holds {there}")


@functools.lru_cache(maxsize=1024, typed=True)
def _described(kind: Any, *shape: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, str]:
    """Return type, shape, size in bytes and part of the piece for an array description."""
    if not isinstance(kind, str) or kind not in _TYPES:
        raise FormatError(f"an array has the unknown type {kind!r}")
    for n in shape:
        if type(n) is not int or not 0 <= n < 2**62:
            raise FormatError("an array has impossible sizes")
    dtype = _TYPES[kind]
    return dtype, shape, math.prod(shape) * dtype.itemsize, kind


def _inflated(piece: Any) -> tuple[bytes, dict[str, Array]]:
    """Return document, doubles, singles and other arrays of a piece, as bytes."""
    inflate = zlib.decompressobj(_WINDOW, _DICTIONARY)
    try:
        regular = inflate.decompress(piece, MOST_DEFLATED)
    except zlib.error as problem:
        raise FormatError(f"it cannot be inflated ({problem})") from problem
    rest, end = inflate.unused_data, regular.find(b"\0", _COUNTS.size) + 1
    if not inflate.eof or not end:
        raise FormatError("it is cut off, or inflates to more than it may")
    doubles, singles = _COUNTS.unpack_from(regular)
    if len(rest) != 7 * doubles + 3 * singles or len(regular) < end + doubles + singles:
        raise FormatError("its arrays are cut off, or there are too many")
    pieces, place, start = {}, end, 0
    for (name, layout), n in zip(_FLOATS.items(), (doubles, singles), strict=True):
        floats = pieces[name] = np.empty(n, layout)
        floats["rest"] = np.ndarray((n,), layout["rest"], rest, start)
        floats["front"] = np.ndarray((n,), np.uint8, regular, place)
        place, start = place + n, start + n * layout["rest"].itemsize
    pieces["other"] = np.ndarray((len(regular) - place,), np.uint8, regular, place)
    return regular[_COUNTS.size : end - 1], pieces
