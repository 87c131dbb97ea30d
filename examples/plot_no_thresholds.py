"""
No thresholds: three streams, one setting
=========================================

What counts as "similar" differs from data to data, and a threshold that suits one stream fails on the next.
``AdaptiveCCM`` needs none: it keeps the mean and the spread of each block's samples, and notices when the
mean of recent samples can no longer be explained by chance. The only number with a meaning is how rare a false alarm
should be. Here the defaults meet three streams that have nothing in common.
"""

# %%
# Images, spectra of a machine, and embeddings; in each, four tasks are visited in the order A B A C D B.
import itertools

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ccmem import AdaptiveCCM

rng = np.random.default_rng(0)
order = [0, 1, 0, 2, 3, 1]
length = 500
images, digits = load_digits(return_X_y=True)
tones = [(4, 9), (6, 15), (11, 23), (3, 19)]
topics = rng.normal(size=(4, 5, 128)) + 0.5 * rng.normal(size=(4, 1, 128))


def digit(task):
    return images[rng.choice(np.flatnonzero(digits // 2 == task))]


def spectrum(task):
    t = np.arange(64) / 64
    sound = sum(np.sin(2 * np.pi * tone * t + rng.uniform(0, 6)) for tone in tones[task])
    return np.abs(np.fft.rfft(sound + rng.normal(0, 0.7, 64)))[1:]


def embedding(task):
    return topics[task, rng.integers(5)] + rng.normal(0, 0.8, 128)


sources = {"images of digits": digit, "spectra of a machine": spectrum, "embeddings of texts": embedding}
streams = {name: np.array([draw(task) for task in order for _ in range(length)]) for name, draw in sources.items()}

# %%
# The same memory for all of them.
colours = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#8b949e", "#c0392b"]
figure, panels = plt.subplots(3, 1, figsize=(10, 4.6), sharex=True, layout="constrained")
for panel, (name, X) in zip(panels, streams.items(), strict=True):
    memory = AdaptiveCCM(n_slots=10)
    block = []
    for x in X:
        memory.learn_one(x)
        block.append(memory.task_pointer_)
    edges = [0, *(np.flatnonzero(np.diff(block)) + 1), len(X)]
    for start, stop in itertools.pairwise(edges):
        panel.axvspan(start, stop, 0, 0.72, color=colours[block[start]], lw=0)
        panel.text((start + stop) / 2, 0.36, f"block {block[start]}", ha="center", va="center", color="white")
    for event in memory.events_:
        panel.annotate(
            "recall" if event.kind == "recall" else "new", (event.step, 0.74), ha="center", va="bottom", size=9
        )
    for change in range(length, len(X), length):
        panel.axvline(change, color="black", ls=":", lw=1.2)
    panel.set(yticks=[], ylim=(0, 1), xlim=(0, len(X)))
    panel.set_title(name, loc="left", size=11)
    panel.spines[["top", "left", "right"]].set_visible(False)
panels[-1].set_xlabel("samples seen (dotted: where the task really changes)")
plt.show()
