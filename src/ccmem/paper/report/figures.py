"""Figures of a report, drawn from a result file and the memories saved with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ccmem import plots
from ccmem.core.events import Event
from ccmem.paper import experiments
from ccmem.paper.experiments.protocol import PAPER, PROTOCOLS
from ccmem.paper.report.comparison_figures import draw_comparison
from ccmem.paper.report.tables import cells, mean_matrix, statistics


def draw(result: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, str, Any]]:
    """Return name, caption and matplotlib figure of every picture of a data set."""
    about = result["dataset"]
    name = about["name"]
    rows = {n: row for n, row in result["rows"].items() if row["trials"] and row.get("standing") is None}
    run = [protocol for protocol in PROTOCOLS if any(cells(row, protocol) for row in rows.values())]
    for protocol in run:  # the first picture shows the accuracies
        yield _accuracies(about, rows, protocol)
    yield from draw_comparison(result)
    if not rows:
        return
    kept = dict(_kept(name, rows, folder, about["n_train"]))
    shape = tuple(about["image_shape"])
    for tuned, which in ((False, "with the paper's settings"), (True, "tuned")):
        grids = {rows[row]["title"]: memory for row, memory in kept.items() if row.endswith(experiments.TUNED) == tuned}
        if grids:
            blocks = [memory.unit_blocks_ for memory in grids.values() if memory.unit_blocks_ is not None]
            slots = {int(np.bincount(numbers).max()) for numbers in blocks}
            figure = plots.memories(grids, shape, columns=max(slots, default=25))
            layout = " A CCM has one block of slots to a row." if len(slots) == 1 else ""
            caption = f"Memories after the last task, {which} (first trial).{layout}"
            yield f"{name}-memories{'-tuned' if tuned else ''}", caption, figure
    for protocol in run:
        matrices = {row["title"]: mean_matrix(row, protocol) for row in rows.values() if cells(row, protocol)}
        names = ["/".join(about["class_names"][label] for label in task) for task in about["tasks"]]
        if max(map(len, names)) > 7:
            names = [str(number + 1) for number in range(len(names))]
        figure = plots.task_matrices(matrices, task_names=names)
        yield f"{name}-R-{protocol}", f"Task matrices R, {protocol} protocol, mean of the trials.", figure
    for row_name, memory in kept.items():
        if memory.rejected is not None:
            figure = plots.timeline(memory, rejected=memory.rejected, changes=about["change_points"])
            caption = f"{rows[row_name]['title']}: block in use, events and alarm (first trial)."
            yield f"{name}-stream-{row_name}", caption, figure


def _accuracies(about: Mapping[str, Any], rows: Mapping[str, Any], protocol: str) -> tuple[str, str, Any]:
    printed = experiments.paper().get(about["name"], {}) if protocol == PAPER else {}
    published = {row["title"]: printed[name]["ACC"][0] for name, row in rows.items() if name in printed}
    found = {row["title"]: statistics(row, protocol, "ACC") for row in rows.values() if cells(row, protocol)}
    bars = {title: (mean, std or 0.0) for title, (mean, std) in found.items()}
    axes = plots.accuracy_chart(bars, published=published, title=f"{about['title']}, {protocol} protocol")
    caption = f"ACC of every model, {protocol} protocol, with the spread over trials."
    return f"{about['name']}-acc-{protocol}", caption, axes.figure


def _kept(name: str, rows: Mapping[str, Any], folder: Path, n_samples: int) -> Iterator[tuple[str, Any]]:
    """Yield the memories that a run saved, each with the attributes that figures read."""
    for row_name, row in rows.items():
        path = folder / "memories" / f"{name}-{row_name}.npz"
        if "0" not in row["trials"] or not path.is_file():
            continue
        with np.load(path) as kept:
            if "prototypes" in kept:  # the model has a memory
                rejected = kept.get("rejected")
                yield (
                    row_name,
                    SimpleNamespace(
                        prototypes_=kept["prototypes"],
                        win_counts_=kept["wins"],
                        unit_blocks_=kept.get("blocks"),
                        events_=[Event(**event) for event in row["trials"]["0"].get("events", [])],
                        n_samples_seen_=n_samples,
                        n_features_in_=kept["prototypes"].shape[1],
                        rejected=None if rejected is None else np.unpackbits(rejected, count=n_samples).astype(bool),
                    ),
                )
