"""Make the picture at the top of the README: ``python docs/make_hero.py`` writes ``docs/_static/hero.png``.

A real run: digits arrive pair by pair, nobody tells the memory when the pair changes, and it opens a block for each new
pair and goes back to the old block when an old pair returns.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from sklearn.datasets import load_digits

from ccmem import CCM

TASKS = [(0, 1), (2, 3), (4, 5), (0, 1), (6, 7), (2, 3)]
LENGTH = 350
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]
INK, GREY, RED = "#22272e", "#8b949e", "#c0392b"


def stream(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and classes, pair after pair."""
    images, classes = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.choice(np.flatnonzero(np.isin(classes, task)), LENGTH) for task in TASKS])
    return images[rows] / 16, classes[rows]


def draw(path: Path, seed: int = 0) -> CCM:
    X, classes = stream(seed)
    memory = CCM(n_slots=8, vigilance=0.91, alarm_limit=12, recall_limit=6, commit_limit=10, random_state=seed)
    block, alarm = np.empty(len(X), int), np.empty(len(X), int)
    for step, x in enumerate(X):
        memory.learn_one(x)
        block[step], alarm[step] = memory.task_pointer_, memory.alarm_

    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 13, "text.color": INK, "axes.labelcolor": INK})
    figure = plt.figure(figsize=(13, 6.3), facecolor="white")
    grid = figure.add_gridspec(
        3,
        2,
        width_ratios=[2.75, 1],
        height_ratios=[0.62, 3.1, 0.8],
        left=0.075,
        right=0.985,
        top=0.9,
        bottom=0.085,
        wspace=0.03,
        hspace=0.13,
    )
    incoming, lanes, doubt, held = (figure.add_subplot(grid[place]) for place in [(0, 0), (1, 0), (2, 0), (1, 1)])
    for axes in (incoming, lanes, doubt):
        axes.set_xlim(0, len(X))
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        for change in range(LENGTH, len(X), LENGTH):
            axes.axvline(change, color="#d0d7de", lw=1, ls=(0, (4, 3)), zorder=0)

    # what arrives
    per_task = 4
    width = LENGTH / per_task
    for number in range(len(TASKS) * per_task):
        middle = (number + 0.5) * width
        digit = TASKS[number // per_task][number % 2]  # one of each in turn, the nearest to this place of the stream
        rows = np.flatnonzero(classes == digit)
        image = X[rows[np.abs(rows - middle).argmin()]].reshape(8, 8)
        incoming.imshow(
            image,
            cmap="Greys",
            extent=(middle - 40, middle + 40, 0.0, 1.0),
            aspect="auto",
            interpolation="nearest",
            vmin=0,
            vmax=1.05,
        )
    incoming.set(xlim=(0, len(X)), ylim=(-0.15, 1.75), xticks=[], yticks=[])
    for number, (first, second) in enumerate(TASKS):
        again = "" if TASKS.index((first, second)) == number else " again"
        incoming.text((number + 0.5) * LENGTH, 1.28, f"{first} and {second}{again}", ha="center", color=GREY, size=13)
    incoming.set_ylabel("stream", rotation=0, ha="right", va="center", labelpad=12, weight="bold")

    # the block in use
    n = memory.n_blocks_
    changes = [0, *(np.flatnonzero(np.diff(block)) + 1), len(X)]
    for b in range(n):
        born = int(np.argmax(block == b))
        lanes.add_patch(Rectangle((born, n - 1 - b - 0.06), len(X) - born, 0.12, color=COLOURS[b], alpha=0.22, lw=0))
    for start, stop in itertools.pairwise(changes):
        b = block[start]
        lanes.add_patch(
            FancyBboxPatch(
                (start + 9, n - 1 - b - 0.2),
                stop - start - 18,
                0.4,
                color=COLOURS[b],
                lw=0,
                boxstyle="round,pad=0,rounding_size=9",
                mutation_aspect=0.012,
            )
        )
    for event in memory.events_:
        start, end = n - 1 - event.from_block, n - 1 - event.to_block
        recall = event.kind == "recall"
        gap = 0.24 if end < start else -0.24
        lanes.add_patch(
            FancyArrowPatch(
                (event.step, start - gap),
                (event.step, end + gap),
                arrowstyle="-|>",
                mutation_scale=15,
                lw=1.8,
                color=INK,
            )
        )
        text = "recalled" if recall else "new block"
        lanes.text(
            event.step + 18,
            (start + end) / 2,
            text,
            va="center",
            ha="left",
            size=13,
            color=INK,
            weight="bold" if recall else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )
    lanes.set(ylim=(-0.5, n - 0.5), xticks=[], yticks=range(n), yticklabels=[f"block {n - 1 - i}" for i in range(n)])
    for label, colour in zip(lanes.get_yticklabels(), COLOURS[n - 1 :: -1], strict=True):
        label.set(color=colour, weight="bold")

    # the alarm
    doubt.fill_between(range(len(X)), alarm, color=RED, step="mid", lw=0.8, alpha=0.9)
    doubt.axhline(memory.alarm_limit, color=RED, lw=1, ls=":")
    doubt.text(len(X), memory.alarm_limit + 0.8, "limit", ha="right", va="bottom", color=RED, size=11)
    doubt.set(ylim=(0, memory.alarm_limit * 1.35), yticks=[], xlabel="samples seen, one at a time")
    doubt.set_xticks(range(0, len(X) + 1, LENGTH))
    doubt.tick_params(colors=GREY, labelsize=12)
    doubt.set_ylabel("alarm", rotation=0, ha="right", va="center", labelpad=12, color=RED, weight="bold")

    # what the blocks hold at the end
    held.set(xlim=(-0.2, memory.n_slots), ylim=(-0.5, n - 0.5), xticks=[], yticks=[])
    held.spines[:].set_visible(False)
    for b in range(n):
        slots = np.arange(b * memory.n_slots, (b + 1) * memory.n_slots)
        order = slots[np.argsort(-memory.win_counts_[slots])]
        for place, unit in enumerate(order):
            image = memory.prototypes_[unit].reshape(8, 8)
            held.imshow(
                image,
                cmap="Greys",
                aspect="auto",
                interpolation="nearest",
                vmin=0,
                vmax=image.max() * 1.05,
                extent=(place + 0.04, place + 0.96, n - 1 - b - 0.24, n - 1 - b + 0.24),
            )
            held.add_patch(Rectangle((place + 0.04, n - 1 - b - 0.24), 0.92, 0.48, fill=False, ec=COLOURS[b], lw=1.6))
    held.set(xlim=(-0.2, memory.n_slots), ylim=(-0.5, n - 0.5))
    held.set_title("what each block holds", size=13, color=GREY, pad=4)

    figure.text(0.075, 0.945, "A memory that notices what is new and what is back", size=19, weight="bold")
    figure.text(0.985, 0.945, "no labels · no task boundaries · one pass", size=13, color=GREY, ha="right")
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return memory


if __name__ == "__main__":
    target = Path(__file__).parent / "_static" / "hero.png"
    for event in draw(target).events_:
        print(event)
    print(f"{target}: {target.stat().st_size / 1000:.0f} kB")
