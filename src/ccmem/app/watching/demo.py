"""Demonstration streams that need no data: pairs of handwritten digits, or the sensors of a machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ccmem.core.sklearn import names_are_known
from ccmem.core.typing import FloatArray
from ccmem.io.streams.drift import drifting_sensors

DEMOS = ("digits", "sensors")
PAIRS = ((0, 1), (2, 3), (4, 5), (0, 1), (6, 7), (2, 3), (8, 9), (4, 5))
PAIR_ROWS, CHUNK_ROWS, ROWS_A_SECOND = 500, 20, 400


def digit_pairs(n_rows: int, seed: int = 0) -> tuple[FloatArray, Any, list[int]]:
    """Return images of digits (scikit-learn's, 8 by 8), labels as text, and the rows at which the pair changes."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    n_pairs = -(-n_rows // PAIR_ROWS)
    rows = np.concatenate(
        [rng.choice(np.flatnonzero(np.isin(digits, PAIRS[i % len(PAIRS)])), PAIR_ROWS) for i in range(n_pairs)]
    )[:n_rows]
    changes = list(range(PAIR_ROWS, n_rows, PAIR_ROWS))
    return images[rows] / 16.0, np.array([str(digit) for digit in digits[rows]], object), changes


class Demo:
    """Model and stream of a demonstration; :meth:`run` learns slowly enough to be watched."""

    def __init__(self, kind: str = "digits", n_rows: int = 12_000) -> None:
        from ccmem import AdaptiveCCM, ModalClassifier

        if kind not in DEMOS:
            raise ValueError(f"--demo {kind} is unknown; there are {' and '.join(DEMOS)}")
        self.names: tuple[str, ...] | None = None
        if kind == "digits":
            self.rows, self.labels, self.changes = digit_pairs(n_rows)
            self.speed = ROWS_A_SECOND
        else:
            plan = drifting_sensors(n_rows, 8, 4, 1200, 0.1)
            rows, labels = zip(*plan.chunks(), strict=True)
            self.rows, self.labels = np.concatenate(rows), np.concatenate([np.array(y, object) for y in labels])
            self.changes, self.names, self.speed = [step for step, _ in plan.changes], plan.names, 2 * ROWS_A_SECOND
        self.model = ModalClassifier(AdaptiveCCM(n_slots=10))

    def run(self, stop: Callable[[], bool] = lambda: False, speed: float | None = None) -> None:
        """Learn the stream at ``speed`` rows per second."""
        speed = speed or self.speed
        with names_are_known():
            for start in range(0, len(self.rows), CHUNK_ROWS):
                if stop():
                    return
                began = time.monotonic()
                part = slice(start, start + CHUNK_ROWS)
                self.model.partial_fit(self.rows[part], self.labels[part])
                if start == 0 and self.names is not None:
                    self.model.memory_.feature_names_in_ = np.array(self.names, object)
                # Do not catch up after a compile: the stream would rush past.
                time.sleep(max(0.0, began + CHUNK_ROWS / speed - time.monotonic()))

    def start(self, ended: Callable[[], None] = lambda: None) -> threading.Thread:
        """Learn in a daemon thread, which Ctrl-C can end; call ``ended`` at the end of the stream."""

        def learn() -> None:
            self.run()
            ended()

        thread = threading.Thread(target=learn, name="ccmem-demo", daemon=True)
        thread.start()
        return thread
