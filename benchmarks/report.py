"""Results as a table of ratios, a document and a chart."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

LABELS = {"IncrementalWTA": "iWTA", "IncrementalGMM": "iGMM", "ARTC2A": "ART-C 2A"}


def processor() -> str:
    """Return the processor's name as reported by the operating system."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _get(figures: Figures, *path: Any) -> Any:
    for step in path:
        if figures is None:
            return None
        figures = figures.get(step) if isinstance(figures, dict) else None  # type: ignore[assignment]
    return figures


def _line_of(figures: Figures, kind: str, blocks: int) -> Figures | None:
    lines = _get(figures, "growth", "blocks") or []
    return next((line for line in lines if line["kind"] == kind and line["blocks"] == blocks), None)


def targets(figures: Figures) -> list[tuple[str, float, bool, float | None]]:
    """Return the targets as (name, bound, True if the value must stay below it, value)."""
    rows: list[tuple[str, float, bool, float | None]] = []
    for name in ("CCM", "IncrementalWTA", "ARTC2A", "IncrementalGMM"):
        value = _get(figures, "learning", name, "times_the_limit", "median")
        bound = 1.5 if name == "IncrementalGMM" else 1.25
        rows.append((f"{LABELS.get(name, name)} learning, times the bare loop", bound, True, value))
    value = _get(figures, "prediction", "IncrementalWTA", "times_sgemm", "median")
    rows.append(("predicting 60,000 rows against 125 units, times one sgemm", 1.3, True, value))
    for peer, bound in (
        ("PyTorch MLP", 40),
        ("scikit-learn MiniBatchKMeans", 100),
        ("artlib ART2A", 40),
        ("MiniSom", 60),
        ("River KMeans", 3000),
    ):
        value = _get(figures, "peers", peer, "ccmem_is_faster_by", "median")
        own = "OnlineMLP" if peer == "PyTorch MLP" else "CCM"
        rows.append((f"{own}, times as fast as {peer}", bound, False, value))
    for kind in ("scattered", "images"):
        sizes = [line["blocks"] for line in _get(figures, "growth", "blocks") or [] if line["kind"] == kind]
        few, many = _line_of(figures, kind, 10), _line_of(figures, kind, max(sizes, default=0))
        size = f"{max(sizes, default=10_000):,}"
        stay = many["stay"]["median"] / few["stay"]["median"] if few and many else None
        miss = many["miss"]["median"] / many["plain"]["median"] if many else None
        rows.append((f"CCM, {size} blocks against 10, stream that stays in one ({kind})", 1.1, True, stay))
        rows.append((f"CCM, {size} blocks, stream that misses, times the unpruned cost ({kind})", 0.1, True, miss))
    imports = _get(figures, "startup", "imports")
    rows.append(
        (
            "`ccmem --help`, times `import numpy`",
            2.0,
            True,
            imports["ccmem --help"] / imports["import numpy"] if imports else None,
        )
    )
    peaks = _get(figures, "startup", "peak_megabytes")
    rows.append(
        (
            "peak memory beside a chunk of 60,000 x 784, MB",
            4.0,
            True,
            max(v for k, v in peaks.items() if not k.startswith("control")) if peaks else None,
        )
    )
    return rows


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:,.{digits}f}"


def summary(figures: Figures, before: Figures) -> str:
    """Return the table of targets, before and after."""
    lines = ["| what | target | before | now | met |", "|---|---|---|---|---|"]
    earlier = {what: value for what, _, _, value in targets(before)}
    for what, bound, below, value in targets(figures):
        met = "-" if value is None else "yes" if (value <= bound if below else value >= bound) else "**no**"
        sign = "at most" if below else "at least"
        lines.append(f"| {what} | {sign} {bound:g} | {_number(earlier.get(what))} | {_number(value)} | {met} |")
    return "\n".join(lines)


