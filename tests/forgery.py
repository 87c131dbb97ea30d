"""Shared helpers of the checkpoint tests: small models, and forged checkpoints with valid digests."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import ccmem
from ccmem import CCM, load, save
from ccmem.io.persistence import checkpoint as checkpoints
from ccmem.io.persistence import joined, tensorfile


def mixed_stream(n_rows: int = 400, seed: int = 0) -> np.ndarray:
    """Four noisy directions in turn."""
    rng = np.random.default_rng(seed)
    return np.repeat(np.eye(4), n_rows // 4, axis=0) + rng.uniform(0, 0.2, (n_rows // 4 * 4, 4))


def small_ccm(**parameters: Any) -> CCM:
    return CCM(
        **{"n_slots": 2, "alarm_limit": 3, "recall_limit": 2, "commit_limit": 1, "random_state": 0, **parameters}
    )


def through_file(estimator: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        save(estimator, Path(folder) / "m.safetensors")
        return load(Path(folder) / "m.safetensors")


def networks() -> list[Any]:
    from ccmem.readout import GatedMLP, OnlineMLP

    memory = CCM(n_slots=2, alarm_limit=3, recall_limit=2, commit_limit=1)
    return [
        OnlineMLP((7, 4), random_state=1),
        OnlineMLP((), optimizer="adam", random_state=1),
        OnlineMLP([3], momentum=0.5, random_state=1),
        GatedMLP(memory, hidden_sizes=(8, 6), gated_units=(3, 2), random_state=0),
        GatedMLP(memory, hidden_sizes=(5,), gated_units=2, optimizer="adam", learn="all", random_state=0),
    ]


def forge(data: bytes, change: Any) -> bytes:
    """Return the checkpoint after ``change(document, arrays, metadata)``, with a valid digest."""
    file = io.BytesIO(data)
    header = tensorfile.read_header(file, len(data))
    arrays = tensorfile.read_arrays(file, header, len(data) - file.tell())
    metadata = header["__metadata__"]
    if "joined" in arrays:
        return _forge_joined(arrays["joined"], change)
    document = json.loads(metadata["document"]) if "document" in metadata else None
    del metadata["digest"]
    change(document, arrays, metadata)
    if document is not None:
        metadata["document"] = json.dumps(document)
    metadata["digest"] = checkpoints._digest(metadata, arrays)
    head, ordered = tensorfile.dump(arrays, metadata)
    return head + b"".join(bytes(tensorfile.raw_bytes(array)) for array in ordered)


def _forge_joined(piece: Any, change: Any) -> bytes:
    """Forge a joined checkpoint, whose document is among the arrays."""
    separated = joined.Separated(piece)
    arrays = {"document": np.frombuffer(separated.document, np.uint8), **separated._pieces}
    change(None, arrays, None)
    forged = joined.Joined()
    for name, parts in forged._parts.items():
        parts.append(arrays[name].tobytes())
    return signed(forged.piece(arrays["document"].tobytes().decode()) or b"")


def signed(piece: bytes, version: str = ccmem.__version__) -> bytes:
    """Return a joined checkpoint with this piece and a valid digest."""
    head = checkpoints._unsigned_head(len(piece), version)
    return head.replace(b"0" * 64, checkpoints._digest_of_joined(head, piece).encode()) + piece


def loaded(data: bytes, folder: Path) -> Any:
    (folder / "f").write_bytes(data)
    return load(folder / "f")
