"""
The shapes of a bearing
=======================

A faulty bearing adds a short click to every turn. Level and spread of the signal stay equal here, but its shape
changes. ``ShapeLayer`` learns the shapes of the first rows without labels. A memory behind it reports when the shapes
change and when they return.
"""

# %%
# The signal is simulated. One turn takes 50 rows. The bearing is healthy, worn, healthy and worn again.
import matplotlib.pyplot as plt
import numpy as np

from ccmem import AdaptiveCCM, DiscriminantClassifier, ShapeLayer, Stack, plots

rng = np.random.default_rng(0)
visit, period = 4000, 50


def run(worn):
    """Return the signal of one visit: a tone, and a decaying click per turn if the bearing is worn."""
    row = np.arange(visit)
    tone = np.sin(2 * np.pi * row / period) + 0.4 * np.sin(4 * np.pi * row / period + 1)
    click = 2.0 * np.exp(-(row % period) / 4) * np.cos(row % period)
    signal = 0.9 * tone + click if worn else tone
    return (signal - signal.mean()) / signal.std() + 0.1 * rng.normal(size=visit)


states = ["healthy", "worn", "healthy", "worn"]
signal = np.concatenate([run(state == "worn") for state in states])[:, np.newaxis]

# %%
# Without labels, the memory detects the changes and recalls both returns. Event steps count rows of the signal.
stack = Stack([ShapeLayer()], AdaptiveCCM()).fit(signal)
for event in stack.events_:
    print(event)

# %%
# Top: four turns of each state. Middle: the shapes that won most often, one curve per unit, on three scales. Bottom:
# the timeline of the memory, in windows that begin ``hop_`` rows apart.
layer, memory = stack.layers_[0], stack.last_
figure = plt.figure(figsize=(11, 8.5), layout="constrained")
top, middle, bottom = figure.subfigures(3, 1, height_ratios=[1, 1, 1.6])
for axes, state in zip(top.subplots(1, 2, sharey=True), (0, 1), strict=True):
    axes.plot(signal[state * visit + 200 : state * visit + 400, 0], lw=1)
    axes.set(title=states[state], xlabel="row")
spans = (name.partition(" of ")[2] for name in layer.get_feature_names_out()[:: layer.n_units])
for axes, shapes, wins in zip(middle.subplots(1, 3), layer.shapes_, layer.win_counts_, strict=True):
    for unit in np.argsort(wins[0])[::-1][:8]:
        axes.plot(shapes[0, unit, 0], marker=".")
    axes.set(title=f"shapes of {next(spans)}", xlabel="point")
plots.timeline(memory, changes=[visit * k // layer.hop_ for k in (1, 2, 3)], figure=bottom)
plt.show()

# %%
# With a few labels, a classifier names the states of a new recording, one answer per window.
labels = np.repeat(np.array(states, object), visit)
labels[rng.random(len(labels)) < 0.99] = None
classifier = Stack([ShapeLayer()], DiscriminantClassifier()).fit(signal, labels)
new = np.concatenate([run(True), run(False)])[:, np.newaxis]
print(f"{classifier.score(new, np.repeat(['worn', 'healthy'], visit)):.3f} of the new windows are named correctly")
