"""NotMNIST as published: archives and folders of PNGs."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from ccmem import datasets
from ccmem.paper.datasets import entry_of
from ccmem.paper.datasets.pictures import read_pictures

Image = pytest.importorskip("PIL.Image")


def png(seed: int, shape=(28, 28)) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def pictures() -> dict[str, bytes]:
    found = {f"{letter}/{n}.png": png(100 * code + n) for code, letter in enumerate("ABCDEFGHIJ") for n in range(6)}
    found["A/broken.png"] = b"\x89PNG\r\n\x1a\n and then nothing"
    found["B/empty.png"] = b""
    found["C/small.png"] = png(1, (5, 5))
    found["D/again.png"] = found["D/0.png"]
    found["readme.txt"] = b"not a picture"
    return found


def as_folder(root: Path, pictures) -> Path:
    for name, content in pictures.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def as_archive(path: Path, pictures, top: str, reverse=False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in sorted(pictures.items(), reverse=reverse):
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("kind", ["archive", "folder", "letters"])
def test_unreadable_skipped_and_counted(tmp_path, pictures, kind):
    if kind == "archive":
        as_archive(tmp_path / "notmnist" / "notMNIST_small.tar.gz", pictures, "notMNIST_small")
    else:
        as_folder(tmp_path / "notmnist" / ("notMNIST_small" if kind == "folder" else ""), pictures)
    data = datasets.load("notmnist", folder=tmp_path)
    assert len(data.y_train) + len(data.y_test) == 60
    assert np.bincount(data.y_test).tolist() == [3] * 10
    assert "3 unreadable pictures skipped" in data.notes
    assert "1 pictures that occur twice left out" in data.notes


def test_split_does_not_depend_on_the_order_of_files(tmp_path, pictures):
    entry = entry_of("notmnist")
    first = read_pictures(entry, [as_archive(tmp_path / "a" / "notMNIST_small.tar.gz", pictures, "s")])
    second = read_pictures(entry, [as_archive(tmp_path / "b" / "notMNIST_small.tar.gz", pictures, "s", reverse=True)])
    assert first.sha256 == second.sha256
    assert {image.tobytes() for image in first.train_images}.isdisjoint(map(bytes, first.test_images))


def test_large_part_only_adds_to_training(tmp_path, pictures):
    more = {
        f"{letter}/x{n}.png": png(5000 + 100 * code + n) for code, letter in enumerate("ABCDEFGHIJ") for n in range(4)
    }
    folder = tmp_path / "notmnist"
    as_archive(folder / "notMNIST_small.tar.gz", pictures, "notMNIST_small")
    small = datasets.load("notmnist", folder=tmp_path)
    as_archive(folder / "notMNIST_large.tar.gz", more, "notMNIST_large")
    both = datasets.load("notmnist", folder=tmp_path)
    assert np.array_equal(small.X_test, both.X_test)
    assert len(both.y_train) == len(small.y_train) + 40


def test_truncated_archive(tmp_path, pictures):
    path = as_archive(tmp_path / "notmnist" / "notMNIST_small.tar.gz", pictures, "s")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"corrupted or truncated archive"):
        datasets.load("notmnist", folder=tmp_path)


def test_no_pictures(tmp_path):
    as_folder(tmp_path / "notmnist" / "notMNIST_small", {"A/x.png": b""})
    with pytest.raises(ValueError, match="no readable picture"):
        datasets.load("notmnist", folder=tmp_path)


def test_other_formats_of_images_are_not_opened(tmp_path, pictures):
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((28, 28), np.uint8)).save(buffer, "BMP")
    raw = read_pictures(entry_of("notmnist"), [as_folder(tmp_path, {**pictures, "E/bitmap.png": buffer.getvalue()})])
    assert "4 unreadable pictures skipped" in raw.notes


def test_what_has_no_checksum_comes_by_https():
    entry = entry_of("notmnist")
    assert entry.mirrors
    assert all(mirror.startswith("https://") for mirror in entry.mirrors)
