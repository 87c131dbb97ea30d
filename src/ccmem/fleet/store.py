"""The store of a fleet: a few files for any number of keys, each replaced whole.

    recipe.safetensors        the model, the scaling and the columns, once for all keys
    manifest.json             which files have been learned, and the round that is under way
    memories/bucket-007.arrow keys with this hash and their states, sorted by key
    events/000003.parquet     events of a round, sorted by bucket and key: together they are the events table
    work/000004/              rows on their way to their buckets; gone when the round is over

A round takes some rows of the input to the memories of all their keys. The file of a bucket says which round it has
seen, so that what a killed run has done of a round is known and what it has not is done again: see
:mod:`ccmem.fleet.local`.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ccmem.fleet.step import Key, Member, Recipe
from ccmem.fleet.tables import KeyedColumns
from ccmem.persistence.atomic import atomic_file, write_whole
from ccmem.persistence.checkpoint import CheckpointError, read_checkpoint, write_checkpoint
from ccmem.streams.arrow import pyarrow

VERSION = 1
BUCKETS = 64
MOST_BUCKETS = 1 << 16
TOTALS = ("rows", "late", "bad", "events")
_FACTS = "ccmem"
_KEYS_AT_A_TIME = 256


class Store:
    """A folder with the memories of a fleet."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not (self.folder / "manifest.json").is_file():
            raise CheckpointError(f"{self.folder} is not the store of a fleet; ccmem fleet learn makes one")
        try:
            self.manifest: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text())
            version = self.manifest["version"]
        except (ValueError, LookupError, TypeError, RecursionError) as problem:
            raise CheckpointError(f"{self.folder / 'manifest.json'} is damaged: {problem}") from problem
        if version != VERSION:
            raise CheckpointError(
                f"{self.folder} is a store of version {version}; this ccmem reads and writes version {VERSION}: use "
                "the one that made it, or learn into a new store"
            )
        if not _is_manifest(self.manifest):
            raise CheckpointError(f"{self.folder / 'manifest.json'} is damaged: it does not say what a manifest says")
        content = read_checkpoint(self.folder / "recipe.safetensors").content
        try:
            self.recipe = Recipe(content["model"], content["fleet"]["scale"])
            columns = dict(content["fleet"]["columns"])
            self.columns = KeyedColumns(**{**columns, "features": tuple(columns["features"])})
            self.buckets = int(self.manifest["buckets"])
        except (LookupError, TypeError, ValueError) as problem:
            raise CheckpointError(f"{self.folder} has a recipe that cannot be used: {problem}") from problem

    @classmethod
    def create(
        cls, folder: str | os.PathLike[str], recipe: Recipe, columns: KeyedColumns, buckets: int = BUCKETS
    ) -> Store:
        """Make an empty store; the manifest comes last, so that a folder that has one has all."""
        folder = Path(folder)
        for name in ("memories", "events", "work"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        fields = {"scale": recipe.scale, "columns": {**columns._asdict(), "features": list(columns.features)}}
        write_checkpoint(folder / "recipe.safetensors", {"model": recipe.model, "fleet": fields})
        manifest = {
            "format": "ccmem fleet",
            "version": VERSION,
            "buckets": buckets,
            "round": 0,
            "current": None,
            "files": {},
            "totals": dict.fromkeys(TOTALS, 0),
        }
        write_whole(folder / "manifest.json", json.dumps(manifest).encode())
        return cls(folder)

    def save_manifest(self) -> None:
        """Commit the manifest."""
        write_whole(self.folder / "manifest.json", json.dumps(self.manifest).encode())

    def bucket_file(self, bucket: int) -> Path:
        """Where the memories of a bucket are."""
        return self.folder / "memories" / f"bucket-{bucket:03d}.arrow"

    def work_folder(self, number: int) -> Path:
        """Where rows and events of a round wait."""
        return self.folder / "work" / f"{number:06d}"

    def events_file(self, number: int) -> Path:
        """Events of a round."""
        return self.folder / "events" / f"{number:06d}.parquet"

    # Reading -------------------------------------------------------------------------------------------------------

    def facts(self, bucket: int) -> dict[str, Any]:
        """What the file of a bucket says about itself: round, keys, rows and late rows of that round, ..."""
        if not self.bucket_file(bucket).exists():
            return {"round": 0, "keys": 0, "rows": 0, "late": 0, "events": 0}
        with open_sealed(self.bucket_file(bucket)) as (_, facts):
            return facts

    def states(self, bucket: int) -> Iterator[tuple[Key, bytes]]:
        """Keys of a bucket and their states, sorted by key."""
        if not self.bucket_file(bucket).exists():
            return
        with open_sealed(self.bucket_file(bucket)) as (reader, _):
            for place in range(reader.num_record_batches - 1):
                batch = reader.get_batch(place)
                states = batch.column(1)
                for i, key in enumerate(batch.column(0).to_pylist()):
                    yield key, states[i].as_py()

    def state(self, key: Key) -> bytes | None:
        """The state of one key, or None."""
        pa = pyarrow()
        key = self.as_key(key)
        file = self.bucket_file(int(bucket_of(pa.array([key]), self.buckets)[0]))
        if not file.exists():
            return None
        with open_sealed(file) as (reader, _):
            for place in range(reader.num_record_batches - 1):
                batch = reader.get_batch(place)
                found = pa.compute.index(batch.column(0), key).as_py()
                if found >= 0:
                    state: bytes = batch.column(1)[found].as_py()
                    return state
        return None

    def as_key(self, key: Any) -> Key:
        """A key as this store's keys are: text from the command line may mean a number."""
        if self.columns.key_type == "string":
            return str(key)
        try:
            return int(key)
        except ValueError:
            raise ValueError(f"the keys of {self.folder} are whole numbers; {key!r} is none") from None

    def member(self, key: Any) -> Member:
        """The memory of one key."""
        key = self.as_key(key)
        state = self.state(key)
        if state is None:
            raise ValueError(f"{self.folder} has no memory for {key!r}")
        return Member(self.recipe, key, state)

    def n_keys(self) -> int:
        """How many keys there are."""
        return sum(int(self.facts(bucket)["keys"]) for bucket in range(self.buckets))


def _is_manifest(manifest: Any) -> bool:
    """Whether all that is relied on is there, and of its kind."""
    totals, current = manifest.get("totals"), manifest.get("current")
    return (
        _is_count(manifest.get("round"))
        and _is_count(manifest.get("buckets"))
        and 1 <= manifest["buckets"] <= MOST_BUCKETS
        and isinstance(totals, dict)
        and totals.keys() == set(TOTALS)
        and all(map(_is_count, totals.values()))
        and isinstance(manifest.get("files"), dict)
        and all(isinstance(f, dict) and f.keys() == {"size", "print", "rows"} for f in manifest["files"].values())
        and (current is None or (isinstance(current, dict) and current.keys() == {"round", "pieces", "files"}))
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def bucket_of(keys: Any, buckets: int) -> Any:
    """The bucket of every key of an Arrow array: its CRC-32, so that it is the same everywhere."""
    encoded = keys.dictionary_encode()
    hashes = [zlib.crc32(str(key).encode()) % buckets for key in encoded.dictionary.to_pylist()]
    return np.array(hashes, np.uint16)[encoded.indices.to_numpy(zero_copy_only=False)]


# Files that are complete or not there, with facts at their end ------------------------------------------------------


class Sealed:
    """An Arrow file being written; its last batch is empty and carries the facts."""

    def __init__(self, path: Path, schema: Any) -> None:
        self._file = path.open("wb")
        self._schema = schema
        self._writer = pyarrow().ipc.new_file(self._file, schema)

    def write(self, *columns: Any) -> None:
        """Append a batch."""
        self._writer.write_batch(pyarrow().record_batch(list(columns), schema=self._schema))

    def seal(self, facts: dict[str, Any]) -> None:
        """End the file and bring it to the disk."""
        pa = pyarrow()
        empty = pa.record_batch([pa.array([], field.type) for field in self._schema], schema=self._schema)
        self._writer.write_batch(empty, custom_metadata={_FACTS: json.dumps(facts)})
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


@contextlib.contextmanager
def sealed(path: Path, schema: Any) -> Iterator[Sealed]:
    """A sealed file that appears when it is complete."""
    with atomic_file(path) as temporary:
        file = Sealed(temporary, schema)
        try:
            yield file
        finally:
            file._file.close()


@contextlib.contextmanager
def open_sealed(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The reader of a sealed file, whose last batch is the seal, and its facts."""
    pa = pyarrow()
    try:
        with pa.memory_map(str(path), "r") as source:
            reader = pa.ipc.open_file(source)
            seal = reader.get_batch_with_custom_metadata(reader.num_record_batches - 1)
            yield reader, json.loads(seal.custom_metadata[_FACTS.encode()])
    except (pa.ArrowInvalid, LookupError, TypeError) as problem:
        raise CheckpointError(f"{path} is damaged: {str(problem)[:200]}") from problem


class BucketWriter:
    """States of a bucket, written a few hundred keys at a time."""

    def __init__(self, file: Sealed, key_type: Any) -> None:
        self._file, self._type = file, key_type
        self._keys: list[Key] = []
        self._states: list[bytes] = []
        self.n_keys = 0

    def add(self, key: Key, state: bytes) -> None:
        """The next key; they must come sorted."""
        self._keys.append(key)
        self._states.append(state)
        self.n_keys += 1
        if len(self._keys) == _KEYS_AT_A_TIME:
            self.flush()

    def flush(self) -> None:
        """Write what has been added."""
        pa = pyarrow()
        if self._keys:
            self._file.write(pa.array(self._keys, self._type), pa.array(self._states, pa.binary()))
            self._keys, self._states = [], []
