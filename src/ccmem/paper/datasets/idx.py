"""IDX files, the format of MNIST: read with every check that tells a broken file from a good one.

>>> images = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
>>> bool((parse_idx(idx_bytes(images), "here") == images).all())
True
>>> parse_idx(idx_bytes(images)[:-1], "here")
Traceback (most recent call last):
    ...
ValueError: here: corrupted or truncated: its header promises 2 x 2 x 2 bytes (8), it holds 7; get the file again
"""

from __future__ import annotations

import gzip
import hashlib
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ByteArray = npt.NDArray[np.uint8]

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
FILES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)

LARGEST = 1 << 28
"""Size limit in bytes; no file of these data sets is larger."""
_UNSIGNED_BYTES = b"\x00\x00\x08"


def read_content(path: Path) -> bytes:
    """Return the content of a file, decompressed if gzipped, up to the size limit."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        try:
            content = (gzip.GzipFile(fileobj=file) if packed else file).read(LARGEST + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
            raise ValueError(f"{path}: corrupted or truncated gzip file ({problem}); get the file again") from problem
    if len(content) > LARGEST:
        raise ValueError(f"{path}: holds more than {LARGEST >> 20} MiB, which no data set here does; get it again")
    return content


def parse_idx(content: bytes, place: str) -> ByteArray:
    """Parse the bytes of an IDX file; ``place`` names the file in errors."""
    if len(content) < 8 or content[:3] != _UNSIGNED_BYTES or not 1 <= content[3] <= 4:
        raise ValueError(
            f"{place}: not an IDX file of unsigned bytes (it begins with {content[:4]!r}); get the file again"
        )
    n_axes = content[3]
    start = 4 + 4 * n_axes
    if len(content) < start:
        raise ValueError(f"{place}: corrupted or truncated: it ends inside its header; get the file again")
    shape = struct.unpack(f">{n_axes}I", content[4:start])
    size = int(np.prod(shape, dtype=np.uint64))
    if len(content) - start != size:
        raise ValueError(
            f"{place}: corrupted or truncated: its header promises {' x '.join(map(str, shape))} bytes ({size}), "
            f"it holds {len(content) - start}; get the file again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def idx_bytes(array: ByteArray) -> bytes:
    """Encode ``array`` as an IDX file."""
    header: Any = _UNSIGNED_BYTES + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return bytes(header + np.ascontiguousarray(array, np.uint8).tobytes())


def digest(content: bytes) -> str:
    """Return the SHA-256 digest in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
