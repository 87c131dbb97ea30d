"""Cost of learning a sample for every model of the family, relative to a bare distance loop and to peers.

    python -m benchmarks.family [--rounds 9] [--peers]

One core, processor time, 784 columns, 125 units, float32; all units are in use before the clock starts. The bare loop
computes the distance of every row to every unit and finds the nearest, nothing else. Every model learns the same rows
in order, one sample after the other. Subjects take turns; a ratio is the median over the rounds. ``--peers`` adds
MiniSom and artlib, on fewer rows. "hand-written" is winner-take-all as one kernel, "own file" a model composed outside
the package with a custom neighbourhood, "own kernel" that model as one kernel.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from copy import deepcopy
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core; must be set before numpy loads

import numpy as np

from benchmarks.timing import Subject, ratio, take_turns
from ccmem import (
    FrequencySensitiveWTA,
    FuzzyART,
    GrowingNeuralGas,
    IncrementalGMM,
    IncrementalWTA,
    NeuralGas,
    SelfOrganisingMap,
    ncl,
)
from ccmem.core.allocation import aligned
from ccmem.kernels.competition import distance_powers, lowest
from ccmem.kernels.jit import kernel_in_place
from ccmem.kernels.update import count_win, hebbian_move

UNITS, COLUMNS, ROWS, PEER_ROWS = 125, 784, 1000, 60


@kernel_in_place
def bare(M: Any, X: Any, h: Any, winners: Any) -> None:
    """Return the nearest unit of every row."""
    for r in range(X.shape[0]):
        distance_powers(M, M.shape[0], X, r, 2.0, h)
        winners[r] = lowest(h, M.shape[0])


@kernel_in_place
def by_hand(M: Any, rates: Any, wins: Any, X: Any, h: Any, winners: Any) -> None:
    """Learn by winner-take-all in a hand-written kernel."""
    for r in range(X.shape[0]):
        distance_powers(M, M.shape[0], X, r, 2.0, h)
        w = lowest(h, M.shape[0])
        hebbian_move(M[w], X[r], rates[w])
        count_win(rates, wins, w, 0.999)
        winners[r] = w


@kernel_in_place
def chain_by_hand(M: Any, rates: Any, wins: Any, X: Any, h: Any, winners: Any) -> None:
    """Learn the model :class:`Chain` in a hand-written kernel."""
    for r in range(X.shape[0]):
        distance_powers(M, M.shape[0], X, r, 2.0, h)
        w = lowest(h, M.shape[0])
        for i in range(max(0, w - 2), min(M.shape[0], w + 3)):
            hebbian_move(M[i], X[r], rates[i] / (1.0 + abs(i - w)))
        count_win(rates, wins, w, 0.999)
        winners[r] = w


@ncl.neighbourhood
def chain(state: Any, settings: Any, winner: int, unit: int) -> float:
    """Return the weight of a unit: positive for up to two units on either side of the winner."""
    gap = abs(unit - winner)
    return 1.0 / (1.0 + gap) if gap <= 2 else 0.0


class Chain(ncl.Model):
    """Model whose units form a chain."""

    neighbourhood = chain


def rows() -> Any:
    """Return sparse rows, similar to images; the first rows differ enough to become units of any model."""
    rng = np.random.default_rng(0)
    X = rng.random((ROWS + 2 * UNITS, COLUMNS), dtype=np.float32)
    X[2 * UNITS :] *= rng.random((ROWS, COLUMNS)) < 0.3
    return X


MODELS: dict[str, Any] = {
    "IncrementalWTA": IncrementalWTA(UNITS),
    "IncrementalWTA, Adam": IncrementalWTA(UNITS, step="adam", learning_rate=0.001),
    "IncrementalGMM": IncrementalGMM(UNITS),
    "FrequencySensitiveWTA": FrequencySensitiveWTA(UNITS),
    "FrequencySensitiveWTA, conscience": FrequencySensitiveWTA(UNITS, fairness="conscience"),
    "SelfOrganisingMap, sigma 0.4": SelfOrganisingMap(5, 25, sigma=0.4),
    "SelfOrganisingMap, sigma 1": SelfOrganisingMap(5, 25, sigma=1.0),
    "NeuralGas, reach 0.5": NeuralGas(UNITS, reach=0.5, horizon=np.inf),
    "NeuralGas, reach 10 (all units move)": NeuralGas(UNITS, reach=10.0, horizon=np.inf),
    "GrowingNeuralGas": GrowingNeuralGas(UNITS, insert_every=1, max_age=10**6),
    "FuzzyART": FuzzyART(UNITS, vigilance=0.95),
    "own file": Chain(n_units=UNITS, rate_decay=0.999),
}


def subjects(X: Any) -> list[Subject]:
    """Return the hand-written loops and all models, with all units in use.

    Every round learns in a fresh copy: where the arrays of a copy lie in memory changes its speed by some percent.
    """
    stream = X[2 * UNITS :]

    def loop(kernel: Callable[..., None], learns: bool = True) -> Callable[[], Any]:
        M, h, winners = aligned(X[:UNITS].copy()), np.empty(UNITS), np.empty(ROWS, np.int64)
        counts = (np.full(UNITS, 0.1), np.zeros(UNITS, np.int64)) if learns else ()
        return lambda: kernel(M, *counts, stream, h, winners)

    def learning(model: Any) -> Callable[[], Any]:
        copy = deepcopy(model)
        copy.partial_fit(stream[:2])  # checks of parameters are made once
        return lambda: copy.partial_fit(stream)

    found = [
        Subject("bare", ROWS, lambda: loop(bare, learns=False)),
        Subject("hand-written", ROWS, lambda: loop(by_hand)),
        Subject("own kernel", ROWS, lambda: loop(chain_by_hand)),
    ]
    for name, model in MODELS.items():
        model.fit(X[: 2 * UNITS])
        if isinstance(model, FuzzyART):
            model.set_params(vigilance=0.0)
        assert model.n_units_ == UNITS, name
        found.append(Subject(name, ROWS, lambda model=model: learning(model)))
    return found


def peers(X: Any) -> list[Subject]:
    """Return MiniSom and artlib on the same units."""
    from artlib import FuzzyART as TheirART
    from minisom import MiniSom

    stream = X[2 * UNITS : 2 * UNITS + PEER_ROWS].astype(np.float64)
    som = MiniSom(5, 25, COLUMNS, sigma=0.4, learning_rate=0.5)
    art = TheirART(rho=0.95, alpha=1e-3, beta=1.0)
    first = X[:UNITS].astype(np.float64)
    art.partial_fit(np.hstack([first, 1 - first]))
    art.params["rho"] = 0.0

    def learn_som() -> None:
        for t, x in enumerate(stream):
            som.update(x, som.winner(x), t, ROWS)

    def learn_art() -> Callable[[], Any]:
        coded = np.hstack([stream, 1 - stream])
        return lambda: [art.step_fit(x) for x in coded]

    return [Subject("MiniSom", PEER_ROWS, lambda: learn_som), Subject("artlib", PEER_ROWS, learn_art)]


def main() -> None:
    """Print a table of ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", action="store_true")
    args = parser.parse_args()
    X = rows()
    seconds = take_turns([*subjects(X), *(peers(X) if args.peers else [])], args.rounds)
    print(f"{'':38}{'us/sample':>10}{'x bare':>9}")
    for name, values in seconds.items():
        print(f"{name:38}{1e6 * np.median(values):10.1f}{ratio(values, seconds['bare'])['median']:9.2f}")
    print(f"own file / own kernel: {ratio(seconds['own file'], seconds['own kernel'])['median']:.2f}")
    if args.peers:
        for ours, theirs in (("SelfOrganisingMap, sigma 0.4", "MiniSom"), ("FuzzyART", "artlib")):
            print(f"{theirs} / {ours}: {np.median(seconds[theirs]) / np.median(seconds[ours]):.0f}")


if __name__ == "__main__":
    main()
