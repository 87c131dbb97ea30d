"""NotMNIST as it was published: archives, or folders A to J, of PNG files.

Which pictures are test pictures must not depend on how a folder lists its files or on which archives are at hand, so
they are ordered by their content: per letter, the 400 of ``notMNIST_small`` with the lowest SHA-256 are for the test.
A picture that occurs twice is kept once.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from ccmem.paper.datasets.idx import FILES, ByteArray, digest, idx_bytes
from ccmem.paper.datasets.raw import Entry, RawSet, check

TEST_PER_LETTER = 400
_LARGEST_PICTURE = 1 << 20
PARTS = ("notMNIST_small", "notMNIST_large")

Picture = tuple[str, bytes]
"""Letter and bytes of a PNG file."""


def find_pictures(folder: Path) -> list[Path]:
    """Return archives and folders of PNGs in ``folder``, the small part first; folders A to J also count."""
    found = []
    for part in PARTS:
        for path in (folder / f"{part}.tar.gz", folder / part):
            if path.exists():
                found.append(path)
                break
    if not found and all((folder / letter).is_dir() for letter in "ABCDEFGHIJ"):
        found.append(folder)
    return found


def read_pictures(entry: Entry, sources: list[Path]) -> RawSet:
    """Read the data set from archives or folders; unreadable pictures are skipped and counted."""
    images: list[ByteArray] = []
    labels: list[int] = []
    keys: list[bytes] = []
    small: list[bool] = []
    known: set[bytes] = set()
    unreadable = doubles = 0
    letters = {letter: code for code, letter in enumerate(entry.classes)}
    for source in sources:
        in_small = not source.name.startswith(PARTS[1])
        for letter, content in _pictures(source):
            image = _decode(content)
            if image is None:
                unreadable += 1
                continue
            key = hashlib.sha256(image.tobytes()).digest()
            if key in known:
                doubles += 1
                continue
            known.add(key)
            images.append(image)
            labels.append(letters[letter])
            keys.append(key)
            small.append(in_small)
    place = ", ".join(str(source) for source in sources)
    if not images:
        raise ValueError(f"{place}: no readable picture in folders A to J; is this NotMNIST?")
    stack, codes = np.stack(images), np.array(labels, np.uint8)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    test: list[int] = []
    for code in range(len(entry.classes)):
        own = [i for i in order if codes[i] == code and small[i]]
        test += own[: min(TEST_PER_LETTER, len(own) // 2)]
    in_test = np.zeros(len(codes), np.bool_)
    in_test[test] = True
    train = [i for i in order if not in_test[i]]
    arrays = (stack[train], codes[train], stack[test], codes[test])
    notes = [f"read from {' and '.join(source.name for source in sources)}"]
    if unreadable:
        notes.append(f"{unreadable} unreadable pictures skipped")
    if doubles:
        notes.append(f"{doubles} pictures that occur twice left out")
    sums = {name: digest(idx_bytes(array)) for name, array in zip(FILES, arrays, strict=True)}
    raw = RawSet(*arrays, sha256=sums, notes=tuple(notes))
    check(entry, raw, place)
    return raw


def _pictures(source: Path) -> Iterator[Picture]:
    if source.is_dir():
        for path in sorted(source.glob("[A-J]/*.png")):
            with path.open("rb") as file:
                yield path.parent.name, file.read(_LARGEST_PICTURE)
        return
    try:
        with tarfile.open(source, "r:*") as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if member.isfile() and name.suffix == ".png" and name.parent.name in set("ABCDEFGHIJ"):
                    stream = archive.extractfile(member)
                    if stream is not None:
                        yield name.parent.name, stream.read(_LARGEST_PICTURE)
    except (tarfile.TarError, EOFError, OSError) as problem:
        raise ValueError(f"{source}: corrupted or truncated archive ({problem}); get it again") from problem


def _decode(content: bytes) -> ByteArray | None:
    """Decode a PNG to 28 x 28 bytes, or None; some NotMNIST files are not images."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as problem:
        raise ImportError("reading NotMNIST pictures needs pillow: pip install pillow") from problem
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
            if picture.size != (28, 28):  # checked before any pixel is decoded
                return None
            return np.asarray(picture.convert("L"))
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError):
        return None