def _per_second(seconds: Figures) -> str:
    return f"{1 / seconds['median']:,.0f} ({1 / seconds['high']:,.0f} to {1 / seconds['low']:,.0f})"


def _range(value: Figures) -> str:
    return f"{_number(value['median'])} ({_number(value['low'])} to {_number(value['high'])})"


def document(figures: Figures, before: Figures) -> str:
    """Return the text of RESULTS.md."""
    parts = [
        "# Speed\n",
        f"Written by `{figures['command']} --write` on {figures['date']}, {figures['machine']}, "
        f"Python {figures['versions']['python']}, numpy {figures['versions']['numpy']}; data: {figures['data']}. "
        "One core, processor time, models measured in turn; median, with the 10th to 90th percentile in brackets. "
        + (f'"Before": `{before["command"]}` on {before["date"]}, first working kernels.' if before else "")
        + "\n",
        summary(figures, before) + "\n",
    ]
    if before.get("note"):
        parts.append(before["note"] + "\n")
    if "learning" in figures:
        parts.append(
            "## Learning, one sample at a time\n\nThe bare loop performs only the dot products and row updates that "
            "the model performed, as counted during the run (including the norm of x for models that compare "
            "directions). The fastest of three implementations is the limit. The bare loop may fuse products and sums "
            "and add in any order, which ccmem does not, and it does not validate its input. "
            "numpy: the usual step of the model, without growth, merges or blocks.\n\n"
            "| model | samples/s before | samples/s | bare loop "
            "| times the limit | kernel alone, times | learn_one/s | numpy/s | dots | rows updated |\n"
            "|---|---|---|---|---|---|---|---|---|---|"
        )
        earlier = before.get("learning", {})
        for name, line in figures["learning"].items():
            parts.append(
                f"| {name} | {_per_second(earlier[name]['seconds']) if name in earlier else '-'} "
                f"| {_per_second(line['seconds'])} | {_per_second(line['limit_seconds'])}, {line['limit']} "
                f"| {_range(line['times_the_limit'])} | {_range(line['kernel_times_the_limit'])} "
                f"| {_per_second(line['learn_one_seconds'])} "
                f"| {_per_second(line['numpy_seconds'])} | {line['dots_per_sample']:.1f} "
                f"| {line['updates_per_sample']:.2f} |"
            )
    if "peers" in figures:
        parts.append("\n## Peers at batch 1, 125 units\n\n| peer | samples/s | ccmem is faster by |\n|---|---|---|")
        for name, line in figures["peers"].items():
            faster = _range(line["ccmem_is_faster_by"]) if "ccmem_is_faster_by" in line else "-"
            parts.append(f"| {name} | {_per_second(line['seconds'])} | {faster} |")
        parts.append("\nCCM learns a chunk per call; PyTorch is compared with OnlineMLP.")
    if "prediction" in figures:
        parts.append("\n## Prediction\n\n| | units | rows/s | times sgemm |\n|---|---|---|---|")
        for name, line in figures["prediction"].items():
            times = _range(line["times_sgemm"]) if "times_sgemm" in line else "1"
            parts.append(f"| {name} | {line['units']} | {_per_second(line['seconds'])} | {times} |")
    if "growth" in figures:
        parts.append(_growth(figures["growth"]))
    if "startup" in figures:
        begin = figures["startup"]
        parts.append("\n## Start\n\nProcessor seconds of a complete Python process.\n\n| | seconds |\n|---|---|")
        parts += [f"| `{name}` | {value:.3f} |" for name, value in begin["imports"].items()]
        parts.append("\n| learn and predict a little | empty kernel cache | filled |\n|---|---|---|")
        parts += [f"| {name} | {line['first']:.1f} | {line['second']:.1f} |" for name, line in begin["uses"].items()]
        parts.append("\n| peak beside the chunk and the memory | MB |\n|---|---|")
        parts += [f"| {name} | {value:.1f} |" for name, value in begin["peak_megabytes"].items()]
    parts.append("\nLearning a single stream is sequential and uses one core. Large predictions use all cores.")
    return "\n".join(parts) + "\n"


