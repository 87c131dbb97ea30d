"""Cost of CCM as a function of blocks, slots, width and chunk size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.data import images_like
from benchmarks.timing import Subject, spread, take_turns
from ccmem import CCM
from ccmem.base.matching import most_similar
from ccmem.core.allocation import aligned
from ccmem.core.state import UNITS
from ccmem.kernels.competition import dot, unit_scale
from ccmem.models._blocks import BLOCKS, POINTER

NEVER = 1 << 40


@numba.njit(nogil=True)
def look_at_everything(prototypes, wins, first, stop, threshold, epsilon, X):  # type: ignore[no-untyped-def]
    """Compute a miss without pruning: every slot of every other block, up to the first match."""
    found = 0
    for r in range(X.shape[0]):
        scale = unit_scale(X[r], epsilon)
        for i in range(wins.shape[0]):
            if not first <= i < stop and wins[i] > 0 and dot(prototypes[i], X[r]) * scale > threshold:
                found += 1
                break
    return found


def memory_of(n_blocks: int, n_slots: int, width: int, kind: str, rng: np.random.Generator) -> CCM:
    """Build a memory with this many blocks: ``scattered`` directions, or ``images`` that share some."""
    memory = CCM(n_slots, vigilance=0.9, alarm_limit=NEVER, recall_limit=NEVER, commit_limit=0, random_state=0)
    memory.partial_fit(np.ones((1, width), np.float32))
    n = n_blocks * n_slots
    if kind == "images":
        slots = images_like(rng, n)[:, :width]
    else:
        slots = rng.standard_normal((n, width), np.float32) * np.float32(0.3)
        slots.reshape(n_blocks, n_slots, width)[...] += rng.standard_normal((n_blocks, 1, width), np.float32)
    slots /= np.linalg.norm(slots, axis=1, keepdims=True) + 1e-12
    slots = aligned(slots)  # aligned like a memory's arrays
    counters = memory._state.counters.copy()
    counters[[UNITS, BLOCKS, POINTER]] = n, n_blocks, n_blocks - 1
    wins = np.ones(n, np.int64)
    memory._state = memory._state._replace(
        prototypes=slots,
        rates=np.full(n, 0.01),
        wins=wins,
        counters=counters,
        recalls=np.zeros(n_blocks + 1, np.int64),
        **memory._derive(slots, wins),
    )
    return memory


def staying(memory: CCM, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return samples close to slots of the block in use."""
    return close_to(memory._state.prototypes[-memory.n_slots :], n, rng)


def close_to(prototypes: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return samples close to some of these rows."""
    slots = prototypes[rng.integers(0, len(prototypes), n)]
    return (slots + 0.02 * rng.standard_normal(slots.shape, np.float32) / np.sqrt(slots.shape[1])).astype(np.float32)


def missing(memory: CCM, n: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return samples that no slot matches: other directions, or images of other strokes."""
    width = memory._state.prototypes.shape[1]
    rows = images_like(rng, n)[:, :width] if kind == "images" else rng.standard_normal((n, width), np.float32)
    return np.ascontiguousarray(rows)


def learning(name: str, memory: CCM, X: np.ndarray, chunk: int | None = None) -> Subject:
    """Return a subject that keeps learning: its block moves a little, its size stays."""
    parts = [X[k : k + (chunk or len(X))] for k in range(0, len(X), chunk or len(X))]

    def prepare() -> Callable[[], Any]:
        return lambda: [memory.partial_fit(part) for part in parts]

    return Subject(name, len(X), prepare)


def predicting(memory: CCM, rows: np.ndarray) -> list[Subject]:
    """Return subjects for prediction: the memory, and a matrix product with all slots."""
    prototypes, every = memory._state.prototypes, memory._may_win()

    def by_product() -> np.ndarray:
        winners = np.empty(len(rows), np.int64)
        most_similar(rows, prototypes, every, memory._epsilon, winners)
        return winners

    assert np.array_equal(memory.predict(rows), by_product()), "pruning is exact"
    return [
        Subject("predict", len(rows), lambda: lambda: memory.predict(rows)),
        Subject("predict_plain", len(rows), lambda: by_product),
    ]


def by_blocks(sizes: list[int], rounds: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Time streams that stay in one block, streams that always miss, and prediction, by number of blocks."""
    lines = []
    for kind in ("scattered", "images"):
        memories = {size: memory_of(size, 25, 784, kind, rng) for size in sizes}
        staying_put = [learning(str(size), memory, staying(memory, 2000, rng)) for size, memory in memories.items()]
        stays = take_turns(staying_put, rounds)
        for size, memory in memories.items():
            rows = missing(memory, 20 if size >= 1000 else 200, kind, rng)
            memory.partial_fit(rows)  # per-block preparation happens here
            assert memory.alarm_ >= len(rows), "the stream was to miss every time"
            state, last = memory._state, size * 25
            every = (state.prototypes, state.wins, last - 25, last, memory.vigilance, 1e-5, rows)
            plain = Subject("plain", len(rows), lambda every=every: lambda: look_at_everything(*every))  # type: ignore[misc]
            times = take_turns([learning("miss", memory, rows), plain], min(rounds, 5))
            known = close_to(state.prototypes, 200, np.random.default_rng(size))
            times |= take_turns(predicting(memory, known), min(rounds, 3))
            lines.append(
                {
                    "kind": kind,
                    "blocks": size,
                    "matched": int(look_at_everything(*every)),
                    "stay": spread(stays[str(size)]),
                    **{name: spread(values) for name, values in times.items()},
                }
            )
    return lines


def by_shape(rounds: int, rng: np.random.Generator) -> dict[str, list[dict[str, Any]]]:
    """Time streams that stay in one block, by slots, width and chunk size."""
    table: dict[str, list[dict[str, Any]]] = {"slots": [], "width": [], "chunk": []}
    subjects: dict[tuple[str, int], Subject] = {}
    for n_slots in (1, 5, 25, 125, 625):
        memory = memory_of(2, n_slots, 784, "scattered", rng)
        subjects["slots", n_slots] = learning(f"slots {n_slots}", memory, staying(memory, 500, rng))
    for width in (2, 16, 64, 256, 784, 4096):
        memory = memory_of(2, 25, width, "scattered", rng)
        subjects["width", width] = learning(f"width {width}", memory, staying(memory, 500, rng))
    for chunk in (1, 10, 100, 1000):
        memory = memory_of(2, 25, 784, "scattered", rng)
        subjects["chunk", chunk] = learning(f"chunk {chunk}", memory, staying(memory, 1000, rng), chunk)
    times = take_turns(subjects.values(), rounds)
    for (what, size), subject in subjects.items():
        table[what].append({"size": size, **spread(times[subject.name])})
    return table
