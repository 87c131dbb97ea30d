"""Put the results of the competitive family into docs/family.md, from studies/evidence.

ccmem reproduce mnist fashion-mnist notmnist --rows family family-500 --out studies/evidence/family
ccmem reproduce mnist fashion-mnist notmnist --rows adaptive --models ccm --out studies/evidence/reproduce
python -m studies.family
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from ccmem.paper.datasets import load
from ccmem.paper.experiments import settings, tuned
from studies.pages import grid, put_between

HERE = Path(__file__).parent
EVIDENCE, PICTURES = HERE / "evidence" / "family", HERE.parent / "docs" / "_static"
WITH_BLOCKS = HERE / "evidence" / "reproduce"
SETS = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "notmnist": "NotMNIST"}
LARGE, BLOCKS = "-500", "adaptive-ccm"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")


def cell(row: dict[str, Any] | None, protocol: str, metric: str) -> str:
    """Format the mean of a metric over the trials of a row, with the standard deviation of several trials."""
    if row is None or not row["trials"]:
        return "-"
    values = [trial["protocols"][protocol]["metrics"][metric] for trial in row["trials"].values()]
    text = f"{mean(values):.3f}".replace("0.", ".")
    return text + (f" ± {stdev(values):.3f}".replace("0.", ".") if len(values) > 1 else "")


def trials(rows: dict[str, Any], large: bool) -> str:
    """Describe the number of trials of the rows of one size."""
    counts = {len(row["trials"]) for name, row in rows.items() if name.endswith(LARGE) == large and row["trials"]}
    return " to ".join(str(count) for count in sorted({min(counts), max(counts)})) if counts else "no"


def table(results: dict[str, dict[str, Any]], blocks: dict[str, dict[str, Any]]) -> str:
    """Return one table per data set: both protocols with 125 units, the strict one with 500, and blocks below."""
    parts = []
    for name, title in SETS.items():
        if name not in results:
            continue
        rows = {key: row for key, row in results[name]["rows"].items() if key != BLOCKS}
        lines, head = (
            [],
            ("model", "paper ACC", "paper BWT", "strict ACC", "strict ACC, 500 units", "floats, 125 units"),
        )
        order = [key for key in settings()["family"] if rows.get(key, {}).get("trials")]
        for key, row in [*((key, rows[key]) for key in order), (BLOCKS, blocks[name])]:
            floats = max(trial["floats"] for trial in row["trials"].values())
            large = cell(rows.get(key + LARGE), "strict", "ACC")
            cells = [cell(row, "paper", "ACC"), cell(row, "paper", "BWT"), cell(row, "strict", "ACC"), large]
            lines.append((row["title"], *cells, f"{floats:,}"))
        counted = f"Trials: {trials(rows, False)} with 125 units, {trials(rows, True)} with 500."
        parts.append(f"### {title}\n\n{counted}\n\n{grid(head, lines)}\n")
    return "\n".join(parts)


def chosen() -> str:
    """Return a table of the settings that validation images chose, and the number of settings compared."""
    lines = []
    for name, facts in settings()["family"].items():
        found = [tuned()[dataset].get(name) for dataset in SETS]
        if facts.get("search"):
            texts = []
            for one in found:
                values = {**facts["parameters"], **(one or {"parameters": {}})["parameters"]}
                known = {key: values[key] for key in facts["search"] if key in values}
                texts.append(", ".join(f"{key} {value:g}" for key, value in known.items()) or "defaults")
            lines.append((facts["title"], *texts, str(len(found[0]["candidates"]))))
    return grid(("model", *SETS.values(), "settings compared"), lines)


def draw_forgetting(rows: dict[str, Any]) -> None:
    """Draw the accuracy on every task after every task, one square of squares per model."""
    figure, axes = plt.subplots(3, 6, figsize=(12, 6.6), layout="constrained")
    image = None
    for ax, row in zip(axes.flat, rows.values(), strict=False):
        R = np.array([trial["protocols"]["strict"]["R"] for trial in row["trials"].values()], np.float64).mean(axis=0)
        image = ax.imshow(R, vmin=0, vmax=1, cmap="viridis")
        for i, j in zip(*np.tril_indices(len(R)), strict=True):
            text = f"{R[i, j]:.2f}".replace("0.", ".")
            ax.text(j, i, text, ha="center", va="center", size=6, color="white" if R[i, j] < 0.6 else "black")
        ax.set_title(textwrap.fill(row["title"].replace(" (labels used)", "*"), 24), size=8)
        ax.set(xticks=range(5), yticks=range(5), xticklabels=range(1, 6), yticklabels=range(1, 6))
        ax.tick_params(labelsize=7, length=0)
    for ax in axes.flat[len(rows) :]:
        ax.axis("off")
    figure.supxlabel("task tested", size=9)
    figure.supylabel("after task", size=9)
    figure.colorbar(image, ax=axes, shrink=0.5, label="strict accuracy, MNIST")
    figure.savefig(PICTURES / "family_forgetting.png", dpi=110)
    plt.close(figure)


def units_by_task(prototypes: Any, images: Any, labels: Any, tasks: list[list[int]]) -> list[float]:
    """Return the share of units in every task: the task of the image most similar to the unit (by cosine)."""
    nearest = labels[(prototypes @ (images / np.linalg.norm(images, axis=1, keepdims=True)).T).argmax(axis=1)]
    return [float(np.isin(nearest, task).mean()) for task in tasks]


def draw_units(titles: dict[str, str], shares: dict[str, list[float]]) -> None:
    """Draw the share of units that belong to each task at the end of the stream, one bar per model."""
    figure, ax = plt.subplots(figsize=(8.5, 0.32 * len(shares) + 1.0), layout="constrained")
    left = np.zeros(len(shares))
    for task, colour in enumerate(COLOURS):
        width = np.array([share[task] for share in shares.values()])
        ax.barh(range(len(shares)), width, left=left, color=colour, label=f"task {task + 1}", edgecolor="white")
        left += width
    ax.set(yticks=range(len(shares)), yticklabels=[titles[name] for name in shares], xlim=(0, 1))
    ax.set_xlabel("share of units after the last task, by the task of the most similar image (MNIST)", size=9)
    ax.axvline(0.2, color="black", lw=0.6, ls=":")
    ax.invert_yaxis()
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=8)
    figure.savefig(PICTURES / "family_units.png", dpi=110)
    plt.close(figure)


def main() -> None:
    """Write the tables and draw the pictures."""
    found = {name: json.loads(file.read_text()) for name in SETS if (file := EVIDENCE / f"{name}.json").exists()}
    blocks = {name: json.loads((WITH_BLOCKS / f"{name}.json").read_text()) for name in SETS}
    page = HERE.parent / "docs" / "family.md"
    put_between(page, "family", table(found, {name: result["rows"][BLOCKS] for name, result in blocks.items()}))
    put_between(page, "settings", chosen())
    rows = {name: row for name, row in found["mnist"]["rows"].items() if not name.endswith(LARGE) and row["trials"]}
    order = [name for name in settings()["family"] if name in rows]
    draw_forgetting({**{name: rows[name] for name in order}, BLOCKS: blocks["mnist"]["rows"][BLOCKS]})
    file = EVIDENCE / "units.json"
    memories = {name: EVIDENCE / "memories" / f"mnist-{name}.npz" for name in order}
    memories[BLOCKS] = WITH_BLOCKS / "memories" / f"mnist-{BLOCKS}.npz"
    tasks = found["mnist"]["dataset"]["tasks"]
    shares = json.loads(file.read_text()) if file.exists() else {}
    if any(path.exists() for path in memories.values()):  # memories are large and not kept; the shares are
        data = load("mnist", pixels="unit")
        for name, path in memories.items():
            if path.exists() and "prototypes" in (memory := np.load(path)):  # classifiers with labels store no units
                used = memory["prototypes"][memory["wins"] > 0]
                shares[name] = units_by_task(used, data.X_test, data.y_test, tasks)
        file.write_text(json.dumps(shares, indent=1) + "\n")
    draw_units({**{name: row["title"] for name, row in rows.items()}, BLOCKS: "AdaptiveCCM"}, shares)


if __name__ == "__main__":
    main()
