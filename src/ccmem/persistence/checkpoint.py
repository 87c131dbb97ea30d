"""Checkpoints: values on disk, written whole or not at all, and read with suspicion."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ccmem import __version__
from ccmem.guard import Guarded
from ccmem.persistence.atomic import atomic_write
from ccmem.persistence.joined import Joined, Named, Separated
from ccmem.persistence.tensorfile import (
    Array,
    FormatError,
    as_json,
    dump,
    little_endian,
    parse_json,
    raw_bytes,
    read_arrays,
    read_header,
)
from ccmem.persistence.values import pack, unpack

SCHEMA = 2
"""Raised whenever an older library could no longer read what is written."""


_digested_json = json.JSONEncoder(sort_keys=True).encode  # made once: small states are many
_METADATA = {"format", "schema", "library_version"}
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

    ``joined``: for something small, with all arrays in one tensor and the document in another.
    """
    metadata = {"format": "ccmem", "schema": str(SCHEMA), "library_version": __version__}
    if joined:
        collected = Joined()
        document = as_json(pack(content, "", collected))
        arrays: dict[str, Array] = {"arrays": collected.join(), "document": np.frombuffer(document.encode(), np.uint8)}
    else:
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
        return with_model(read(file, os.fstat(file.fileno()).st_size, str(path), build), str(path), build)


def decode(data: bytes, name: str = "the bytes", build: bool = True) -> Checkpoint:
    """What :func:`encode` was given; ``name`` is what an error calls them."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} are of type {type(data).__name__}; from_bytes takes what to_bytes gave")
    return read(io.BytesIO(data), len(data), name, build)


def with_model(checkpoint: Checkpoint, name: str, build: bool = True) -> Checkpoint:
    """The same, if it holds a model."""
    model = checkpoint.content.get("model")
    if not (isinstance(model, Guarded) if build else isinstance(model, dict) and "class" in model):
        raise CheckpointError(f"{name} cannot be loaded: it holds no model")
    return checkpoint


def read(file: Any, size: int, name: str, build: bool) -> Checkpoint:
    """Read and check ``size`` bytes of ``file``."""
    try:
        return _read(file, size, build)
    except CheckpointError as problem:
        raise CheckpointError(f"{name} cannot be loaded: {problem}") from problem.__cause__
    except _FAULTS as problem:
        what = str(problem) or type(problem).__name__
        raise CheckpointError(f"{name} cannot be loaded: {what}") from problem


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
    arrays = read_arrays(file, header, size - file.tell())
    digest = metadata.pop("digest", None)
    if not _METADATA <= set(metadata) <= {*_METADATA, "document"} or digest != _digest(metadata, arrays):
        raise CheckpointError("its content does not match its digest: the file was altered or damaged")
    if "document" in metadata:
        content = unpack(parse_json(metadata["document"]), arrays, build)
    else:
        separated = Separated(arrays["arrays"])
        content = unpack(parse_json(arrays["document"].tobytes()), separated, build)
        separated.end()
    if not isinstance(content, dict):
        raise CheckpointError("it holds no model")
    return Checkpoint(content, int(schema), metadata["library_version"], digest)


def _digest(metadata: dict[str, str], arrays: dict[str, Array]) -> str:
    """SHA-256 over all metadata and all arrays with their names, types and shapes."""
    digest = hashlib.sha256()
    ordered = {name: little_endian(array) for name, array in arrays.items()}
    described = {name: [array.dtype.str, array.shape] for name, array in ordered.items()}
    digest.update(_digested_json([metadata, described]).encode())
    for name in sorted(ordered):
        digest.update(raw_bytes(ordered[name]))
    return digest.hexdigest()
