"""A data set as published bytes: the catalogue, the IDX files of MNIST, and the checks that detect broken files.

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
import tomllib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

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


@dataclass(frozen=True)
class Entry:
    """Catalogue entry of a data set."""

    name: str
    title: str
    classes: tuple[str, ...]
    provenance: str
    licence: str
    sha256: Mapping[str, str]
    """File name -> SHA-256 of its uncompressed content."""
    mirrors: tuple[str, ...] = ()
    npm: Mapping[str, str] = field(default_factory=dict)
    debian: Mapping[str, str] = field(default_factory=dict)
    archives: Mapping[str, int] = field(default_factory=dict)
    """Published archive -> size in bytes, for archives without a published checksum."""


@cache
def catalogue() -> dict[str, Entry]:
    """Return name -> catalogue entry, in listed order."""
    text = resources.files("ccmem.paper.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    entries = {}
    for name, facts in tomllib.loads(text).items():
        lists: dict[str, Any] = {key: tuple(facts[key]) for key in ("classes", "mirrors") if key in facts}
        entries[name] = Entry(name, **{**facts, **lists})
    return entries


def entry_of(name: str) -> Entry:
    """Return a catalogue entry, or raise an error that lists the available names."""
    if name not in catalogue():
        raise ValueError(f"unknown data set {name!r}; there are {', '.join(catalogue())}")
    return catalogue()[name]


class RawSet(NamedTuple):
    """Images and labels as bytes, in the order of ``FILES``, checked for consistency."""

    train_images: ByteArray
    train_labels: ByteArray
    test_images: ByteArray
    test_labels: ByteArray
    sha256: Mapping[str, str]
    notes: tuple[str, ...] = ()
    """Remarks for readers of results: deviating checksums, skipped pictures."""


def from_contents(entry: Entry, contents: Mapping[str, bytes], place: str, *, strict: bool) -> RawSet:
    """Build a data set from four IDX files; a deviating checksum is an error if ``strict``, otherwise a note."""
    raw = checked(entry, [parse_idx(contents[name], f"{place}: {name}") for name in FILES], place)
    differing = {name: found for name, found in raw.sha256.items() if found != entry.sha256[name]}
    for name, found in differing.items() if strict else ():
        raise ValueError(
            f"{place}: {name} has the SHA-256 {found}, not {entry.sha256[name]}: a broken download or another "
            "file; remove it and fetch it again"
        )
    known = "is not the file that the catalogue knows"
    return raw._replace(notes=tuple(f"{name} {known} (SHA-256 {found})" for name, found in differing.items()))


def checked(entry: Entry, arrays: Sequence[ByteArray], place: str, notes: Iterable[str] = ()) -> RawSet:
    """Return images and labels as a data set; raise unless they match."""
    train_images, train_labels, test_images, test_labels = arrays
    for part, images, labels in (("training", train_images, train_labels), ("test", test_images, test_labels)):
        trouble = ""
        if images.ndim != 3 or labels.ndim != 1:
            trouble = (
                f"the {part} images have {images.ndim} axes and their labels {labels.ndim}, not 3 and 1; "
                "are files swapped?"
            )
        elif len(images) != len(labels):
            trouble = f"{len(images)} {part} images but {len(labels)} labels; the files do not belong together"
        elif len(labels) == 0 or labels.max() >= len(entry.classes):
            held = "no images at all" if len(labels) == 0 else f"the label {labels.max()}"
            trouble = f"{held} among the {part} data; {entry.title} has labels 0 to {len(entry.classes) - 1}"
        elif images.shape[1:] != train_images.shape[1:]:
            trouble = (
                f"training images are {train_images.shape[1:]}, test images {images.shape[1:]}; "
                "the files do not belong together"
            )
        if trouble:
            raise ValueError(f"{place}: {trouble}")
    sums = {name: digest(idx_bytes(array)) for name, array in zip(FILES, arrays, strict=True)}
    return RawSet(train_images, train_labels, test_images, test_labels, sums, tuple(notes))


def digits(entry: Entry) -> RawSet:
    """Return the digits of scikit-learn; every fourth image is a test image."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = bunch.images.astype(np.uint8)
    labels = bunch.target.astype(np.uint8)
    found = {"images": digest(images.tobytes()), "labels": digest(labels.tobytes())}
    test = np.arange(len(labels)) % 4 == 3
    notes = () if found == dict(entry.sha256) else ("scikit-learn carries other digits than the catalogue knows",)
    return RawSet(images[~test], labels[~test], images[test], labels[test], found, notes)
