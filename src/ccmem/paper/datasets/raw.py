"""A data set as published bytes: images, labels and provenance."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from ccmem.paper.datasets.idx import (
    FILES,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    ByteArray,
    digest,
    parse_idx,
)


@dataclass(frozen=True)
class Entry:
    """Catalogue entry of a data set."""

    name: str
    title: str
    classes: tuple[str, ...]
    provenance: str
    licence: str
    sha256: Mapping[str, str]
    """File name -> SHA-256 of its uncompressed content."""
    mirrors: tuple[str, ...] = ()
    npm: Mapping[str, str] = field(default_factory=dict)
    debian: Mapping[str, str] = field(default_factory=dict)
    archives: Mapping[str, int] = field(default_factory=dict)
    """Published archive -> size in bytes, for archives without a published checksum."""


@cache
def catalogue() -> dict[str, Entry]:
    """Return name -> catalogue entry, in listed order."""
    text = resources.files("ccmem.paper.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    entries = {}
    for name, facts in tomllib.loads(text).items():
        lists: dict[str, Any] = {key: tuple(facts[key]) for key in ("classes", "mirrors") if key in facts}
        entries[name] = Entry(name, **{**facts, **lists})
    return entries


def entry_of(name: str) -> Entry:
    """Return a catalogue entry, or raise an error that lists the available names."""
    if name not in catalogue():
        raise ValueError(f"unknown data set {name!r}; there are {', '.join(catalogue())}")
    return catalogue()[name]


@dataclass(frozen=True)
class RawSet:
    """Images and labels as bytes, checked for consistency."""

    train_images: ByteArray
    train_labels: ByteArray
    test_images: ByteArray
    test_labels: ByteArray
    sha256: Mapping[str, str]
    notes: tuple[str, ...] = ()
    """Remarks for readers of results: deviating checksums, skipped pictures."""


def from_contents(entry: Entry, contents: Mapping[str, bytes], place: str, *, strict: bool) -> RawSet:
    """Build a data set from four IDX files; a deviating checksum is an error if ``strict``, otherwise a note."""
    found = {name: digest(contents[name]) for name in FILES}
    differing = [name for name in FILES if found[name] != entry.sha256[name]]
    if differing and strict:
        name = differing[0]
        raise ValueError(
            f"{place}: {name} has the SHA-256 {found[name]}, not {entry.sha256[name]}: a broken download or another "
            "file; remove it and fetch it again"
        )
    arrays = {name: parse_idx(contents[name], f"{place}: {name}") for name in FILES}
    raw = RawSet(
        arrays[TRAIN_IMAGES],
        arrays[TRAIN_LABELS],
        arrays[TEST_IMAGES],
        arrays[TEST_LABELS],
        found,
        tuple(f"{name} is not the file that the catalogue knows (SHA-256 {found[name]})" for name in differing),
    )
    check(entry, raw, place)
    return raw


def check(entry: Entry, raw: RawSet, place: str) -> None:
    """Raise unless images and labels match."""
    for part, images, labels in (
        ("training", raw.train_images, raw.train_labels),
        ("test", raw.test_images, raw.test_labels),
    ):
        if images.ndim != 3 or labels.ndim != 1:
            raise ValueError(
                f"{place}: the {part} images have {images.ndim} axes and their labels {labels.ndim}, not 3 and 1; "
                "are files swapped?"
            )
        if len(images) != len(labels):
            raise ValueError(
                f"{place}: {len(images)} {part} images but {len(labels)} labels; the files do not belong together"
            )
        if len(labels) == 0 or labels.max() >= len(entry.classes):
            trouble = "no images at all" if len(labels) == 0 else f"the label {labels.max()}"
            raise ValueError(
                f"{place}: {trouble} among the {part} data; {entry.title} has labels 0 to {len(entry.classes) - 1}"
            )
    if raw.train_images.shape[1:] != raw.test_images.shape[1:]:
        raise ValueError(
            f"{place}: training images are {raw.train_images.shape[1:]}, test images {raw.test_images.shape[1:]}; "
            "the files do not belong together"
        )


def digits(entry: Entry) -> RawSet:
    """Return the digits of scikit-learn; every fourth image is a test image."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = bunch.images.astype(np.uint8)
    labels = bunch.target.astype(np.uint8)
    found = {"images": digest(images.tobytes()), "labels": digest(labels.tobytes())}
    test = np.arange(len(labels)) % 4 == 3
    notes = () if found == dict(entry.sha256) else ("scikit-learn carries other digits than the catalogue knows",)
    return RawSet(images[~test], labels[~test], images[test], labels[test], found, notes)
