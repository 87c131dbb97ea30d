"""
Prototypes taking shape
=======================

Where do prototypes come from? Here six units of an incremental winner-take-all memory begin as the first six images
of a stream of digits, and every image pulls its winner a little towards itself. The film shows them after 6, 20,
60, ... images.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ccmem import IncrementalWTA

images, digits = load_digits(return_X_y=True)
kept = np.isin(digits, (0, 3, 6))
X = np.random.default_rng(3).permutation(images[kept]) / 16

memory = IncrementalWTA(n_units=6, learning_rate=0.15, rate_decay=0.99)
frames, seen = [], 0
for until in (6, 12, 25, 50, 100, 200, 500):
    memory.partial_fit(X[seen:until])
    frames.append((until, memory.prototypes_, memory.win_counts_))
    seen = until

# %%
# Each begins as the digit of one hand and ends as the mean of many: the strokes that all share stay bright, the
# rest fades. The frame gets stronger with the number of images a unit has won.
figure, grid = plt.subplots(6, len(frames), figsize=(9.5, 8.4), layout="constrained")
for column, (until, prototypes, wins) in enumerate(frames):
    for row in range(6):
        axes = grid[row, column]
        axes.imshow(prototypes[row].reshape(8, 8), cmap="inferno", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
        strength = min(1.0, wins[row] / 80)
        for spine in axes.spines.values():
            spine.set(edgecolor=(0.8, 0.3, 0.1, strength), linewidth=3)
    grid[0, column].set_title(f"after {until}")
for row in range(6):
    grid[row, 0].set_ylabel(f"unit {row}")
plt.show()
