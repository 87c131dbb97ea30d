"""Checkpoints: values on disk, written atomically and validated in full when read."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ccmem import __version__
from ccmem.core.locking import Guarded, guard_of
from ccmem.io.persistence.atomic import atomic_write
from ccmem.io.persistence.tensorfile import (
    Array,
    FormatError,
    as_json,
    dump,
    parse_json,
    raw_bytes,
    read_arrays,
    read_header,
)
from ccmem.io.persistence.values import classes_in, outside_classes, pack, unpack

SCHEMA = 4
"""Version of the format; increased with every change that makes old or new files unreadable."""
MOST_DEFLATED = 1 << 20
"""Largest checkpoint in bytes that :func:`deflated` compresses, and the most that a compressed one may inflate to."""
_GZIP = b"\x1f\x8b"
"""First bytes of a compressed checkpoint. Uncompressed ones begin with the length of their head, a multiple of 8."""
_METADATA = {"digest", "format", "schema", "library_version", "document"}
_UNSIGNED = "0" * 64
_FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError, RecursionError)
"""Exceptions that code which trusts its input raises on malformed input."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be loaded, or does not match the request."""


class Checkpoint(NamedTuple):
    """Content and description of a checkpoint, as returned by :func:`read_checkpoint`."""

    content: dict[str, Any]
    """``"model"``, and any further values written beside the model."""
    schema: int
    library_version: str
    digest: str


def encode(content: dict[str, Any]) -> list[bytes | memoryview]:
    """Return ``content`` (plain values, arrays, estimators) as the parts of a checkpoint, to be concatenated."""
    arrays: dict[str, Array] = {}
    document = as_json(pack(content, "", arrays))
    metadata = {"digest": _UNSIGNED, "format": "ccmem", "schema": str(SCHEMA), "library_version": __version__}
    head, ordered = dump(arrays, {**metadata, "document": document})
    parts = [raw_bytes(array) for array in ordered]
    return [head.replace(_UNSIGNED.encode(), _digest(head, parts).encode(), 1), *parts]


def deflated(content: dict[str, Any]) -> bytes:
    """Return ``content`` as the bytes of a checkpoint, compressed by gzip if they are few."""
    data = b"".join(encode(content))
    return gzip.compress(data, 1, mtime=0) if len(data) <= MOST_DEFLATED else data


def write_checkpoint(
    path: str | os.PathLike[str], content: dict[str, Any], check: Callable[[dict[str, Any]], Any] | None = None
) -> None:
    """Write ``content`` to ``path`` atomically, as a snapshot of one moment.

    The new file is loaded before it replaces the previous one; ``check`` may raise an error for the loaded content.
    """

    def verify(temporary: Path) -> None:
        try:
            with temporary.open("rb") as file, outside_classes(classes_in(content)):
                written = _read(file, os.fstat(file.fileno()).st_size, build=True).content
            if check is not None:
                check(written)
        except _FAULTS as problem:
            raise CheckpointError(
                f"{os.fspath(path)} was not written, because it could not be loaded again: "
                f"{problem or type(problem).__name__}; a file that was there before is unchanged"
            ) from problem

    model = content.get("model")
    with guard_of(model).lock if isinstance(model, Guarded) else contextlib.nullcontext():
        try:
            parts = encode(content)
        except TypeError as problem:
            raise TypeError(f"cannot save to {os.fspath(path)}: {problem}") from problem
        atomic_write(path, parts, verify)


def read_checkpoint(path: str | os.PathLike[str], build: bool = True) -> Checkpoint:
    """Read and check the checkpoint of a model; with ``build=False`` it stays a dictionary."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path} cannot be loaded: it is {'a folder' if path.is_dir() else 'a pipe or a device'}")
    with path.open("rb") as file, _loading(str(path)):
        return _with_model(_read(file, os.fstat(file.fileno()).st_size, build), build)


def decode(data: bytes, name: str = "the bytes", has_model: bool = False) -> Checkpoint:
    """Return the content passed to :func:`encode`; error messages refer to the data as ``name``."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} are of type {type(data).__name__}; from_bytes takes what to_bytes gave")
    with _loading(name):
        found = _read(io.BytesIO(data), len(data), build=True)
        return _with_model(found, build=True) if has_model else found


def _with_model(checkpoint: Checkpoint, build: bool) -> Checkpoint:
    """Return the checkpoint unchanged if it holds a model; raise CheckpointError otherwise."""
    model = checkpoint.content.get("model")
    if not (isinstance(model, Guarded) if build else isinstance(model, dict) and "class" in model):
        raise CheckpointError("it holds no model")
    return checkpoint


@contextlib.contextmanager
def _loading(name: str) -> Iterator[None]:
    """Convert any fault into a CheckpointError saying that ``name`` cannot be loaded."""
    try:
        yield
    except CheckpointError as problem:
        raise CheckpointError(f"{name} cannot be loaded: {problem}") from problem.__cause__
    except _FAULTS as problem:
        raise CheckpointError(f"{name} cannot be loaded: {problem or type(problem).__name__}") from problem


def _read(file: Any, size: int, build: bool) -> Checkpoint:
    if file.read(2) == _GZIP:
        file.seek(0)
        data = _inflated(file.read(MOST_DEFLATED + 1))
        file, size = io.BytesIO(data), len(data)
    file.seek(0)
    header = read_header(file, size)
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != "ccmem":
        raise CheckpointError("it is a safetensors file, but not one of ccmem's")
    if not all(isinstance(item, str) for item in metadata.values()):
        raise FormatError("its metadata are damaged")
    schema, version = metadata.get("schema", ""), metadata.get("library_version", "?")[:40]
    if not (schema.isascii() and schema.isdigit() and len(schema) < 10):
        raise CheckpointError(f"its schema version {schema[:20]!r} is not a number")
    if int(schema) != SCHEMA:
        remedy = "upgrade ccmem to read it" if int(schema) > SCHEMA else "read it with that version, or learn it again"
        raise CheckpointError(
            f"it has schema {schema}, written by ccmem {version}; this is ccmem {__version__}, which reads schema "
            f"{SCHEMA}: {remedy}"
        )
    start = file.tell()
    arrays = read_arrays(file, header, size - start)
    file.seek(0)
    digest = metadata.get("digest", "")
    head = file.read(start).replace(digest.encode(), _UNSIGNED.encode(), 1)
    if set(metadata) != _METADATA or digest != _digest(head, map(raw_bytes, arrays.values())):
        raise CheckpointError("its content does not match its digest: the file was altered or damaged")
    content = unpack(parse_json(metadata["document"]), arrays, build)
    if not isinstance(content, dict):
        raise CheckpointError("it holds no model")
    return Checkpoint(content, int(schema), version, digest)


def _inflated(data: bytes) -> bytes:
    inflate = zlib.decompressobj(31)
    try:
        result = inflate.decompress(data, MOST_DEFLATED)
    except zlib.error as problem:
        raise FormatError(f"it cannot be inflated ({problem})") from problem
    if not inflate.eof or inflate.unused_data:
        raise FormatError("it is cut off, added to, or inflates to more than it may")
    return result


def _digest(unsigned_head: bytes, parts: Iterable[memoryview]) -> str:
    """Return the SHA-256 digest of a checkpoint whose head has zeros in place of the digest."""
    digest = hashlib.sha256(unsigned_head)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
