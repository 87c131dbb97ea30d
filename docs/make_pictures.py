"""Make the pictures of the user guide and of the start page: ``python docs/make_pictures.py`` writes them to
``docs/_static``."""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from make_hero import stream
from matplotlib.patches import Circle, Wedge
from sklearn.decomposition import PCA

from ccmem import CCM, AdaptiveCCM, IncrementalWTA

HERE = Path(__file__).parent / "_static"
BLUE, ORANGE, GREEN, RED, GREY, INK = "#0072B2", "#E69F00", "#009E73", "#c0392b", "#8b949e", "#22272e"
ARROW = {"arrowstyle": "-|>", "lw": 1.8, "shrinkA": 0, "shrinkB": 0}


def save(figure: Any, name: str) -> None:
    figure.savefig(HERE / name, dpi=110)
    plt.close(figure)
    print(f"{name}: {(HERE / name).stat().st_size / 1000:.0f} kB")


def bare(axes: Any, low: float, high: float, title: str) -> None:
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal", xticks=[], yticks=[])
    axes.set_title(title, loc="left", size=12)
    axes.spines[:].set_color("#d0d7de")


def competition() -> None:
    """Units, a sample, and who wins, by distance and by direction; then the winner's move."""
    figure, (by_distance, by_direction, move) = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    units = np.array([[1.0, 3.2], [2.9, 3.1], [3.4, 0.9], [0.8, 0.9]])
    x = np.array([2.2, 2.2])
    h = np.linalg.norm(units - x, axis=1)
    for unit, distance in zip(units, h, strict=True):
        won = distance == h.min()
        by_distance.plot(
            *zip(x, unit, strict=True), color=BLUE if won else GREY, lw=2.4 if won else 1, ls="-" if won else ":"
        )
        by_distance.plot(*unit, "o", ms=13, color=BLUE if won else GREY)
        by_distance.annotate(
            f"{distance:.2f}",
            (x + unit) / 2,
            ha="center",
            va="center",
            color=BLUE if won else GREY,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
        )
    by_distance.plot(*x, "*", ms=20, color=ORANGE)
    bare(by_distance, 0, 4, "by distance: the nearest wins")

    angles = np.radians([12, 47, 80])
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    sample = np.array([0.72, 0.98]) * 0.66
    scores = directions @ sample / np.linalg.norm(sample)
    by_direction.add_patch(Circle((0, 0), 1, fill=False, color="#d0d7de"))
    for direction, score in zip(directions, scores, strict=True):
        won = score == scores.max()
        colour = BLUE if won else GREY
        by_direction.annotate("", direction, (0, 0), arrowprops={**ARROW, "color": colour, "lw": 2.6 if won else 1.4})
        by_direction.annotate(f"{score:.2f}", direction * 1.09, ha="center", va="center", color=colour)
    by_direction.plot([0, sample[0]], [0, sample[1]], color=ORANGE, lw=1, ls=":")
    by_direction.plot(*sample, "*", ms=20, color=ORANGE)
    bare(by_direction, -0.05, 1.25, "by direction: the largest cosine wins")

    before = units[1]
    memory = IncrementalWTA(n_units=4, learning_rate=0.35, init=units).partial_fit(x[None])
    after = memory.prototypes_[1]
    for unit in units[[0, 2, 3]]:
        move.plot(*unit, "o", ms=13, color=GREY)
    move.plot(*before, "o", ms=13, mfc="none", mec=BLUE)
    move.annotate("", after, before, arrowprops={**ARROW, "color": BLUE, "shrinkB": 6})
    move.plot(*after, "o", ms=13, color=BLUE)
    move.plot(*x, "*", ms=20, color=ORANGE)
    text = "part of the way:\nthe learning rate"
    move.annotate(text, before, xytext=(-8, 22), textcoords="offset points", color=BLUE, ha="center")
    bare(move, 0, 4, "the winner moves, the others stay")
    save(figure, "guide_competition.png")


