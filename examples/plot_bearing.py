"""
A bearing wears out and is replaced
===================================

A damaged bearing is hardly louder than a new one. Every ball that passes the damage causes a short ringing impact,
which is stronger under load. The example simulates a bearing from new to worn, and its replacement.
"""

# %%
# The shaft turns once in 200 rows, with five impacts per turn. An impact is a decaying oscillation whose strength
# follows the load. The bearing is new, then damaged, then heavily damaged, and is then replaced.
import matplotlib.pyplot as plt
import numpy as np

from ccmem import AdaptiveCCM, Stack, WindowLayer, plots

rng = np.random.default_rng(1)
turn, stage = 200, 12_000
damage = {"new": 0.0, "damaged": 0.8, "heavily damaged": 2.0, "replaced": 0.0}


def vibration(amplitude):
    """Return the signal of one stage: shaft, impacts modulated by the load, and noise."""
    row = np.arange(stage)
    shaft = np.sin(2 * np.pi * row / turn) + 0.3 * np.sin(4 * np.pi * row / turn + 1)
    since = row % (turn // 5)  # rows since the last impact
    impacts = np.exp(-since / 6) * np.sin(2 * np.pi * since / 5)
    load = 1 + 0.5 * np.cos(2 * np.pi * row / turn)
    return shaft + amplitude * load * impacts + 0.3 * rng.normal(size=stage)


signal = np.concatenate([vibration(amplitude) for amplitude in damage.values()])
for k, name in enumerate(damage):
    print(f"{name}: standard deviation {signal[k * stage : (k + 1) * stage].std():.2f}")

# %%
# ``WindowLayer`` describes windows of two turns by moments and frequency bands. The memory behind it learns the normal
# values from the stream.
stack = Stack([WindowLayer(2 * turn)], AdaptiveCCM()).fit(signal[:, np.newaxis])
for event in stack.events_:
    print(event)

# %%
# Above, two turns of every stage; below, the timeline of the memory, in windows that begin ``hop_`` rows apart.
# Dotted lines mark the true changes. The heavy damage opens a new block about 1,000 rows (five turns) after it
# begins. The replacement recalls block 0, because the new bearing runs like the first one.
#
# The light damage is missed: its impacts are hardly above the noise, and the memory attributes those windows to the
# normal spread of block 0. ``ShapeLayer`` misses it too.
layer, memory = stack.layers_[0], stack.last_
figure = plt.figure(figsize=(7.5, 6), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1.2, 1])
for k, (axes, name) in enumerate(zip(top.subplots(2, 2, sharex=True, sharey=True).flat, damage, strict=True)):
    axes.plot(signal[k * stage : k * stage + 2 * turn], lw=0.8)
    axes.set_title(name, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
plots.timeline(memory, changes=[stage * k // layer.hop_ for k in (1, 2, 3)], figure=bottom)
plt.show()