def _growth(growth: Figures) -> str:
    lines = [
        '\n## Cost of CCM by memory size\n\nMicroseconds per sample, 25 slots per block, 784 columns. "Scattered": a '
        'random direction per block. "Images": blocks of non-negative mixtures of a few strokes. '
        "Unpruned: a search over every slot; in prediction, a matrix product. The predicted rows are close to "
        "slots.\n\n"
        "| memory | blocks | stays in one block | misses every time | unpruned | predicts | unpruned |\n"
        "|---|---|---|---|---|---|---|"
    ]
    for line in growth["blocks"]:
        keys = ("stay", "miss", "plain", "predict", "predict_plain")
        costs = " | ".join(f"{1e6 * line[key]['median']:,.2f}" if key in line else "-" for key in keys)
        lines.append(f"| {line['kind']} | {line['blocks']:,} | {costs} |")
    for what, title in (("slots", "slots a block"), ("width", "width"), ("chunk", "samples a call")):
        sizes = " | ".join(f"{line['size']:,}" for line in growth[what])
        costs = " | ".join(f"{1e6 * line['median']:,.2f}" for line in growth[what])
        lines.append(f"\n| {title} | {sizes} |\n|---{'|---' * len(growth[what])}|\n| microseconds a sample | {costs} |")
    return "\n".join(lines)


def chart(figures: Figures, path: Path) -> Path | None:
    """Draw samples per second of all learners and the growth of CCM; None if data or matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    bars: list[tuple[str, float, str]] = []
    for name, line in figures.get("learning", {}).items():
        bars.append((f"{name}: bare loop", 1 / line["limit_seconds"]["median"], "0.75"))
        bars.append((name, 1 / line["seconds"]["median"], "tab:blue"))
        bars.append((f"{name}.learn_one", 1 / line["learn_one_seconds"]["median"], "tab:cyan"))
        bars.append((f"{name}: numpy", 1 / line["numpy_seconds"]["median"], "tab:olive"))
    for name, line in figures.get("peers", {}).items():
        if name in figures.get("learning", {}):  # CCM, timed in turn with the peers
            continue
        bars.append((name, 1 / line["seconds"]["median"], "tab:blue" if name == "OnlineMLP" else "tab:orange"))
    growth = figures.get("growth", {}).get("blocks", [])
    if not (bars and growth):
        return None
    figure, axes = plt.subplots(1, 2, figsize=(12, 6), layout="constrained", width_ratios=[3, 2])
    names, values, colours = zip(*bars[::-1], strict=True)
    axes[0].barh(names, values, color=colours)
    axes[0].bar_label(axes[0].containers[0], labels=[f"{value:,.0f}" for value in values], padding=3, fontsize=8)
    axes[0].set(
        xscale="log", xlabel="samples per second, one core, one sample at a time", title="Learning, 784 wide, float32"
    )
    axes[0].margins(x=0.12, y=0.01)
    axes[0].tick_params(axis="y", labelsize=8)
    for kind, colour in (("scattered", "tab:blue"), ("images", "tab:orange")):
        lines = [line for line in growth if line["kind"] == kind]
        for key, style, label in (("plain", ":", "misses, unpruned"), ("miss", "--", "misses"), ("stay", "-", "stays")):
            axes[1].plot(
                [line["blocks"] for line in lines],
                [1e6 * line[key]["median"] for line in lines],
                style,
                color=colour,
                marker="o",
                markersize=3,
                label=f"{kind}: {label}",
            )
    axes[1].set(
        xscale="log",
        yscale="log",
        xlabel="blocks of 25 slots",
        ylabel="microseconds a sample",
        title="CCM: cost against the size of the memory",
    )
    axes[1].legend(fontsize=8)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    return path
