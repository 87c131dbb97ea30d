"""Save and load: a memory, a classifier or a network as one safetensors file, exact to the last bit.

A checkpoint is a safetensors file that any safetensors reader opens. Its tensors are the model's arrays; its metadata
hold one JSON document with everything else, the schema and library versions, and a SHA-256 digest of it all. Loading
builds only classes from a short list, checks every array against the shapes and types that the parameters imply, and
executes no code from the file. A file that fails any check raises :class:`CheckpointError` with the reason.

>>> import numpy as np, tempfile, pathlib
>>> from ccmem import CCM, load
>>> path = pathlib.Path(tempfile.mkdtemp()) / "memory.safetensors"
>>> memory = CCM(n_slots=2, random_state=0).partial_fit(np.eye(3))
>>> memory.save(path)
>>> again = load(path).partial_fit(np.eye(3))
>>> bool((again.prototypes_ == memory.partial_fit(np.eye(3)).prototypes_).all())
True
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ccmem.io.persistence.checkpoint import (
    Checkpoint,
    CheckpointError,
    decode,
    deflated,
    read_checkpoint,
    write_checkpoint,
)
from ccmem.io.persistence.values import outside_classes

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "from_bytes",
    "load",
    "outside_classes",
    "read_checkpoint",
    "save",
    "to_bytes",
    "write_checkpoint",
]


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write ``estimator`` to ``path`` atomically: a crash at any moment leaves the previous file intact."""
    write_checkpoint(path, {"model": estimator})


def load(path: str | os.PathLike[str], classes: Iterable[type] = ()) -> Any:
    """Return the estimator saved at ``path``, ready to resume exactly where it stopped.

    ``classes``: your own model classes that the file may hold. No other class outside ccmem is ever built.
    """
    with outside_classes(classes):
        return read_checkpoint(path).content["model"]


def to_bytes(estimator: Any) -> bytes:
    """Return ``estimator`` as bytes: a checkpoint as :func:`save` writes, compressed by gzip if it is small."""
    return deflated({"model": estimator})


def from_bytes(data: bytes, classes: Iterable[type] = ()) -> Any:
    """Return the estimator encoded by :func:`to_bytes` (or stored by :func:`save`), checked as by :func:`load`.

    >>> import numpy as np, ccmem
    >>> memory = ccmem.AdaptiveCCM(n_slots=3).partial_fit(np.eye(3))
    >>> ccmem.from_bytes(memory.to_bytes()).n_samples_seen_
    3
    """
    with outside_classes(classes):
        return decode(data, has_model=True).content["model"]
