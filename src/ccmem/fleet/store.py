"""Store of a fleet: a few files for any number of keys; each file is replaced as a whole.

    recipe.safetensors        the model, the scaling and the columns, once for all keys
    manifest.json             the learned files, and the current round
    memories/bucket-007.arrow keys with this hash and their states, sorted by key
    events/000003.parquet     events of a round, sorted by bucket and key; all files form the events table
    work/000004/              rows on their way to their buckets; removed when the round ends

A round passes some rows of the input to the memories of their keys. The file of a bucket records the last round that
the bucket has finished, so a run can complete a round that was killed: see :mod:`ccmem.fleet.local`.

The manifest holds a digest of its content, a digest of the recipe, and the round and digest of every bucket. A file
from a backup or another store does not match and is refused: with it, rows would count as learned that are not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ccmem.fleet.step import Key, Member, Recipe
from ccmem.fleet.tables import KeyedColumns
from ccmem.io.persistence.atomic import atomic_file, write_whole
from ccmem.io.persistence.checkpoint import CheckpointError, read_checkpoint, write_checkpoint
from ccmem.io.streams.arrow import pyarrow

VERSION = 3
BUCKETS = 64
MOST_BUCKETS = 1 << 16
TOTALS = ("rows", "late", "bad", "events")
MANIFEST = {
    "format": str,
    "version": int,
    "buckets": int,
    "round": int,
    "current": object,
    "files": {...: {"size": int, "digest": str, "rows": int}},
    "totals": dict.fromkeys(TOTALS, int),
    "recipe": str,
    "memories": {...: [int, str]},
    "digest": str,
}
"""Types in a manifest; of a bucket, the last round and the digest of its memories."""
ROUND = {"round": int, "pieces": list, "files": {...: {"size": int, "digest": str}}}
"""Types in the record of the current round: its pieces, and the files as they were when the round began."""
PIECE = [str, int, int, int]
_FACTS = "ccmem"
_KEYS_AT_A_TIME = 256
_DIGEST_BYTES = 16
_ATTEMPTS = 3


class Store:
    """Folder with the memories of a fleet."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not (self.folder / "manifest.json").is_file():
            raise CheckpointError(f"{self.folder} is not the store of a fleet; ccmem fleet learn makes one")
        self.manifest = _read_manifest(self.folder)
        content, _, _, digest = read_checkpoint(self.folder / "recipe.safetensors")
        if digest != self.manifest["recipe"]:
            raise CheckpointError(
                f"{self.folder} has a recipe that its manifest does not name; restore the one that belongs to it, or "
                "learn into a new store"
            )
        try:
            self.recipe = Recipe(content["model"], content["fleet"]["scale"])
            self.columns = KeyedColumns(**content["fleet"]["columns"])
            self.buckets = int(self.manifest["buckets"])
        except (LookupError, TypeError, ValueError) as problem:
            raise CheckpointError(f"{self.folder} has a recipe that cannot be used: {problem}") from problem

    @classmethod
    def create(
        cls, folder: str | os.PathLike[str], recipe: Recipe, columns: KeyedColumns, buckets: int = BUCKETS
    ) -> Store:
        """Create an empty store; the manifest is written last, so a folder with a manifest is complete."""
        folder = Path(folder)
        for name in ("memories", "events", "work"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        fields = {"scale": recipe.scale, "columns": columns._asdict()}
        write_checkpoint(folder / "recipe.safetensors", {"model": recipe.model, "fleet": fields})
        manifest: dict[str, Any] = {
            "format": "ccmem fleet",
            "version": VERSION,
            "buckets": buckets,
            "round": 0,
            "current": None,
            "files": {},
            "totals": dict.fromkeys(TOTALS, 0),
            "recipe": read_checkpoint(folder / "recipe.safetensors").digest,
            "memories": {},
        }
        write_whole(folder / "manifest.json", _signed(manifest))
        return cls(folder)

    def save_manifest(self) -> None:
        """Write the manifest atomically, which commits the changes."""
        write_whole(self.folder / "manifest.json", _signed(self.manifest))

    def bucket_file(self, bucket: int) -> Path:
        """Return the path of the memories of a bucket."""
        return self.folder / "memories" / f"bucket-{bucket:03d}.arrow"

    def work_folder(self, number: int) -> Path:
        """Return the folder for rows and events of a round in progress."""
        return self.folder / "work" / f"{number:06d}"

    def events_file(self, number: int) -> Path:
        """Return the path of the events of a round."""
        return self.folder / "events" / f"{number:06d}.parquet"

    # Reading -------------------------------------------------------------------------------------------------------

    def facts(self, bucket: int) -> dict[str, Any]:
        """Return the facts stored in the file of a bucket: round, keys, rows and late rows of that round, ..."""
        with self._open(bucket) as (_, facts):
            return facts

    def states(self, bucket: int) -> Iterator[tuple[Key, bytes]]:
        """Yield the keys of a bucket with their states, sorted by key; raise at the end if the digest is wrong."""
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        with self._open(bucket) as (batches, facts):
            for batch in batches:
                states = batch.column(1)
                for i, key in enumerate(batch.column(0).to_pylist()):
                    state = states[i].as_py()
                    _add_to(digest, key, state)
                    yield key, state
            if facts.get("digest", digest.hexdigest()) != digest.hexdigest():
                raise CheckpointError(f"{self.bucket_file(bucket)} is damaged: it does not match its digest")

    def state(self, key: Key) -> bytes | None:
        """Return the state of one key, or None if the store does not have the key."""
        pa = pyarrow()
        key = self.as_key(key)
        with self._open(int(bucket_of(pa.array([key]), self.buckets)[0])) as (batches, _):
            for batch in batches:
                found = pa.compute.index(batch.column(0), key).as_py()
                if found >= 0:
                    state: bytes = batch.column(1)[found].as_py()
                    return state
        return None

    @contextlib.contextmanager
    def _open(self, bucket: int) -> Iterator[tuple[Iterator[Any], dict[str, Any]]]:
        """Open the file of a bucket, check it against the manifest, and yield its batches and its facts."""
        manifest, file = self.manifest, self.bucket_file(bucket)
        for attempt in range(_ATTEMPTS):
            with contextlib.ExitStack() as stack:
                batches: Iterator[Any] = iter(())
                facts = dict.fromkeys(("round", "keys", "rows", "late", "events"), 0)
                if file.exists():
                    reader, facts = stack.enter_context(open_sealed(file))
                    batches = map(reader.get_batch, range(reader.num_record_batches - 1))
                known = manifest["memories"].get(str(bucket), [0, None])
                current = manifest["current"]
                if [facts["round"], facts.get("digest")] == known or (
                    current is not None and facts["round"] == current["round"]
                ):
                    yield batches, facts
                    return
            if attempt < _ATTEMPTS - 1:
                manifest = _read_manifest(self.folder)  # a round may have been committed meanwhile
        age = "newer than" if facts["round"] > known[0] else "older than" if facts["round"] < known[0] else "not"
        raise CheckpointError(
            f"{file} is {age} the one that manifest.json names (round {facts['round']}, not {known[0]}): one of them "
            "was restored, copied or changed by itself; restore the whole folder, or learn into a new store"
        )

    def as_key(self, key: Any) -> Key:
        """Convert a key to the type of the store's keys; text from the command line may denote a number."""
        if self.columns.key_type == "string":
            return str(key)
        try:
            return int(key)
        except ValueError:
            raise ValueError(f"the keys of {self.folder} are whole numbers; {key!r} is none") from None

    def member(self, key: Any) -> Member:
        """Return the memory of one key."""
        key = self.as_key(key)
        state = self.state(key)
        if state is None:
            raise ValueError(f"{self.folder} has no memory for {key!r}")
        return Member(self.recipe, key, state)

    def n_keys(self) -> int:
        """Return the number of keys."""
        return sum(int(self.facts(bucket)["keys"]) for bucket in range(self.buckets))


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check the manifest of a store."""
    file = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(file.read_text())
        version = manifest["version"]
    except (ValueError, LookupError, TypeError, RecursionError) as problem:
        raise CheckpointError(f"{file} is damaged: {problem}") from problem
    if version != VERSION:
        raise CheckpointError(
            f"{folder} is a store of version {version}; this ccmem reads and writes version {VERSION}: use the one "
            "that made it, or learn into a new store"
        )
    is_sound = _fits(manifest, MANIFEST) and 1 <= manifest["buckets"] <= MOST_BUCKETS
    if is_sound and manifest["current"] is not None:
        current = manifest["current"]
        is_sound = _fits(current, ROUND) and all(_fits(piece, PIECE) for piece in current["pieces"])
    if not is_sound:
        raise CheckpointError(f"{file} is damaged: its fields are not those of a manifest")
    if _signed(manifest) != _signed(manifest, manifest["digest"]):
        raise CheckpointError(
            f"{file} does not match its digest: it was altered or damaged; restore the whole folder, or learn into a "
            "new store"
        )
    return manifest


def _signed(manifest: dict[str, Any], digest: str | None = None) -> bytes:
    """Return the text of a manifest with ``digest``, or with its correct digest."""
    content = {name: value for name, value in manifest.items() if name != "digest"}
    if digest is None:
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return json.dumps({**content, "digest": digest}).encode()


def _add_to(digest: Any, key: Key, state: bytes) -> None:
    """Add a key and its state to the digest of a bucket."""
    digest.update(f"{key!r} {len(state)} ".encode())
    digest.update(state)


def _fits(value: Any, kind: Any) -> bool:
    """True if a value has a type, or the keys and entries of a dict (``...``: any key) or list of types."""
    if kind is int:
        return type(value) is int and 0 <= value < 2**62
    if isinstance(kind, list):
        return isinstance(value, list) and len(value) == len(kind) and all(map(_fits, value, kind))
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            return False
        kinds = dict.fromkeys(value, kind[...]) if ... in kind else kind
        return value.keys() == kinds.keys() and all(_fits(value[name], kinds[name]) for name in value)
    return isinstance(value, kind)


def bucket_of(keys: Any, buckets: int) -> Any:
    """Return the bucket of every key of an Arrow array, from the CRC-32 of the key, which is equal on all machines."""
    encoded = keys.dictionary_encode()
    hashes = [zlib.crc32(str(key).encode()) % buckets for key in encoded.dictionary.to_pylist()]
    return np.array(hashes, np.uint16)[encoded.indices.to_numpy(zero_copy_only=False)]


# Files that appear only when complete, with facts at their end ------------------------------------------------------


@contextlib.contextmanager
def sealed(path: Path, schema: Any) -> Iterator[tuple[Callable[..., None], dict[str, Any]]]:
    """Write an Arrow file that appears by a rename when it is complete.

    Yields a function that appends a batch, and a dictionary for the facts. The last batch is empty and carries them.
    """
    pa, facts = pyarrow(), dict[str, Any]()
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        writer = pa.ipc.new_file(file, schema)
        yield lambda *columns: writer.write_batch(pa.record_batch(list(columns), schema=schema)), facts
        empty = pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)
        writer.write_batch(empty, custom_metadata={_FACTS: json.dumps(facts)})
        writer.close()


@contextlib.contextmanager
def open_sealed(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a sealed file; yield its reader, whose last batch is the seal, and its facts."""
    pa = pyarrow()
    try:
        with pa.memory_map(str(path), "r") as source:
            reader = pa.ipc.open_file(source)
            seal = reader.get_batch_with_custom_metadata(reader.num_record_batches - 1)
            yield reader, json.loads(seal.custom_metadata[_FACTS.encode()])
    except CheckpointError:
        raise
    except (pa.ArrowException, LookupError, TypeError, ValueError, OSError) as problem:
        if getattr(problem, "errno", None) is not None:  # from the operating system, which names the file
            raise
        raise CheckpointError(f"{path} is damaged: {str(problem)[:200]}") from problem


def write_states(write: Callable[..., None], key_type: Any, states: Iterable[tuple[Key, bytes]]) -> tuple[int, str]:
    """Write the states of a bucket, sorted by key, a few hundred at a time; return the number of keys and a digest."""
    pa, digest, n_keys = pyarrow(), hashlib.blake2b(digest_size=_DIGEST_BYTES), 0
    states = iter(states)
    while part := list(islice(states, _KEYS_AT_A_TIME)):
        for key, state in part:
            _add_to(digest, key, state)
        write(pa.array([key for key, _ in part], key_type), pa.array([state for _, state in part], pa.binary()))
        n_keys += len(part)
    return n_keys, digest.hexdigest()
