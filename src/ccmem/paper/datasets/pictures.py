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

from ccmem.paper.datasets.raw import ByteArray, Entry, RawSet, checked

TEST_PER_LETTER = 400
_LARGEST_PICTURE = 1 << 20
PARTS = ("notMNIST_small", "notMNIST_large")


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
    found: dict[bytes, tuple[ByteArray, int, bool]] = {}  # digest -> image, label, whether from the small part
    unreadable = doubles = 0
    for source in sources:
        for letter, content in _pictures(source):
            image = _decode(content)
            if image is None:
                unreadable += 1
                continue
            key = hashlib.sha256(image.tobytes()).digest()
            doubles += key in found
            found.setdefault(key, (image, entry.classes.index(letter), not source.name.startswith(PARTS[1])))
    place = ", ".join(str(source) for source in sources)
    if not found:
        raise ValueError(f"{place}: no readable picture in folders A to J; is this NotMNIST?")
    ordered = [found[key] for key in sorted(found)]
    stack, codes = np.stack([image for image, _, _ in ordered]), np.array([code for _, code, _ in ordered], np.uint8)
    small = np.array([in_small for _, _, in_small in ordered])
    own = [np.flatnonzero((codes == code) & small) for code in range(len(entry.classes))]
    test = np.concatenate([rows[: min(TEST_PER_LETTER, len(rows) // 2)] for rows in own])
    train = np.setdiff1d(np.arange(len(codes)), test)
    notes = [f"read from {' and '.join(source.name for source in sources)}"]
    if unreadable:
        notes.append(f"{unreadable} unreadable pictures skipped")
    if doubles:
        notes.append(f"{doubles} pictures that occur twice left out")
    return checked(entry, (stack[train], codes[train], stack[test], codes[test]), place, notes)


def _pictures(source: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the letter and the content of every PNG file."""
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
