"""Figures of the comparison at equal memory: accuracy against floats, accuracy over time, cost per sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ccmem.paper import experiments
from ccmem.paper.experiments.protocol import PAPER, STRICT
from ccmem.paper.report.comparison import Contender, contenders, front
from ccmem.plots._figure import BLUE, GREEN, GREY, ORANGE, new_figure, note

OURS = (BLUE, "#63b3ed", GREEN, ORANGE, "#0f766e")
THEIRS = ("#6b46c1", "#b83280", "#744210", "#718096", "#c53030", "#d69e2e", "#4a5568", "#9f7aea", "#d53f8c", "#319795")
MARKS = "osD^vP<>Xp*h"
INK = "#1a202c"
TICKS = {10_000: "10k", 50_000: "50k", 100_000: "100k", 400_000: "400k", 1_000_000: "1M"}


def draw_comparison(result: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Return name, caption and figure of each picture; empty if nothing was compared."""
    found = contenders(result)
    if not found:
        return
    name, title = result["dataset"]["name"], result["dataset"]["title"]
    styles = _styles(found)
    caption = (
        "ACC against floats held between samples. Filled marks: one pass, only labels given. Hollow marks: task "
        "boundaries given, several epochs. Grey steps: the best one-pass learner at any size; dotted: all data, "
        "shuffled."
    )
    yield f"{name}-memory", caption, _memory(found, styles, title)
    caption = "Mean accuracy on the tasks seen so far, strict protocol; each at the largest budget up to 400k floats."
    if any(STRICT in one.accuracy for one in found):
        yield f"{name}-over-time", caption, _over_time(found, styles, title)
    caption = "Processor time per learned sample in the fastest run, including training after each task."
    yield f"{name}-cost", caption, _cost(found, title)


def _styles(found: Sequence[Contender]) -> dict[str, dict[str, Any]]:
    """Return the line style of every family shown; it does not depend on the rows that were run.

    Hollow marks and dashes: task boundaries given. Dots: all data. Thick lines: ours.
    """
    families = {name: bool(row.get("ours", False)) for name, row in experiments.rivals()["rows"].items()}
    families |= {one.family: one.ours for one in found}
    regimes = {one.family: one.regime for one in found}
    colours = {True: iter(OURS), False: iter(THEIRS)}
    styles = {}
    for number, (family, ours) in enumerate(families.items()):
        colour, regime = next(colours[ours], GREY), regimes.get(family)
        styles[family] = {
            "color": INK if regime == "all data" else colour,
            "marker": MARKS[number % len(MARKS)],
            "markersize": 8 if ours else 6,
            "markerfacecolor": "white" if regime == "own" else None,
            "linestyle": {"own": "--", "all data": ":"}.get(str(regime), "-"),
            "linewidth": 2.2 if ours else 1.1,
            "zorder": 3 if ours else 2,
        }
    return {family: styles[family] for family in families if family in regimes}


def _memory(found: Sequence[Contender], styles: Mapping[str, dict[str, Any]], title: str) -> Any:
    free = [one for one in found if one.regime == "one pass"] or found
    asked = [one for one in free if not one.ours] or free  # ours and task-aware learners run under both protocols
    ran = [protocol for protocol in (STRICT, PAPER) if any(protocol in one.accuracy for one in asked)]
    figure = new_figure(5.6 * len(ran) + 1.9, 5.2)
    panels = figure.subplots(1, len(ran), squeeze=False)[0]
    for ax, protocol in zip(panels, ran, strict=True):
        for family, style in styles.items():
            mine = (one for one in found if one.family == family and protocol in one.accuracy)
            line = sorted(mine, key=lambda one: one.floats)
            if line and line[0].regime == "all data":
                ax.axhline(line[0].accuracy[protocol][0], color=INK, linestyle=":", linewidth=1)
            elif line:
                means, spreads = zip(*(one.accuracy[protocol] for one in line), strict=True)
                bars = [spread or 0.0 for spread in spreads]
                label = line[0].family_title + " (ours)" * line[0].ours
                ax.errorbar([one.floats for one in line], means, yerr=bars, elinewidth=0.8, label=label, **style)
        steps = front([(float(one.floats), one.accuracy[protocol][0]) for one in free if protocol in one.accuracy])
        ax.step(*zip(*steps, strict=True), where="post", color=GREY, linewidth=5, alpha=0.35, zorder=1)
        ax.set_xscale("log")
        ax.set_xticks(list(TICKS), list(TICKS.values()))
        ax.minorticks_off()
        ax.set(xlabel="floats held between samples", ylabel="ACC")
        ax.set_ylim(top=1.01)
        _dress(ax, f"{title}, {protocol} protocol")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8, frameon=False)
    return figure


def _over_time(found: Sequence[Contender], styles: Mapping[str, dict[str, Any]], title: str) -> Any:
    figure = new_figure(8.2, 4.8)
    ax = figure.subplots()
    strict = sorted((one for one in found if STRICT in one.accuracy), key=lambda one: one.budget or 0)
    shown = {one.family: one for one in strict if (one.budget or 0) <= 400_000} or {one.family: one for one in strict}
    for family, style in styles.items():
        if one := shown.get(family):
            values = one.over_time[STRICT]
            ax.plot(range(1, len(values) + 1), values, label=one.title + " (ours)" * one.ours, **style)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="tasks learned", ylabel="accuracy on all of them (stretched towards 1)")
    ax.set_yscale("function", functions=(lambda y: -np.log(np.maximum(1.05 - y, 0.01)), lambda z: 1.05 - np.exp(-z)))
    ax.set_ylim(top=1.01)
    ax.set_yticks([0.2, 0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0])
    _dress(ax, f"{title}, strict protocol")
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    return figure


def _cost(found: Sequence[Contender], title: str) -> Any:
    """Draw one line per family from its cheapest to its most expensive budget."""
    families: dict[str, list[Contender]] = {}
    for one in found:
        families.setdefault(one.family, []).append(one)
    lines = sorted(families.values(), key=lambda line: -max(one.microseconds for one in line))
    figure = new_figure(7.6, 0.32 * len(lines) + 1.3)
    ax = figure.subplots()
    for place, line in enumerate(lines):
        colour = BLUE if line[0].ours else "#718096"
        values = [max(one.microseconds, 0.1) for one in line]
        ax.plot([min(values), max(values)], [place, place], color=colour, linewidth=1.5, alpha=0.5, zorder=1)
        sizes = [20 + (one.budget or 0) / 10_000 for one in line]
        ax.scatter(values, [place] * len(line), s=sizes, color=colour, edgecolor="white", linewidth=0.8, zorder=2)
        text = f"{max(values):.2g}" if max(values) < 10 else f"{max(values):.0f}"
        note(ax, text, (max(values), place), (8, 0), fontsize=7, va="center")
    ax.set_yticks(range(len(lines)), [line[0].family_title for line in lines], fontsize=8)
    for label, line in zip(ax.get_yticklabels(), lines, strict=True):
        label.set_color(BLUE if line[0].ours else INK)
    ax.set_xscale("log")
    ax.margins(x=0.1)
    ax.set_xlabel("µs of processor time a sample (ours in blue; marks grow with the budget)")
    _dress(ax, f"{title}: cost of learning", axis="x")
    return figure


def _dress(ax: Any, title: str, axis: str = "both") -> None:
    """Set the title, a grid and an open frame."""
    ax.set_title(title, fontsize=11)
    ax.grid(True, axis=axis, color="#e2e8f0", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
