"""Comparisons for ccmem: the same models in plain numpy, and peers; one sample at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.timing import Subject


def in_numpy(memory: Any, chunk: np.ndarray) -> Callable[[], Callable[[], None]]:
    """Return the model's usual step (no growth, merge or change of block) in idiomatic numpy."""
    kind = type(memory).__name__
    start = memory.task_pointer_ * memory.n_slots if kind == "CCM" else 0
    stop = start + memory.n_slots if kind == "CCM" else memory.n_units_
    rate = np.float32(memory.learning_rate)

    def prepare() -> Callable[[], None]:
        M = memory.prototypes_[start:stop]

        def similar() -> None:
            for x in chunk:
                unit = x / (np.linalg.norm(x) + 1e-5)
                h = M @ unit
                i = h.argmax()
                if h[i] > memory.vigilance:
                    moved = M[i] + rate * (unit - M[i])
                    M[i] = moved / (np.linalg.norm(moved) + 1e-5)

        def near() -> None:
            for x in chunk:
                i = ((x - M) ** 2).sum(axis=1).argmin()
                M[i] += rate * (x - M[i])

        def soft() -> None:
            for x in chunk:
                h = np.sqrt(((x - M) ** 2).sum(axis=1))
                z = np.exp(-memory.precision * (h - h.min()) / memory.temperature)
                z /= z.sum()
                M[:] += (rate * memory.precision * z)[:, None] * (x - M)

        return {"IncrementalWTA": near, "IncrementalGMM": soft}.get(kind, similar)

    return prepare


def peers(X: np.ndarray, y: np.ndarray, n_units: int, quick: bool) -> Iterator[Subject]:
    """Yield installed peers at batch 1 with the same number of units."""
    few = 4 if quick else 1

    def minibatch() -> Subject:
        from sklearn.cluster import MiniBatchKMeans

        def prepare() -> Callable[[], None]:
            model = MiniBatchKMeans(n_units, random_state=0, n_init=1).partial_fit(X[:500])
            return lambda: [model.partial_fit(x[None]) for x in X[500 : 500 + 200 // few]]  # type: ignore[return-value]

        return Subject("scikit-learn MiniBatchKMeans", 200 // few, prepare)

    def minisom() -> Subject:
        from minisom import MiniSom

        def prepare() -> Callable[[], None]:
            model = MiniSom(5, n_units // 5, X.shape[1], random_seed=0)

            def run() -> None:
                for t, x in enumerate(X[: 200 // few]):
                    model.update(x, model.winner(x), t, 10**6)

            return run

        return Subject("MiniSom", 200 // few, prepare)

    def art2a() -> Subject:
        from artlib import ART2A

        rows = X[: n_units + 200 // few].astype(np.float64)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 1e-12

        def prepare() -> Callable[[], None]:
            model = ART2A(rho=0.9999, alpha=0.0, beta=0.02)
            model.partial_fit(rows[:n_units])  # almost every row becomes a unit
            model.params["rho"] = 0.0  # and no more are added
            return lambda: [model.partial_fit(row[None]) for row in rows[n_units:]]  # type: ignore[return-value]

        return Subject("artlib ART2A", 200 // few, prepare)

    def river() -> Subject:
        from river import cluster

        samples = [dict(enumerate(x.tolist())) for x in X[:6]]

        def prepare() -> Callable[[], None]:
            model = cluster.KMeans(n_clusters=n_units, seed=0)
            model.learn_one(samples[0])
            return lambda: [model.learn_one(sample) for sample in samples[1:]]  # type: ignore[return-value]

        return Subject("River KMeans", 5, prepare)

    def torch_mlp() -> Subject:
        import torch

        torch.set_num_threads(1)
        rows, labels = torch.from_numpy(X[: 300 // few].copy()), torch.from_numpy(y[: 300 // few].copy())

        def prepare() -> Callable[[], None]:
            torch.manual_seed(0)
            sizes = (X.shape[1], 110, 104, 2)
            layers: list[Any] = []
            for before, after in pairwise(sizes):
                layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
            net = torch.nn.Sequential(*layers[:-1])
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
            loss = torch.nn.CrossEntropyLoss()

            def run() -> None:
                for k in range(len(rows)):
                    optimizer.zero_grad()
                    loss(net(rows[k : k + 1]), labels[k : k + 1]).backward()
                    optimizer.step()

            return run

        return Subject("PyTorch MLP", 300 // few, prepare)

    for make in (minibatch, minisom, art2a, river, torch_mlp):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield make()
        except ImportError as missing:
            print(f"  without {make.__name__}: {missing} (pip install 'ccmem[bench]')")


def online_mlp(X: np.ndarray, y: np.ndarray) -> Subject | None:
    """Return ccmem's network, if this version has one."""
    try:
        from ccmem import OnlineMLP
    except ImportError:
        return None
    n = 3000

    def prepare() -> Callable[[], None]:
        net = OnlineMLP((110, 104), learning_rate=0.01, random_state=0).partial_fit(X[:10], y[:10], classes=[0, 1])
        return lambda: net.partial_fit(X[:n], y[:n])

    return Subject("OnlineMLP", n, prepare)
