"""Checkpoints: values on disk, written atomically and validated in full when read."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ccmem import __version__
from ccmem.core.locking import Guarded
from ccmem.io.persistence.atomic import atomic_write
from ccmem.io.persistence.joined import Joined, Named, Separated
from ccmem.io.persistence.tensorfile import (
    Array,
    FormatError,
    as_json,
    dump,
    little_endian,
    parse_json,
    parse_short_json,
    raw_bytes,
    read_arrays,
    read_header,
)
from ccmem.io.persistence.values import classes_in, outside_classes, pack, unpack

SCHEMA = 3
"""Version of the joined layout, the newest readable one; increased whenever older libraries cannot read new files."""
_SCHEMA_OF_TENSORS = 2
"""Version of the layout with one tensor per array, which older libraries can still read."""

_digested_json = json.JSONEncoder(sort_keys=True).encode  # created once, because small states are encoded often
_METADATA = {"format", "schema", "library_version", "document"}
_UNSIGNED = b"0" * 64
_SHORT = 4096
_ALTERED = "its content does not match its digest: the file was altered or damaged"
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


def encode(content: dict[str, Any], joined: bool = False) -> list[bytes | memoryview]:
    """Return ``content`` (plain values, arrays, estimators) as the parts of a checkpoint, to be concatenated.

    ``joined``: put everything into one tensor if the content is small.
    """
    if joined:
        collected = Joined()
        piece = collected.piece(as_json(pack(content, "", collected)))
        if piece is not None:
            head = _unsigned_head(len(piece), __version__)
            return [head.replace(_UNSIGNED, _digest_of_joined(head, piece).encode()), piece]
    metadata = {"format": "ccmem", "schema": str(_SCHEMA_OF_TENSORS), "library_version": __version__}
    named = Named()
    metadata["document"] = as_json(pack(content, "", named))
    arrays = {name: little_endian(array) for name, array in named.items()}
    metadata["digest"] = _digest(metadata, arrays)
    head, ordered = dump(arrays, metadata)
    return [head, *map(raw_bytes, ordered)]


def write_checkpoint(
    path: str | os.PathLike[str], content: dict[str, Any], check: Callable[[dict[str, Any]], Any] | None = None
) -> None:
    """Write ``content`` to ``path`` atomically, as a snapshot of one moment.

    The new file is loaded before it replaces the previous one; ``check`` may raise an error for the loaded content.
    """
    model = content.get("model")
    if isinstance(model, Guarded):
        model._while_reading(_write, path, content, check)
    else:
        _write(path, content, check)


def _write(
    path: str | os.PathLike[str], content: dict[str, Any], check: Callable[[dict[str, Any]], Any] | None
) -> None:
    try:
        parts = encode(content)
    except TypeError as problem:
        raise TypeError(f"cannot save to {os.fspath(path)}: {problem}") from problem

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

    atomic_write(path, parts, verify)


def read_checkpoint(path: str | os.PathLike[str], build: bool = True) -> Checkpoint:
    """Read and check a checkpoint; with ``build=False`` models stay dictionaries and no model code is imported."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path} cannot be loaded: it is {'a folder' if path.is_dir() else 'a pipe or a device'}")
    with path.open("rb") as file:
        found = _told(str(path), _read, file, os.fstat(file.fileno()).st_size, build)
    return with_model(found, str(path), build)