def vigilance() -> None:
    """A unit's cone, a sample inside it and one outside, and what becomes of the latter."""
    figure, panels = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    middle, rho = np.radians(42), 0.9
    unit = np.array([np.cos(middle), np.sin(middle)])
    half = np.degrees(np.arccos(rho))
    cases = [
        (52, "inside the cone: learned", BLUE),
        (80, "outside: a miss", RED),
        (80, "outside, but a slot is open", GREEN),
    ]
    for axes, (angle, title, colour) in zip(panels, cases, strict=True):
        sample = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
        axes.add_patch(Circle((0, 0), 1, fill=False, color="#d0d7de"))
        axes.add_patch(Wedge((0, 0), 1, 42 - half, 42 + half, color=BLUE, alpha=0.15, lw=0))
        axes.annotate("", unit, (0, 0), arrowprops={**ARROW, "color": BLUE, "lw": 2.6})
        axes.plot(*sample, "*", ms=20, color=ORANGE)
        axes.text(
            *(sample * 1.12), f"{unit @ sample:.2f}", ha="center", va="center", color=colour, weight="bold", size=12
        )
        if colour == GREEN:
            slot = np.array([np.cos(np.radians(100)), np.sin(np.radians(100))]) * 0.97
            axes.annotate("", slot, (0, 0), arrowprops={**ARROW, "color": GREEN, "ls": "--"})
            axes.annotate(
                "", sample * 0.93, slot, arrowprops={**ARROW, "color": GREEN, "connectionstyle": "arc3,rad=-0.3"}
            )
            axes.text(0.0, 0.5, "open slot", color=GREEN, ha="right", rotation=-80)
        bare(axes, -0.28, 1.25, title)
    panels[0].text(0.52, 0.28, f"vigilance {rho}", color=BLUE, rotation=24)
    panels[1].text(0.72, 1.05, "alarm + 1", color=RED, weight="bold")
    save(figure, "guide_vigilance.png")


def alarm() -> None:
    """A change to something new and a return to something old, sample by sample."""
    X = stream(0)
    memory = CCM(n_slots=8, vigilance=0.91, alarm_limit=12, recall_limit=6, commit_limit=10, random_state=0)
    best, hit, alarms, recalls = (np.zeros(len(X)) for _ in range(4))
    for step, x in enumerate(X):
        if step:
            slots = slice(memory.task_pointer_ * 8, memory.task_pointer_ * 8 + 8)
            best[step] = memory.transform(x[None])[0, slots].max()
        before = memory.events_[-1] if step and memory.events_ else None
        hit[step] = memory.learn_one(x) >= 0
        alarms[step], recalls[step] = memory.alarm_, memory.recall_counts_.max()
        if (
            memory.events_ and memory.events_[-1] != before
        ):  # the counters have just gone back to 0: show what they were
            event = memory.events_[-1]
            alarms[step] = event.count if event.kind == "new_block" else alarms[step - 1] + 1
            recalls[step] = event.count if event.kind == "recall" else recalls[step - 1]
    figure, grid = plt.subplots(2, 2, figsize=(12, 5.2), sharex="col", height_ratios=[1.3, 1], layout="constrained")
    for column, (change, title) in enumerate(
        [(350, "something new: 2 and 3 for the first time"), (1050, "something known: 0 and 1 again")]
    ):
        part = np.arange(change - 18, change + 30)
        top, bottom = grid[:, column]
        learned = hit[part] == 1
        seen = best[part] > 0
        top.plot(part[learned & seen], best[part][learned & seen], "o", color=BLUE, label="learned")
        top.plot(part[~learned], best[part][~learned], "x", color=RED, mew=2, label="missed")
        top.axhline(memory.vigilance, color=INK, lw=1, ls=":")
        top.text(1.005, memory.vigilance, "vigilance", va="center", size=10, transform=top.get_yaxis_transform())
        top.set_title(title, loc="left", size=12)
        bottom.step(part, alarms[part], where="mid", color=RED, lw=2, label="alarm")
        bottom.step(part, recalls[part], where="mid", color=GREEN, lw=2, label="hits of the best\nwaiting block")
        bottom.axhline(memory.alarm_limit, color=RED, lw=1, ls=":")
        bottom.axhline(memory.recall_limit, color=GREEN, lw=1, ls=":")
        event = next(e for e in memory.events_ if e.step >= change)
        for axes in (top, bottom):
            axes.axvline(change - 0.5, color=GREY, ls=(0, (4, 3)), lw=1)
            axes.axvline(event.step, color=INK, lw=1.4)
            axes.spines[["top", "right"]].set_visible(False)
        what = f"new block {event.to_block}" if event.kind == "new_block" else f"block {event.to_block} recalled"
        bottom.annotate(what, (event.step, 13.4), xytext=(6, 0), textcoords="offset points", va="center", weight="bold")
        top.text(change - 1.5, 0.52, "the task changes", size=10, ha="right", va="center", color=GREY)
        top.set(ylim=(0.48, 1.02))
        bottom.set(xlabel="sample", ylim=(0, 15), yticks=range(0, 16, 3))
    grid[0, 0].set_ylabel("similarity to the best slot\nof the block in use")
    grid[1, 0].set_ylabel("counters")
    for axes in grid[:, 1]:  # beside the panels, where no curve is
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.005, 0.75 if axes is grid[0, 1] else 1.0))
    save(figure, "guide_alarm.png")


