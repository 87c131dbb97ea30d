"""Cache of data sets: one folder each, written to a temporary folder and renamed when complete."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from pathlib import Path

from ccmem.core import cache as _cache
from ccmem.paper.datasets.idx import FILES, digest, idx_bytes, parse_idx
from ccmem.paper.datasets.raw import Entry, RawSet, check

MANIFEST = "manifest.json"


def cache_folder() -> Path:
    """Return the cache folder: ``$CCMEM_DATA_CACHE`` or the user's cache folder."""
    return _cache.cache_folder("data")


def from_cache(entry: Entry) -> tuple[RawSet, str] | None:
    """Return the cached data set and its origin, or None; raise ValueError if the cache is damaged."""
    folder = cache_folder() / entry.name
    if not (folder / MANIFEST).is_file():
        return None
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        contents = {name: (folder / name).read_bytes() for name in FILES}
        damaged = [name for name in FILES if digest(contents[name]) != manifest["sha256"][name]]
        notes, source = tuple(map(str, manifest["notes"])), str(manifest["source"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as problem:
        raise ValueError(f"the cached copy in {folder} is damaged ({problem!r})") from problem
    if damaged:
        raise ValueError(f"the cached copy in {folder} is damaged ({damaged[0]} has another SHA-256 than when fetched)")
    arrays = [parse_idx(contents[name], f"{folder}: {name}") for name in FILES]
    raw = RawSet(arrays[0], arrays[1], arrays[2], arrays[3], manifest["sha256"], notes)
    check(entry, raw, str(folder))
    return raw, source


def store(entry: Entry, raw: RawSet, source: str) -> Path:
    """Store a data set in the cache, replacing any other copy; return its folder."""
    root = cache_folder()
    folder = root / entry.name
    aside: Path | None = None
    try:
        root.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=root, prefix=f".{entry.name}-"))
        arrays = (raw.train_images, raw.train_labels, raw.test_images, raw.test_labels)
        for name, array in zip(FILES, arrays, strict=True):
            (aside / name).write_bytes(idx_bytes(array))
        manifest = {"source": source, "sha256": dict(raw.sha256), "notes": list(raw.notes)}
        (aside / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        aside.chmod(0o755)
        _put_in_place(entry, aside, folder)
    except OSError as problem:
        raise OSError(
            f"cannot keep {entry.title} in {folder} ({problem.strerror or problem}); free space, make it writable "
            "or name another folder in CCMEM_DATA_CACHE"
        ) from problem
    finally:
        if aside is not None and aside.exists():
            shutil.rmtree(aside, ignore_errors=True)
    return folder


def _put_in_place(entry: Entry, aside: Path, folder: Path) -> None:
    """Rename ``aside`` to its final name; other processes may do the same concurrently."""
    for attempt in range(20):
        try:
            aside.rename(folder)
            return
        except OSError:  # the target exists
            if not folder.exists() and attempt == 19:
                raise
        try:
            if from_cache(entry) is not None:
                return  # another process was faster, and its copy is valid
        except ValueError:
            pass
        old = aside.with_name(f"{aside.name}-old{attempt}")
        with contextlib.suppress(OSError):
            folder.rename(old)
        shutil.rmtree(old, ignore_errors=True)
    raise OSError(f"{folder} is being changed by others all the time")