def decode(data: bytes, name: str = "the bytes", build: bool = True) -> Checkpoint:
    """Return the content passed to :func:`encode`; error messages refer to the data as ``name``."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} are of type {type(data).__name__}; from_bytes takes what to_bytes gave")
    return _told(name, _decode, data, build)


def with_model(checkpoint: Checkpoint, name: str, build: bool = True) -> Checkpoint:
    """Return the checkpoint unchanged if it holds a model; raise CheckpointError otherwise."""
    model = checkpoint.content.get("model")
    if not (isinstance(model, Guarded) if build else isinstance(model, dict) and "class" in model):
        raise CheckpointError(f"{name} cannot be loaded: it holds no model")
    return checkpoint


def _told(name: str, read: Callable[..., Checkpoint], *args: Any) -> Checkpoint:
    """Return the result of ``read``; convert any fault into a CheckpointError saying that ``name`` cannot be loaded."""
    try:
        return read(*args)
    except CheckpointError as problem:
        raise CheckpointError(f"{name} cannot be loaded: {problem}") from problem.__cause__
    except _FAULTS as problem:
        what = str(problem) or type(problem).__name__
        raise CheckpointError(f"{name} cannot be loaded: {what}") from problem


def _decode(data: bytes, build: bool) -> Checkpoint:
    start = 8 + int.from_bytes(data[:8], "little")
    unsigned = _unsigned_head(len(data) - start, __version__) if start < len(data) else b""
    place = unsigned.find(_UNSIGNED)
    if len(unsigned) == start and data[:place] == unsigned[:place]:  # as written by this library: nothing to parse
        digest = bytes(data[place : place + len(_UNSIGNED)]).decode("latin-1")
        metadata = {"library_version": __version__, "digest": digest}
        return _of_joined(bytes(data[:start]), memoryview(data)[start:], metadata, build)
    return _read(io.BytesIO(data), len(data), build)


def _read(file: Any, size: int, build: bool) -> Checkpoint:
    header = read_header(file, size)
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != "ccmem":
        raise CheckpointError("it is a safetensors file, but not one of ccmem's")
    if not all(isinstance(item, str) for item in metadata.values()):
        raise FormatError("its metadata are damaged")
    schema = metadata.get("schema", "")
    if not (schema.isascii() and schema.isdigit() and len(schema) < 10):
        raise CheckpointError(f"its schema version {schema[:20]!r} is not a number")
    if int(schema) > SCHEMA:
        raise CheckpointError(
            f"it has schema {schema}, written by ccmem {metadata.get('library_version', '?')[:40]}; this is ccmem "
            f"{__version__}, which reads up to schema {SCHEMA}: upgrade ccmem to read it"
        )
    start = file.tell()
    arrays = read_arrays(file, header, size - start)
    if arrays.keys() == {"joined"}:
        file.seek(0)
        return _of_joined(file.read(start), arrays["joined"], metadata, build)
    digest = metadata.pop("digest", None)
    if set(metadata) != _METADATA or digest != _digest(metadata, arrays):
        raise CheckpointError(_ALTERED)
    content = unpack(parse_json(metadata["document"]), arrays, build)
    return _content(content, int(schema), metadata["library_version"], digest)


# Joined checkpoints: heads differ only in the digest, the length and the version --------------------------------------


@functools.lru_cache(maxsize=16)
def _head_before_length(version: str) -> bytes:
    metadata = {"format": "ccmem", "schema": str(SCHEMA), "library_version": version, "digest": _UNSIGNED.decode()}
    return as_json({"__metadata__": metadata})[:-1].encode() + b',"joined":{"dtype":"U8",'


def _unsigned_head(n: int, version: str) -> bytes:
    """Return the head of a joined checkpoint whose piece has ``n`` bytes, with zeros in place of the digest."""
    text = _head_before_length(version) + b'"shape":[%d],"data_offsets":[0,%d]}}' % (n, n)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _digest_of_joined(unsigned_head: bytes, piece: Any) -> str:
    """Return the SHA-256 digest of a joined checkpoint, computed over everything except the digest."""
    digest = hashlib.sha256(unsigned_head)
    digest.update(piece)
    return digest.hexdigest()


def _of_joined(head: bytes, piece: Any, metadata: dict[str, str], build: bool) -> Checkpoint:
    """Return the content of a joined checkpoint."""
    version, digest = metadata.get("library_version", ""), metadata.get("digest", "")
    unsigned = _unsigned_head(len(piece), version)
    if head != unsigned.replace(_UNSIGNED, digest.encode(), 1) or digest != _digest_of_joined(unsigned, piece):
        raise CheckpointError(_ALTERED)
    return _content(_separate(Separated(piece), build), SCHEMA, version, digest)


def _separate(separated: Separated, build: bool) -> Any:
    parse = parse_short_json if len(separated.document) < _SHORT else parse_json
    content = unpack(parse(separated.document), separated, build)
    separated.end()
    return content


def _content(content: Any, schema: int, version: str, digest: str) -> Checkpoint:
    if not isinstance(content, dict):
        raise CheckpointError("it holds no model")
    return Checkpoint(content, schema, version, digest)


# Checkpoints with one tensor per array: a digest over metadata and arrays ---------------------------------------------


def _digest(metadata: dict[str, str], arrays: dict[str, Array]) -> str:
    """Return the SHA-256 digest of all metadata and all arrays with their names, types and shapes."""
    digest = hashlib.sha256()
    ordered = {name: little_endian(array) for name, array in arrays.items()}
    described = {name: [array.dtype.str, array.shape] for name, array in ordered.items()}
    digest.update(_digested_json([metadata, described]).encode())
    for name in sorted(ordered):
        digest.update(raw_bytes(ordered[name]))
    return digest.hexdigest()
