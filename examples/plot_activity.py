"""
An activity recording without labels
====================================

A motion sensor on a belt records three axes of acceleration, 50 rows per second. The person stands, walks, climbs
stairs, sits and walks again. A memory without labels detects the changes and recalls activities that return.
"""

# %%
# The recording is simulated. Gravity shows the posture. Steps add a waveform: walking and stairs differ in pace,
# strength and shape.
import matplotlib.pyplot as plt
import numpy as np

from ccmem import AdaptiveCCM, ShapeLayer, Stack, WindowLayer
from ccmem.core.colours import block_colour

rng = np.random.default_rng(0)
rate, seconds = 50, 60
postures = {"stand": (0.0, 1.0, 0.1), "sit": (0.7, 0.7, 0.0), "walk": (0.1, 1.0, 0.1), "stairs": (0.25, 0.95, 0.1)}
paces = {"walk": (1.9, 0.30, 0.10), "stairs": (1.5, 0.22, 0.16)}  # steps per second, strength, second harmonic


def recorded(activity):
    """Return one minute of an activity: gravity, steps with an irregular pace, and noise."""
    n = rate * seconds
    signal = np.tile(postures[activity], (n, 1)) + 0.02 * rng.normal(size=(n, 3))
    if activity in paces:
        pace, strength, second = paces[activity]
        phase = 2 * np.pi * np.cumsum(pace * (1 + 0.05 * rng.normal(size=n))) / rate
        step = strength * np.sin(phase) + second * np.sin(2 * phase + 1)
        signal += step[:, np.newaxis] * (0.5, 1.0, 0.3)
    return signal


plan = ["stand", "walk", "stairs", "walk", "sit", "walk", "stairs", "stand"]
recording = np.concatenate([recorded(activity) for activity in plan])

# %%
# One memory behind each layer. ``ShapeLayer`` learns shapes from the first 1,024 rows, in which the person stands
# still.
stacks = {
    "WindowLayer": Stack([WindowLayer(100)], AdaptiveCCM()).fit(recording),
    "ShapeLayer": Stack([ShapeLayer(100)], AdaptiveCCM()).fit(recording),
}
for name, stack in stacks.items():
    print(name)
    for event in stack.events_:
        if event.changes_block:
            print(f"  after {event.step / rate:.0f} s: {event.kind}, block {event.from_block} -> {event.to_block}")

# %%
# Above, the three axes; below, the true activities and the blocks of both memories. Within a row, equal colours are
# equal activities or blocks. Colours of different rows are not related.
#
# Both memories detect all seven changes within ten seconds. Behind ``WindowLayer``, every return is recalled. Behind
# ``ShapeLayer``, the memory raises one false alarm on the stairs, and the second walk gets a new block.
figure, (top, below) = plt.subplots(2, 1, figsize=(7, 5.5), sharex=True, height_ratios=[1, 1.1], layout="constrained")
top.plot(np.arange(len(recording))[::5] / rate, recording[::5], lw=0.5)
top.set(ylabel="acceleration in g", title="three axes of the sensor")


def draw(y, stretches):
    """Draw bars of (first second, last second, name, colour) in row ``y``."""
    for first, last, name, colour in stretches:
        below.barh(y, last - first, left=first, height=0.7, color=block_colour(colour), edgecolor="white")
        if last - first > 20:
            below.text((first + last) / 2, y, name, ha="center", va="center", fontsize=8, color="white")


kinds = list(dict.fromkeys(plan))
draw(0, [(i * seconds, (i + 1) * seconds, name, kinds.index(name)) for i, name in enumerate(plan)])
for y, stack in enumerate(stacks.values(), start=1):
    events = [event for event in stack.events_ if event.changes_block]
    edges = [0, *(event.step / rate for event in events), len(recording) / rate]
    used = [0, *(event.to_block for event in events)]
    draw(y, [(a, b, f"{k}", k) for a, b, k in zip(edges[:-1], edges[1:], used, strict=True)])
below.set(xlabel="seconds", xlim=(0, len(recording) / rate))
below.set_yticks(range(3), ["activity", *(f"blocks,\n{name}" for name in stacks)])
below.invert_yaxis()
for axes in (top, below):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
