"""
No thresholds: three streams, one setting
=========================================

A similarity threshold that suits one stream fails on another. ``AdaptiveCCM`` needs no threshold: it detects that the
mean or spread of recent samples differs from the current block by more than chance explains. Here the same defaults
learn three unrelated streams.
"""

# %%
# Images, spectra of a machine, and embeddings. Each stream visits four tasks in the order A B A C D B.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ccmem import AdaptiveCCM, plots

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
# The timelines of the three memories. Dotted lines mark the true changes.
figure = plt.figure(figsize=(10, 9), layout="constrained")
for part, (name, X) in zip(figure.subfigures(3, 1), streams.items(), strict=True):
    memory = AdaptiveCCM().fit(X)
    plots.timeline(memory, changes=range(length, len(X), length), title=name, figure=part)
plt.show()
