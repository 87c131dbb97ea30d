"""
A machine with three regimes
============================

A vibration sensor records a machine that runs in one of three regimes. The memory learns the spectrum of each short
window. It reports when the regime changes, and whether the new regime has occurred before. There are no labels.
"""

# %%
# Each regime is a mixture of tones. The loudness swings several times per visit, and there is noise.
import matplotlib.pyplot as plt
import numpy as np

from ccmem import AdaptiveCCM, plots

rng = np.random.default_rng(0)
regimes = {
    "idle": [(5, 1.0), (12, 0.3)],
    "cutting": [(9, 0.7), (23, 1.0), (31, 0.5)],
    "worn tool": [(9, 0.5), (17, 1.0), (40, 0.8)],
}
shift = ["idle", "cutting", "idle", "cutting", "worn tool", "idle", "cutting"]
window, per_visit = 128, 300
t = np.arange(per_visit * window) / window


def run(name):
    """Return the sound of one visit to a regime."""
    return sum(loudness * np.sin(2 * np.pi * tone * t + rng.uniform(0, 6)) for tone, loudness in regimes[name])


signal = np.concatenate([run(name) for name in shift])
signal = signal * (1 + 0.3 * np.sin(np.linspace(0, 250, len(signal)))) + rng.normal(0, 1.0, len(signal))
spectra = np.abs(np.fft.rfft(signal.reshape(-1, window)))[:, 1:]
spectra /= np.linalg.norm(spectra, axis=1, keepdims=True)  # loudness does not matter, only the mixture

# %%
# With the defaults, the three regimes become three blocks, and every return is recalled. A swing slower than a visit
# would look like a change: the share of the noise in the spectrum moves with the loudness.
memory = AdaptiveCCM().fit(spectra)
for event in memory.events_:
    print(event)

# %%
# The spectrogram, and below it the blocks of the memory, named after the regime in which they began.
for block, name in enumerate(regimes):
    memory.name_block(block, name)
figure = plt.figure(figsize=(11, 6.5), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.1])
axes = top.subplots()
axes.imshow(spectra.T, aspect="auto", origin="lower", cmap="magma", extent=(0, len(spectra), 1, window // 2))
axes.set(ylabel="frequency", title="spectrogram")
plots.timeline(memory, changes=range(per_visit, len(spectra), per_visit), figure=bottom)
plt.show()
