"""Figures of the comparison at equal memory: accuracy against floats, accuracy over time, cost per sample."""

from __future__ import annotations

import textwrap
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
SIZES = {50_000: 14, 100_000: 30, 400_000: 60, 1_000_000: 110}
LEAST = 0.5
"""Accuracy below which a curve over time is listed in a corner instead of stretching the axis."""


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
        if regime == "all data":
            colour = INK
        styles[family] = {
            "color": colour,
            "marker": MARKS[number % len(MARKS)],
            "markersize": 8 if ours else 6,
            "markerfacecolor": "white" if regime == "own" else colour,
            "linestyle": {"own": "--", "all data": ":"}.get(str(regime), "-"),
            "linewidth": 2.2 if ours else 1.1,
            "zorder": 3 if ours else 2,
        }
    return {family: styles[family] for family in families if family in regimes}


def _name_those_below(ax: Any, below: Mapping[str, Sequence[str]]) -> None:
    """List in a corner the curves that fall below the plotted range."""
    if below:
        words = [title + (f" ({', '.join(places)})" if any(places) else "") for title, places in below.items()]
        text = textwrap.fill("below: " + "; ".join(words), 64)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
        ax.annotate(text, (0.02, 0.02), xycoords="axes fraction", fontsize=7, color=INK, bbox=box, zorder=5)


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
        points = [(float(one.floats), one.accuracy[protocol][0]) for one in free if protocol in one.accuracy]
        steps = front(points)
        ax.step(*zip(*steps, strict=True), where="post", color=GREY, linewidth=5, alpha=0.35, zorder=1)
        ax.set_xscale("log")
        ax.set_xticks(list(TICKS), list(TICKS.values()))
        ax.minorticks_off()
        ax.set_xlabel("floats held between samples")
        ax.set_ylabel("ACC")
        values = [value for _, value in points]
        ax.set_ylim(max(0.0, float(np.quantile(values, 0.15)) - 0.12), 1.0)
        _dress(ax, f"{title}, {protocol} protocol")
        below: dict[str, list[str]] = {}
        for one in found:
            if one.accuracy.get(protocol, (1.0, None))[0] < ax.get_ylim()[0]:
                below.setdefault(one.family_title, []).append(one.title.removeprefix(one.family_title).strip(", "))
        _name_those_below(ax, below)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8, frameon=False)
    return figure


def _at_most(found: Sequence[Contender], limit: int) -> list[Contender]:
    """Return, per family, the largest budget up to ``limit``; families without a budget are unchanged."""
    chosen: dict[str, Contender] = {}
    for one in found:
        fits = one.budget is None or one.budget <= limit
        if fits and (one.family not in chosen or (one.budget or 0) > (chosen[one.family].budget or 0)):
            chosen[one.family] = one
    return list(chosen.values())


def _over_time(found: Sequence[Contender], styles: Mapping[str, dict[str, Any]], title: str) -> Any:
    figure = new_figure(8.2, 4.8)
    ax = figure.subplots()
    strict = [one for one in found if STRICT in one.accuracy]
    shown = _at_most(strict, 400_000) or _at_most(strict, 1_000_000)
    for one in shown:
        values = one.over_time[STRICT]
        ax.plot(np.arange(1, len(values) + 1), values, label=one.title + " (ours)" * one.ours, **styles[one.family])
    ax.set_xticks(np.arange(1, len(values) + 1))
    ax.set_xlabel("tasks learned")
    ax.set_ylabel("accuracy on all of them")
    ends = [one.over_time[STRICT][-1] for one in shown]
    ax.set_ylim(max(0.0, min((end for end in ends if end >= LEAST), default=LEAST) - 0.05), 1.01)
    low = {one.title: [f"{end:.2f} at the end"] for one, end in zip(shown, ends, strict=True) if end < LEAST}
    _name_those_below(ax, low)
    _dress(ax, f"{title}, strict protocol")
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    return figure


def _cost(found: Sequence[Contender], title: str) -> Any:
    """Draw one line per family from its cheapest to its most expensive budget."""
    families: dict[str, list[Contender]] = {}
    for one in sorted(found, key=lambda one: one.budget or 0):
        families.setdefault(one.family, []).append(one)
    lines = sorted(families.values(), key=lambda line: -max(one.microseconds for one in line))
    figure = new_figure(7.6, 0.32 * len(lines) + 1.3)
    ax = figure.subplots()
    for place, line in enumerate(lines):
        colour = BLUE if line[0].ours else "#718096"
        values = [max(one.microseconds, 0.1) for one in line]
        ax.plot([min(values), max(values)], [place, place], color=colour, linewidth=1.5, alpha=0.5, zorder=1)
        for one, value in zip(line, values, strict=True):
            size = 20 if one.budget is None else SIZES[one.budget]
            ax.scatter(value, place, s=size, color=colour, edgecolor="white", linewidth=0.8, zorder=2)
        for value, shift, side in ((min(values), -8, "right"), (max(values), 8, "left")):
            if side == "left" or max(values) > 1.3 * min(values):
                text = f"{value:.0f}" if value >= 10 else f"{value:.1f}"
                note(ax, text, (value, place), (shift, 0), fontsize=7, va="center", ha=side)
    ax.set_yticks(range(len(lines)), [line[0].family_title for line in lines], fontsize=8)
    for label, line in zip(ax.get_yticklabels(), lines, strict=True):
        label.set_color(BLUE if line[0].ours else INK)
    ax.set_ylim(-0.7, len(lines) - 0.3)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.set_xlim(low / 1.5, high * 1.5)
    ax.set_xlabel("µs of processor time a sample (ours in blue; marks grow with the budget)")
    _dress(ax, f"{title}: cost of learning", axis="x")
    return figure


def _dress(ax: Any, title: str, axis: str = "both") -> None:
    """Set the title, a grid and an open frame."""
    ax.set_title(title, fontsize=11)
    ax.grid(True, axis=axis, color="#e2e8f0", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
