"""Save and load: a memory, a classifier or a network as one safetensors file, exact to the last bit.

A checkpoint is a safetensors file that any safetensors reader opens. Its tensors are the model's arrays; its metadata
hold one JSON document with everything else, the schema and library versions, and a SHA-256 digest of it all. Loading
builds only classes from a short list, checks every array against what the parameters imply, and executes nothing that
stands in the file. What cannot be loaded whole is not loaded: :class:`CheckpointError` says why.

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
from typing import Any

from ccmem.persistence.checkpoint import (
    Checkpoint,
    CheckpointError,
    decode,
    encode,
    read_checkpoint,
    with_model,
    write_checkpoint,
)

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "from_bytes",
    "load",
    "read_checkpoint",
    "save",
    "to_bytes",
    "write_checkpoint",
]


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write ``estimator`` to ``path``, whole or not at all: a crash at any moment leaves the previous file."""
    write_checkpoint(path, {"model": estimator})


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator saved at ``path``, ready to resume exactly where it stopped."""
    return read_checkpoint(path).content["model"]


def to_bytes(estimator: Any) -> bytes:
    """``estimator`` as bytes: what :func:`save` would write, if it is small in one piece, which takes less space."""
    return b"".join(encode({"model": estimator}, joined=True))


def from_bytes(data: bytes) -> Any:
    """The estimator that :func:`to_bytes` was given (or that a file of :func:`save` holds), checked as by :func:`load`.

    >>> import numpy as np, ccmem
    >>> memory = ccmem.AdaptiveCCM(n_slots=3).partial_fit(np.eye(3))
    >>> ccmem.from_bytes(memory.to_bytes()).n_samples_seen_
    3
    """
    return with_model(decode(data), "the bytes").content["model"]
