"""Shared helpers of the checkpoint tests: small models, and forged checkpoints with valid digests."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ccmem import CCM, load, save
from ccmem.io.persistence import checkpoint as checkpoints
from ccmem.io.persistence import tensorfile


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
    """Return the checkpoint after ``change(document, arrays, metadata)``, with a valid digest and uncompressed."""
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    file = io.BytesIO(data)
    header = tensorfile.read_header(file, len(data))
    arrays = tensorfile.read_arrays(file, header, len(data) - file.tell())
    metadata = header["__metadata__"]
    document = json.loads(metadata["document"]) if "document" in metadata else None
    metadata["digest"] = "0" * 64
    change(document, arrays, metadata)
    if document is not None:
        metadata["document"] = json.dumps(document)
    head, ordered = tensorfile.dump(arrays, metadata)
    parts = [tensorfile.raw_bytes(array) for array in ordered]
    return head.replace(b"0" * 64, checkpoints._digest(head, parts).encode(), 1) + b"".join(map(bytes, parts))


def loaded(data: bytes, folder: Path) -> Any:
    (folder / "f").write_bytes(data)
    return load(folder / "f")
