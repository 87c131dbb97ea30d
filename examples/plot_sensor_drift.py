"""
A machine that changes its ways
===============================

A vibration sensor on a machine with three ways of running. What the memory sees is the spectrum of each short
window; what we want to know is when the machine changes, and whether it is back in a state that we have seen
before. Nothing is labelled.
"""

# %%
# The signal: each regime has its own mixture of tones, with noise and a slowly wandering loudness.
import itertools

import matplotlib.pyplot as plt
import numpy as np

from ccmem import CCM

rng = np.random.default_rng(0)
regimes = {
    "idle": [(5, 1.0), (12, 0.3)],
    "cutting": [(9, 0.7), (23, 1.0), (31, 0.5)],
    "worn tool": [(9, 0.5), (17, 1.0), (40, 0.8)],
}
shift = ["idle", "cutting", "idle", "cutting", "worn tool", "idle", "cutting"]
window, per_visit = 128, 150
t = np.arange(per_visit * window) / window


def run(name):
    """The sound of one visit to a regime."""
    return sum(loudness * np.sin(2 * np.pi * tone * t + rng.uniform(0, 6)) for tone, loudness in regimes[name])


signal = np.concatenate([run(name) for name in shift])
signal = signal * (1 + 0.3 * np.sin(np.linspace(0, 25, len(signal)))) + rng.normal(0, 1.0, len(signal))
spectra = np.abs(np.fft.rfft(signal.reshape(-1, window)))[:, 1:]

# %%
# One slot a block is enough here: a regime has one typical spectrum. Similarity is a cosine, so loudness plays no
# part.
memory = CCM(n_slots=1, vigilance=0.85, alarm_limit=10, recall_limit=5, commit_limit=20, random_state=0)
state = []
for spectrum in spectra:
    memory.learn_one(spectrum)
    state.append(memory.task_pointer_)
for event in memory.events_:
    print(event.kind, "after window", event.step, "to block", event.to_block)

# %%
# Above, the spectrogram; below it, what the memory made of it. Three regimes, three blocks, and every return
# recognised.
colours = ["#0072B2", "#E69F00", "#c0392b", "#009E73", "#CC79A7"]
figure, (top, middle, bottom) = plt.subplots(
    3, 1, figsize=(10, 5.6), sharex=True, height_ratios=[3, 0.5, 1], layout="constrained"
)
top.imshow(spectra.T, aspect="auto", origin="lower", cmap="magma", extent=(0, len(spectra), 1, window // 2))
top.set(ylabel="frequency", title="what the sensor hears")
for number, name in enumerate(shift):
    middle.text((number + 0.5) * per_visit, 0.5, name, ha="center", va="center", color="0.35")
    middle.axvline(number * per_visit, color="0.8")
middle.set(yticks=[], ylabel="truth")
edges = [0, *(np.flatnonzero(np.diff(state)) + 1), len(state)]
for start, stop in itertools.pairwise(edges):
    bottom.axvspan(start, stop, color=colours[state[start]], lw=0)
    bottom.text(
        (start + stop) / 2, 0.5, f"block {state[start]}", ha="center", va="center", color="white", weight="bold"
    )
bottom.set(yticks=[], ylabel="memory", xlabel="window", xlim=(0, len(spectra)))
plt.show()
