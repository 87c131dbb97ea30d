"""Make the pictures at the top of the README: ``python docs/make_hero.py`` writes ``hero.png`` and ``forming.gif``.

A real run with the defaults but for the number of slots: digits arrive pair by pair, nobody tells the memory when the
pair changes, and it opens a block for each new pair and goes back to the old block when an old pair returns. Both
pictures are drawn by the public functions of :mod:`ccmem.plots`.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from ccmem import AdaptiveCCM, plots
from ccmem.plots._figure import new_figure

TASKS = [(0, 1), (2, 3), (4, 5), (0, 1), (6, 7), (2, 3)]
LENGTH, FRAMES = 350, 30
STATIC = Path(__file__).parent / "_static"
CHANGES = list(range(LENGTH, LENGTH * len(TASKS), LENGTH))


def stream(seed: int = 0) -> Any:
    """Images, pair after pair."""
    images, classes = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.choice(np.flatnonzero(np.isin(classes, task)), LENGTH) for task in TASKS])
    return images[rows] / 16


def draw(
    memory: AdaptiveCCM, X: Any, evidence: Any, title: str | None, width: float, height: float, dpi: int
) -> Image.Image:
    """Draw the present memory on the axis of the whole stream."""
    figure = new_figure(width, height)
    left, right = figure.subfigures(1, 2, width_ratios=[2, 1])
    plots.timeline(memory, stream=X, evidence=evidence, changes=CHANGES, figure=left)
    plots.blocks(memory, figure=right, title="what each block holds")
    left.axes[-1].set_xlim(0, LENGTH * len(TASKS))
    if title is not None:
        figure.suptitle(title, size=17, weight="bold")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=dpi)
    return Image.open(buffer).convert("RGB")


def main() -> None:
    """Learn, and draw at every frame."""
    X = stream()
    memory, frames = AdaptiveCCM(n_slots=8), []
    known = hasattr(AdaptiveCCM, "evidence_")  # otherwise only the evidence of the events is drawn
    evidence: Any = np.zeros(len(X)) if known else True
    shown = set(np.linspace(0, len(X), FRAMES + 1).astype(int)[1:].tolist())
    for step, x in enumerate(X):
        memory.learn_one(x)
        if known:
            evidence[step] = memory.evidence_
        if step + 1 in shown:
            frames.append(draw(memory, X, evidence, None, 11, 5.2, 70))
    title = "A memory that notices what is new and what is back"
    draw(memory, X, evidence, title, 13, 6.3, 120).save(STATIC / "hero.png", optimize=True)
    small = [frame.quantize(64) for frame in frames]
    times = [220] * (len(small) - 1) + [3000]
    small[0].save(STATIC / "forming.gif", save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True)
    print([str(event) for event in memory.events_])


if __name__ == "__main__":
    main()
