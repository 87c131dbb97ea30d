"""Checkpoints: values on disk, written whole or not at all, and read with suspicion."""

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
from ccmem.guard import Guarded
from ccmem.persistence.atomic import atomic_write
from ccmem.persistence.joined import Joined, Named, Separated, SeparatedOf2
from ccmem.persistence.tensorfile import (
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
from ccmem.persistence.values import pack, unpack

SCHEMA = 3
"""Raised whenever an older library could no longer read what is written."""
_SCHEMA_OF_TENSORS = 2
"""The same for checkpoints with a tensor for each array: those older libraries can read still."""

_digested_json = json.JSONEncoder(sort_keys=True).encode  # made once: small states are many
_METADATA = {"format", "schema", "library_version"}
_UNSIGNED = b"0" * 64
_SHORT = 4096
_ALTERED = "its content does not match its digest: the file was altered or damaged"
_FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError, RecursionError)
"""What code that trusts its input raises when it should not have."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be loaded, or does not fit what it is asked for."""


class Checkpoint(NamedTuple):
    """What :func:`read_checkpoint` found."""

    content: dict[str, Any]
    """``"model"``, and whatever else was written beside it."""
    schema: int
    library_version: str
    digest: str


def encode(content: dict[str, Any], joined: bool = False) -> list[bytes | memoryview]:
    """``content`` (plain values, arrays, estimators) as the parts of a checkpoint, to be put one after the other.

    ``joined``: if it is small, with everything in one tensor.
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


def write_checkpoint(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write ``content`` to ``path`` atomically, all of it as of one moment."""
    model = content.get("model")
    if isinstance(model, Guarded):
        model._while_reading(_write, path, content)
    else:
        _write(path, content)


def _write(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    try:
        parts = encode(content)
    except TypeError as problem:
        raise TypeError(f"cannot save to {os.fspath(path)}: {problem}") from problem
    atomic_write(path, parts)


def read_checkpoint(path: str | os.PathLike[str], build: bool = True) -> Checkpoint:
    """Read and check a checkpoint; with ``build=False`` models stay dictionaries and no model code is imported."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path} cannot be loaded: it is {'a folder' if path.is_dir() else 'a pipe or a device'}")
    with path.open("rb") as file:
        found = _told(str(path), _read, file, os.fstat(file.fileno()).st_size, build)
    return with_model(found, str(path), build)


def decode(data: bytes, name: str = "the bytes", build: bool = True) -> Checkpoint:
    """What :func:`encode` was given; ``name`` is what an error calls them."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} are of type {type(data).__name__}; from_bytes takes what to_bytes gave")
    return _told(name, _decode, data, build)


def with_model(checkpoint: Checkpoint, name: str, build: bool = True) -> Checkpoint:
    """The same, if it holds a model."""
    model = checkpoint.content.get("model")
    if not (isinstance(model, Guarded) if build else isinstance(model, dict) and "class" in model):
        raise CheckpointError(f"{name} cannot be loaded: it holds no model")
    return checkpoint


def _told(name: str, read: Callable[..., Checkpoint], *args: Any) -> Checkpoint:
    """What ``read`` returns; whatever it raises says that ``name`` cannot be loaded."""
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
    if len(unsigned) == start and data[:place] == unsigned[:place]:  # as this library writes it: nothing to parse
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
    if not _METADATA <= set(metadata) <= {*_METADATA, "document"} or digest != _digest(metadata, arrays):
        raise CheckpointError(_ALTERED)
    if "document" in metadata:
        content = unpack(parse_json(metadata["document"]), arrays, build)
    else:
        content = _separate(SeparatedOf2(arrays["document"], arrays["arrays"]), build)
    return _content(content, int(schema), metadata["library_version"], digest)


# Joined ones: their head is the same but for the digest, and the length and version that it names --------------------


@functools.lru_cache(maxsize=16)
def _head_before_length(version: str) -> bytes:
    metadata = {"format": "ccmem", "schema": str(SCHEMA), "library_version": version, "digest": _UNSIGNED.decode()}
    return as_json({"__metadata__": metadata})[:-1].encode() + b',"joined":{"dtype":"U8",'


def _unsigned_head(n: int, version: str) -> bytes:
    """The head of a joined checkpoint with a piece of ``n`` bytes, with zeros for its digest."""
    text = _head_before_length(version) + b'"shape":[%d],"data_offsets":[0,%d]}}' % (n, n)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _digest_of_joined(unsigned_head: bytes, piece: Any) -> str:
    """SHA-256 over all but itself."""
    digest = hashlib.sha256(unsigned_head)
    digest.update(piece)
    return digest.hexdigest()


def _of_joined(head: bytes, piece: Any, metadata: dict[str, str], build: bool) -> Checkpoint:
    """What a joined checkpoint holds."""
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


# Others: a digest over what they say ----------------------------------------------------------------------------------


def _digest(metadata: dict[str, str], arrays: dict[str, Array]) -> str:
    """SHA-256 over all metadata and all arrays with their names, types and shapes."""
    digest = hashlib.sha256()
    ordered = {name: little_endian(array) for name, array in arrays.items()}
    described = {name: [array.dtype.str, array.shape] for name, array in ordered.items()}
    digest.update(_digested_json([metadata, described]).encode())
    for name in sorted(ordered):
        digest.update(raw_bytes(ordered[name]))
    return digest.hexdigest()