def signature() -> None:
    """Draw the recent mean on its way between the levels of the blocks, in the plane of their first two components."""
    X = stream(0)
    memory = AdaptiveCCM(n_slots=8)
    path, block = np.empty_like(X), np.empty(len(X), int)
    for step, x in enumerate(X):
        memory.learn_one(x)
        path[step], block[step] = X[max(0, step - 47) : step + 1].mean(axis=0), memory.task_pointer_
    means, unit = memory.block_levels_, X
    plane = PCA(2).fit(means)
    spread = np.sqrt([plane.transform(unit[block == b]).var(axis=0).sum() for b in range(len(means))])
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained", width_ratios=[1, 1.25])
    colours = [BLUE, ORANGE, GREEN, "#CC79A7"]
    places, way = plane.transform(means), plane.transform(path)[40:]
    left.plot(*way.T, color="#c9ced4", lw=0.9, zorder=1)
    for b, (x, y) in enumerate(places):
        left.scatter(*way[block[40:] == b][::4].T, s=5, color=colours[b], zorder=2)
        left.add_patch(Circle((x, y), spread[b] / 4, color=colours[b], alpha=0.15, lw=0))
        left.plot(x, y, "o", ms=11, color=colours[b], mec="white", zorder=3)
        left.annotate(
            f"block {b}",
            (x, y),
            xytext=(0, 24),
            textcoords="offset points",
            ha="center",
            color=colours[b],
            weight="bold",
            zorder=4,
        )
    left.set(xticks=[], yticks=[], aspect="equal")
    left.set_title("the mean of recent samples moves from level to level", loc="left", size=12)
    left.spines[:].set_color("#d0d7de")
    distance = np.linalg.norm(path[:, None] - means[None], axis=2)
    for b in range(len(means)):
        right.plot(distance[:, b], color=colours[b], lw=1.8)
    right.set(xlabel="sample", ylabel="distance of the recent mean\nfrom each final level", xlim=(0, len(X)))
    top = right.get_ylim()[1]
    for event in memory.events_:
        right.axvline(event.step, color=INK, lw=1.2)
        text = f"block {event.to_block}\n" + ("recalled" if event.kind == "recall" else "begins")
        right.text(event.step + 12, top, text, va="top", size=10)
    for change in range(350, len(X), 350):
        right.axvline(change, color=GREY, ls=(0, (4, 3)), lw=1)
    right.set_ylim(0, top * 1.02)
    right.set_title("dashed: the task changes", loc="left", size=12)
    right.spines[["top", "right"]].set_visible(False)
    save(figure, "guide_signature.png")


def start() -> None:
    """The picture of the start page, by the code of the page."""
    code = re.findall(r"^```python\n(.*?)^```$", (HERE.parent / "start.md").read_text(), re.M | re.S)
    drawn = next(number for number, block in enumerate(code) if "savefig" in block)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec("\n".join(code[: drawn + 1]), {"__name__": "start"})
        (HERE / "start.png").write_bytes(Path("start.png").read_bytes())


if __name__ == "__main__":
    start()
    plt.rcParams.update({"font.size": 11, "text.color": INK})
    competition()
    vigilance()
    alarm()
    signature()
