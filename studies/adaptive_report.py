"""Tables and pictures of the results of studies/adaptive.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from studies.pages import grid

PICTURES = Path(__file__).parents[1] / "docs" / "_static"
PAPER_ROWS = (
    "AdaptiveCCM",
    "AdaptiveCCM, at most 125 units",
    "AdaptiveCCM, slots refuse labels",
    "fixed, paper's",
    "fixed, tuned",
    "iWTA, tuned",
)


def _mean(records: list[dict[str, Any]], name: str) -> float | None:
    values = [record[name] for record in records if record.get(name) is not None]
    return float(np.mean(values)) if values else None


def _figure(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _total(records: list[dict[str, Any]], name: str) -> str:
    values = [record[name] for record in records if record.get(name) is not None]
    return str(sum(values)) if values else ""


def _of(records: list[dict[str, Any]], part: str, whole: str) -> str:
    if any(record.get(whole) is None for record in records) or not sum(record[whole] for record in records):
        return ""
    return f"{sum(record[part] for record in records)} of {sum(record[whole] for record in records)}"


def _delay(records: list[dict[str, Any]]) -> str:
    delays = [delay for record in records for delay in record.get("delays", [])]
    return f"{np.median(delays):.0f}" if delays else ""


def stream_table(results: dict[str, Any], kind: str) -> str:
    """Table of one stream, over all data sets and models."""
    detection = ("data", "model", "trials", "blocks", "missed", "median delay", "false alarms", "right recalls")
    accuracies = {"strict ACC": 3, "strict ACC of 5 winners": 3, "strict BWT": 3, "paper ACC": 3, "paper BWT": 3}
    figures = {**accuracies, "units": 0, "floats": 0}
    rows = []
    for name, entry in results.items():
        for title in PAPER_ROWS:
            records = entry.get(kind, {}).get(title)
            if not records:
                continue
            blocks = sorted({record["blocks"] for record in records if "blocks" in record})
            detected = (
                "-".join(map(str, sorted({blocks[0], blocks[-1]}))) if blocks else "",
                _of(records, "missed", "changes"),
                _delay(records),
                _total(records, "false alarms"),
                _of(records, "right recalls", "returns"),
            )
            measured = (_figure(_mean(records, figure), digits) for figure, digits in figures.items())
            rows.append((name, title, str(len(records)), *detected, *measured))
    return grid([*detection, *(figure.replace("strict ACC of ", "") for figure in figures)], rows)


def bound_table(results: dict[str, Any]) -> str:
    """Table of accuracy against bound."""

    def cell(records: list[dict[str, Any]]) -> str:
        accuracy, units = _figure(_mean(records, "strict ACC")), _figure(_mean(records, "units"), 0)
        return f"{accuracy} ({units})" if records else ""

    bounds = [str(bound) for bound in sorted({int(bound) for entry in results.values() for bound in entry})]
    rows = [(name, *(cell(entry.get(bound, [])) for bound in bounds)) for name, entry in results.items()]
    counts = [sorted({len(entry[bound]) for entry in results.values() if bound in entry}) for bound in bounds]
    rows.append(("trials", *(" or ".join(map(str, count)) for count in counts)))
    return grid(["data, stream, labels used for", *bounds], rows)


def fixed_table(results: dict[str, Any]) -> str:
    """Table of the paper's CCM over vigilance and alarm limit, on validation splits."""
    swept = {name: entry["fixed"] for name, entry in results.items() if "fixed" in entry}
    rows = []
    for name, found in swept.items():
        for limit in sorted({c["alarm_limit"] for c in found}):
            cells = (f"{c['ACC']:.3f} ({c['units']})" for c in found if c["alarm_limit"] == limit)
            rows.append((name, str(limit), *cells))
    vigilances = sorted({c["vigilance"] for found in swept.values() for c in found})
    return grid(["data", "alarm limit", *(f"rho {v}" for v in vigilances)], rows)


