"""Loading data sets from the first available source, as rows of floats with their provenance."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ccmem.core.typing import FloatArray, IntArray
from ccmem.paper.datasets.raw import ByteArray, Entry, RawSet, digits, entry_of
from ccmem.paper.datasets.sources import from_cache, from_folder, remote_sources, store

PIXELS = {"unit": "[0, 1]", "centred": "[-0.5, 0.5]"}
"""Pixel scaling: divided by 255, optionally shifted by one half."""


class DataSetNotFound(OSError):  # noqa: N818 - reads as what it says
    """Raised if no source has the data set; the message lists the sources tried and the remedy."""


@dataclass(frozen=True)
class ImageData:
    """A data set ready for learning."""

    name: str
    title: str
    X_train: FloatArray
    """Images as rows, float32."""
    y_train: IntArray
    X_test: FloatArray
    y_test: IntArray
    image_shape: tuple[int, int]
    class_names: tuple[str, ...]
    pixels: str
    source: str
    """Source of this copy."""
    notes: tuple[str, ...]
    sha256: Mapping[str, str]


def load(
    name: str, *, folder: str | os.PathLike[str] | None = None, pixels: str = "unit", download: bool = True
) -> ImageData:
    """Load a data set from the first source that has it.

    Parameters
    ----------
    name : str
        ``"mnist"``, ``"fashion-mnist"``, ``"notmnist"`` or ``"digits"``.
    folder : path, optional
        A folder of your own with subfolders ``mnist``, ``fashion-mnist``, ``notmnist``, each with IDX files (gzip or
        not); for NotMNIST also the published archives or folders of PNGs. ``CCMEM_DATA`` is used when not given.
    pixels : "unit" or "centred"
        Pixels in [0, 1] or in [-0.5, 0.5].
    download : bool, default=True
        Whether sources beyond this machine may be tried.
    """
    if pixels not in PIXELS:
        raise ValueError(f"pixels={pixels!r} is not possible; it must be one of {', '.join(map(repr, PIXELS))}")
    entry = entry_of(name)
    raw, source = locate(name, folder=folder, download=download)
    largest = 16.0 if name == "digits" else 255.0

    def part(images: ByteArray, labels: ByteArray) -> tuple[FloatArray, IntArray]:
        X = images.reshape(len(images), -1).astype(np.float32)
        X /= np.float32(largest)
        if pixels == "centred":
            X -= np.float32(0.5)
        return X, labels.astype(np.int64)

    train, test = part(raw.train_images, raw.train_labels), part(raw.test_images, raw.test_labels)
    height, width = raw.train_images.shape[1:]
    shape = int(height), int(width)
    return ImageData(name, entry.title, *train, *test, shape, entry.classes, pixels, source, raw.notes, raw.sha256)


def locate(
    name: str, *, folder: str | os.PathLike[str] | None = None, download: bool = True, must_keep: bool = False
) -> tuple[RawSet, str]:
    """Return the data set as bytes and its source; with ``must_keep`` it must also be cached."""
    entry = entry_of(name)
    if name == "digits":
        return digits(entry), "scikit-learn"
    tried: list[str] = []
    own = folder if folder is not None else os.environ.get("CCMEM_DATA")
    if own:
        raw = from_folder(entry, Path(own))
        if raw is not None:
            return raw, "own folder"
        tried.append(f"your folder {own}: no {entry.name} files in it or in its subfolder {entry.name}")
    else:
        tried.append("your own folder: none named (CCMEM_DATA or --data)")
    try:
        cached = from_cache(entry)
        if cached is not None:
            return cached
        tried.append("the cache: empty")
    except ValueError as problem:
        tried.append(str(problem))
        print(f"ccmem: {problem}; fetching it again", file=sys.stderr)
    if not download:
        tried.append("sources beyond this machine: not allowed")
        raise _nothing_found(entry, tried)
    for description, attempt in remote_sources(entry):
        print(f"ccmem: looking for {entry.title}: {description} ...", file=sys.stderr, flush=True)
        try:
            raw = attempt()
        except (OSError, ValueError, ImportError) as problem:
            tried.append(f"{description}: {problem}")
            continue
        try:
            store(entry, raw, description)
        except OSError as problem:
            if must_keep:
                raise
            print(f"ccmem: {problem}", file=sys.stderr)
        return raw, description
    raise _nothing_found(entry, tried)


def fetch(name: str, *, folder: str | os.PathLike[str] | None = None) -> tuple[RawSet, str]:
    """Ensure that a data set is on this machine, in the user's folder or the cache."""
    return locate(name, folder=folder, must_keep=True)


def _nothing_found(entry: Entry, tried: list[str]) -> DataSetNotFound:
    lines = "\n".join(f"  - {line}" for line in tried)
    also = " (or notMNIST_small.tar.gz, or folders A to J of PNGs)" if entry.archives else ""
    return DataSetNotFound(
        f"{entry.title} is not to be had. Tried:\n{lines}\nPut its four IDX files{also} into a folder "
        f"{entry.name}, name the folder above it in CCMEM_DATA or --data, and run the command again"
    )
