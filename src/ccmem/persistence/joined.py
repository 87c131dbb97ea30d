"""Small checkpoints: the document and all arrays in one piece, what is regular in it deflated.

A checkpoint of a few kilobytes would be a fifth names and offsets if each of its arrays were a tensor of its own. Here
the document, whole numbers and the first byte of every float (sign and exponent, much the same in all of them) are
deflated together, against a dictionary of what such documents say; the other bytes of floats, which are noise to any
compressor, follow as they are. Arrays are read in the order in which they were written.

    deflated: number of doubles and of singles, document, 0, first bytes of doubles and of singles, all other arrays
    as it is: the other 7 bytes of every double, the other 3 of every single
"""

from __future__ import annotations

import functools
import math
import struct
import zlib
from typing import Any

import numpy as np

from ccmem.persistence.tensorfile import DTYPES, NAMES, Array, FormatError, little_endian

MOST_DEFLATED = 1 << 20
"""What would be longer is no small checkpoint: it is written with a tensor for each array, and never inflated."""
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
"""Part of the format: a file is read with the dictionary that it was written with. What is likeliest comes last."""
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
        self._parts: dict[str, list[bytes]] = {"F64": [], "F32": [], "other": []}

    def add(self, place: str, array: Array) -> list[Any]:
        """Keep an array; return what the document says of it: type and shape."""
        if array.dtype not in NAMES:
            array = little_endian(array)
        name = NAMES[array.dtype]
        self._parts[name if name in _FLOATS else "other"].append(array.tobytes())
        return [name, *array.shape]

    def add_all(self, arrays: dict[Any, Any]) -> dict[str, list[Any]] | None:
        """Keep all values, if they are arrays with proper names; return what the document says of them."""
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
        """The document and all arrays; None if they are not small."""
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
    """The arrays of one piece, each handed over when its description comes up, to be written to."""

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
        return part.copy() if place == "other" else part  # floats have been copied from what was read

    def end(self) -> None:
        """Raise if there is more than was asked for."""
        for name, piece in self._pieces.items():
            read, there = self._next[name], piece.nbytes
            if read != there:
                raise FormatError(f"it should hold {read} bytes of arrays ({name}) and holds {there}")


class SeparatedOf2(Separated):
    """The same for checkpoints of schema 2, which has the document beside them and nothing deflated."""

    def __init__(self, document: Array, piece: Array) -> None:
        self.document, self._pieces, self._next = document.tobytes(), {"other": piece}, {"other": 0}


@functools.lru_cache(maxsize=1024, typed=True)
def _described(kind: Any, *shape: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, str]:
    """Type, shape, bytes and piece of an array."""
    if not isinstance(kind, str) or kind not in _TYPES:
        raise FormatError(f"an array has the unknown type {kind!r}")
    for n in shape:
        if type(n) is not int or not 0 <= n < 2**62:
            raise FormatError("an array has impossible sizes")
    dtype = _TYPES[kind]
    return dtype, shape, math.prod(shape) * dtype.itemsize, kind


def _inflated(piece: Any) -> tuple[bytes, dict[str, Array]]:
    """Document, doubles, singles and other arrays as bytes."""
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