def tuned_table(results: dict[str, Any]) -> str:
    """Table of the settings of the rows that are compared with AdaptiveCCM."""
    rows = []
    for name, entry in results.items():
        for title, tried in entry.get("tuned", {}).items():
            best = tried[0]
            settings = ", ".join(f"{key} {value}" for key, value in best["parameters"].items()) or "its defaults"
            rows.append((name, title, settings, f"{np.mean(best['scores']):.3f}"))
    return grid(["data", "model", "settings", "strict ACC"], rows)


def dependent_table(results: dict[str, Any]) -> str:
    """Table of cycles, drift and runs."""
    rows = []
    for name, found in results.items():
        if isinstance(found, dict):
            rows.append((name, str(found["blocks"]), "", str(found["events"]), "", f"{found['part learned']:.2f}"))
        else:
            missed, recalled = _of(found, "missed", "changes"), _of(found, "right recalls", "returns")
            blocks = " ".join(str(record["blocks"]) for record in found)
            rows.append((name, blocks, missed, _total(found, "false alarms"), recalled, ""))
    return grid(["stream", "blocks", "changes missed", "false alarms", "right recalls", "part learned"], rows)


def tables(results: dict[str, Any]) -> str:
    """Return all tables as Markdown."""
    streams = results.get("streams", {})
    kinds = dict.fromkeys(kind for entry in streams.values() for kind in entry if kind not in ("fixed", "tuned"))
    parts = [(f"{kind[0].upper()}{kind[1:]}", stream_table(streams, kind)) for kind in kinds]
    if streams:
        parts.append(("Fixed thresholds, on validation splits: strict ACC (units)", fixed_table(streams)))
        parts.append(("Found by tuning, on validation splits", tuned_table(streams)))
    for part, title, table in (
        ("dependent", "Samples that are not independent", dependent_table),
        ("bounds", "Bounds: strict ACC of the best unit (units)", bound_table),
    ):
        if part in results:
            parts.append((title, table(results[part])))
    if "speed" in results:
        speeds = (f"* {k}: {v['microseconds a sample']} µs a sample" for k, v in results["speed"].items())
        parts.append(("Speed", "\n".join(speeds)))
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts)


def draw(results: dict[str, Any], folder: Path = PICTURES) -> None:
    """Draw accuracy over bounds and over fixed thresholds."""
    import matplotlib.pyplot as plt

    from ccmem import plots

    if "bounds" in results:
        lines = {}
        for name in ("mnist", "fashion-mnist", "notmnist"):
            for kind in ("five tasks", "shuffled"):
                entry = results["bounds"].get(f"{name} {kind} readout", {})
                if bounds := sorted(entry, key=int):
                    lines[f"{name}, {kind}"] = [int(b) for b in bounds], [_mean(entry[b], "strict ACC") for b in bounds]
        dashed = [name for name in lines if name.endswith("shuffled")]
        axis = plots.curves(lines, xlabel="max_units", ylabel="strict ACC, best unit", log=True, dashed=dashed)
        axis.figure.savefig(folder / "adaptive_bounds.png", dpi=120)
    if "streams" in results:
        figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
        for axis, name in zip(axes, ("mnist", "fashion-mnist", "notmnist"), strict=True):
            entry = results["streams"].get(name, {}).get("fixed", [])
            lines, crossed = {}, {}
            for limit in sorted({c["alarm_limit"] for c in entry}):
                line = [c for c in entry if c["alarm_limit"] == limit]
                lines[f"alarm limit {limit}"] = [c["vigilance"] for c in line], [c["ACC"] for c in line]
                crossed[f"alarm limit {limit}"] = [i for i, c in enumerate(line) if not c["fits"]]
            xlabel = "vigilance (x: over 150 units)"
            plots.curves(lines, xlabel=xlabel, title=name, crossed=crossed, legend=axis is axes[0], ax=axis)
        axes[0].set_ylabel("strict ACC (validation)")
        figure.savefig(folder / "adaptive_thresholds.png", dpi=110)
