"""The cache: one folder a data set, written aside and moved into place whole, so that it is complete or not there."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from pathlib import Path

from ccmem import _cache
from ccmem.datasets.idx import FILES, digest, idx_bytes, parse_idx
from ccmem.datasets.raw import Entry, RawSet, check

MANIFEST = "manifest.json"


def cache_folder() -> Path:
    """Where fetched data sets are kept: ``CCMEM_DATA_CACHE``, or the user's cache folder."""
    return _cache.cache_folder("data")


def from_cache(entry: Entry) -> tuple[RawSet, str] | None:
    """The cached data set and where it was once fetched from; None if there is none; ValueError if it is damaged."""
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
    """Put a fetched data set into the cache, in place of any other copy; return its folder."""
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
    """Give ``aside`` its final name; several processes may be about to do the same."""
    for attempt in range(20):
        try:
            aside.rename(folder)
            return
        except OSError:  # something is there already
            if not folder.exists() and attempt == 19:
                raise
        try:
            if from_cache(entry) is not None:
                return  # another process was quicker, and its copy is good
        except ValueError:
            pass
        old = aside.with_name(f"{aside.name}-old{attempt}")
        with contextlib.suppress(OSError):
            folder.rename(old)
        shutil.rmtree(old, ignore_errors=True)
    raise OSError(f"{folder} is being changed by others all the time")
