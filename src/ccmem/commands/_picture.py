"""The picture of a checkpoint: which block was in use when, what the units look like, how much each has learned."""

from __future__ import annotations

from typing import Any

import numpy as np


def draw(facts: dict[str, Any], path: str) -> None:
    """Draw the facts of ``ccmem inspect`` to ``path``."""
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise ImportError('--plot needs matplotlib: pip install "ccmem[plot]"') from problem
    if "wins" not in facts["arrays"]:
        raise ValueError(f"{facts['file']} holds no memory that has learned; there is nothing to draw")
    if not path.lower().endswith((".png", ".svg", ".pdf")):
        raise ValueError(f"--plot {path}: the name must end in .png, .svg or .pdf")
    figure = Figure(figsize=(9, 7.5), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[1, 1.4])
    _draw_timeline(above, facts)
    _draw_units(figure, below, facts)
    counts = f"{facts['rows_seen']:,} samples, {len(facts['blocks'])} blocks, {facts['units']} units"
    figure.suptitle(f"{facts['model']}: {counts}")
    figure.savefig(path, dpi=120)


def _draw_timeline(axes: Any, facts: dict[str, Any]) -> None:
    events = facts["events"]
    if events:
        steps = [0, *(event["step"] for event in events), facts["rows_seen"]]
        blocks = [events[0]["from_block"], *(event["to_block"] for event in events)]
        axes.stairs(blocks, steps, baseline=None, color="0.45", linewidth=1.5)
        for kind, mark, colour in (("new_block", "^", "tab:red"), ("recall", "o", "tab:blue")):
            some = [event for event in events if event["kind"] == kind]
            axes.plot(
                [e["step"] for e in some],
                [e["to_block"] for e in some],
                mark,
                color=colour,
                markersize=6,
                label=f"{len(some)} {'new blocks' if kind == 'new_block' else 'recalls'}",
            )
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, frameon=False)
        axes.set(xlabel="sample", ylabel="block", xlim=(0, facts["rows_seen"]))
        axes.set_title("Block in use", loc="left")
        axes.yaxis.get_major_locator().set_params(integer=True)
    else:
        wins = facts["arrays"]["wins"]
        axes.bar(np.arange(len(wins)), wins, color="tab:blue", width=0.9)
        axes.set(xlabel="unit", ylabel="samples")
        axes.set_title("Samples learned by each unit", loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_units(figure: Any, axes: Any, facts: dict[str, Any]) -> None:
    prototypes, wins = facts["arrays"]["prototypes"], facts["arrays"]["wins"]
    used = np.flatnonzero(wins > 0)
    used = used[np.argsort(facts["arrays"]["blocks"][used], kind="stable")][:200]
    image = axes.imshow(prototypes[used], aspect="auto", cmap="viridis", interpolation="nearest")
    names = (facts["learner"] or {}).get("features") or facts["arrays"]["names"]
    if names is not None and len(names) <= 24:
        axes.set_xticks(range(len(names)), [str(name) for name in names], rotation=30, ha="right")
    else:
        axes.set_xlabel("feature")
    blocks = {unit: block for block, unit in _first_units(facts)}
    if len(used) <= 40:
        several = len(blocks) > 1
        axes.set_yticks(
            range(len(used)),
            [f"{unit}" + (f"  (block {blocks[unit]})" if several and unit in blocks else "") for unit in used.tolist()],
        )
    part = f" (first {len(used)})" if len(used) < (wins > 0).sum() else ""
    axes.set_title("What the units stand for" + part, loc="left")
    axes.set_ylabel("unit")
    figure.colorbar(image, ax=axes, label="value")


def _first_units(facts: dict[str, Any]) -> list[tuple[int, int]]:
    """Block and its first used unit."""
    blocks = facts["arrays"]["blocks"]
    used = np.flatnonzero(facts["arrays"]["wins"] > 0)
    found, places = np.unique(blocks[used], return_index=True)
    return list(zip(found.tolist(), used[places].tolist(), strict=True))
