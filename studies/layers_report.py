"""Tables and chart of the study of layers, from studies/evidence/layers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from studies.layers import FOLDER, SETS
from studies.layers_other import CASES

TITLES = {
    "orders": "Other orders of classes (joint: all shuffled)",
    "controls": "Controls",
    "imbalance": "Odd classes keep one image in a hundred",
    "labels": "One image in a hundred has a label",
    "start": "500 constant images, or 500 of one class, before the stream",
    "calibration": "Probabilities",
    "other": "Other data: small digits, features of a network, windows of signals",
}
PICTURE = FOLDER.parents[2] / "docs" / "_static" / "layers.png"
WHOLE = ("floats", "working", "labels", "rare images")
NAMES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "notmnist": "NotMNIST"}


def report() -> None:
    """Write tables.md (mean and standard deviation over trials) and the chart beside the trials."""
    (FOLDER / "tables.md").write_text(markdown(), encoding="utf-8")
    chart(_results())


def _read(name: str) -> Any:
    """Return the results stored under a name; empty if the part has not been run."""
    path = FOLDER / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _results(part: str = "") -> dict[str, Any]:
    found = {name: _read(f"{part}{name}.json") for name in SETS}
    return {name: result for name, result in found.items() if result}


def markdown() -> str:
    """Return all tables."""
    kept, speed = _read("trials.json"), _read("speed.json")
    text = ["# Layers", "", "`python -m studies.layers --report`, from the trials in `studies/evidence/layers`."]
    for protocol, results in (("strict", _results()), ("paper", _results("paper/"))):
        if results:
            text += ["", f"## {protocol.capitalize()} protocol", "", *main_table(results, protocol)]
    for part, title in TITLES.items():
        if kept.get(part):
            hidden = ("floats", "working") if part == "orders" else ()  # as above
            text += ["", f"## {title}", "", *table(kept[part], CASES if part == "other" else SETS, hidden)]
    text += ["", "## Speed", "", *speed_table(speed)] if speed else []
    return "\n".join(text) + "\n"


def main_table(results: Mapping[str, Any], protocol: str) -> list[str]:
    """Table of ACC and BWT of the rows of ``ccmem reproduce``."""
    heads = " | ".join(NAMES[name] for name in results)
    lines = [f"| | floats held | | {heads} | trials |", "|---|---:|---|" + "---:|" * (len(results) + 1)]
    for row, facts in {row: facts for result in results.values() for row, facts in result["rows"].items()}.items():
        for measure in ("ACC", "BWT"):
            found = [measured(result, row, protocol, measure) for result in results.values()]
            if any(found):
                held = max(trial["floats"] for result in results.values() for trial in _trials(result, row))
                cells = [_figure(values, "") for values in found]
                counts = ", ".join(dict.fromkeys(str(len(values)) for values in found))
                lines.append(f"| {facts['title']} | {held:,} | {measure} | {' | '.join(cells)} | {counts} |")
    return lines


def measured(result: Mapping[str, Any], row: str, protocol: str, measure: str) -> list[float]:
    trials = [trial["protocols"] for trial in _trials(result, row)]
    return [trial[protocol]["metrics"][measure] for trial in trials if protocol in trial]


def _trials(result: Mapping[str, Any], row: str) -> list[Any]:
    return list(result["rows"].get(row, {"trials": {}})["trials"].values())


def table(lines: Mapping[str, Any], columns: Iterable[str], hidden: tuple[str, ...] = ()) -> list[str]:
    columns = list(columns)
    text = [
        f"| | | {' | '.join(NAMES.get(c, c) for c in columns)} | trials |",
        "|---|---|" + "---:|" * (len(columns) + 1),
    ]
    every = [trial for sets in lines.values() for trials in sets.values() for trial in trials.values()]
    for line, sets in lines.items():
        for measure in dict.fromkeys(measure for trial in every for measure in trial):
            found = [[t[measure] for t in sets.get(name, {}).values() if measure in t] for name in columns]
            if any(found) and measure not in hidden:
                counts = ", ".join(dict.fromkeys(str(len(values)) for values in found if values))
                text.append(f"| {line} | {measure} | {' | '.join(_figure(v, measure) for v in found)} | {counts} |")
    return text


def speed_table(found: Mapping[str, Any]) -> list[str]:
    """Table of the results of ``python -m benchmarks.layers --json``."""
    text = [
        "`python -m benchmarks.layers --json studies/evidence/layers/speed.json`: one core, 40 units, images/s",
        "",
        f"| | {' | '.join(f'patches of {side}' for side in found)} |",
        "|---|" + "---:|" * len(found),
    ]
    for name in next(iter(found.values())):
        cells = []
        for facts in (lines[name] for lines in found.values()):
            ratio = f" ({facts['times_bare']:.1f} times the bare arithmetic)" if "times_bare" in facts else ""
            cells.append(f"{facts['images_per_second']:,.0f}{ratio}")
        text.append(f"| {name} | {' | '.join(cells)} |")
    return text


def _figure(values: list[float], measure: str) -> str:
    if not values:
        return ""
    if measure in WHOLE:
        return f"{np.mean(values):,.0f}"
    return f"{np.mean(values):.4f}" + (f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else "")


def chart(results: Mapping[str, Any]) -> None:
    """Plot strict accuracy against floats held, one panel per data set; rivals of the same protocol in grey."""
    from matplotlib import pyplot

    from ccmem import plots

    figure, panels = pyplot.subplots(
        1, len(results), figsize=(11, 4.6), sharex=True, sharey=True, layout="constrained", squeeze=False
    )
    for panel, (name, result) in zip(panels[0], results.items(), strict=True):
        others = _read(f"../rivals/{name}.json").get("rows", {})
        found = [_rival(row) for row in others.values() if row["settings"]["model"] != "Stack"]
        points = np.array([point for point in found if point is not None]).reshape(-1, 2)
        panel.plot(*points.T, "D", color="0.62", ms=5.5, label="rivals and single memories, one pass")
        ours = {}
        for row, facts in result["rows"].items():
            if right := measured(result, row, "strict", "ACC"):
                ours[facts["title"]] = [max(trial["floats"] for trial in _trials(result, row))], [right]
        plots.curves(ours, log=True, xlabel="floats held", title=NAMES[name], legend=False, ax=panel)
        panel.set(xlim=(4e4, 1.5e6), ylim=(0.56, 1.01))
        panel.set_xticks([5e4, 1e5, 4e5, 1e6], ["50k", "100k", "400k", "1M"])
        panel.minorticks_off()
    panels[0, 0].set_ylabel("strict ACC")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None})
    pyplot.close(figure)


def _rival(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return floats and strict accuracy of a rival, if it is a one-pass learner."""
    trials = [trial for trial in row["trials"].values() if "strict" in trial["protocols"]]
    if not trials or not row["standing"] or row["standing"]["regime"] != "one pass":
        return None
    right = float(np.mean([trial["protocols"]["strict"]["metrics"]["ACC"] for trial in trials]))
    return max(trial["floats"] for trial in trials), right
