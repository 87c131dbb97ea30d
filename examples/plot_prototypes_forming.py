"""
Prototypes taking shape
=======================

Where do prototypes come from? Here six units of an incremental winner-take-all memory begin as the first six images
of a stream of digits, and every image pulls its winner a little towards itself. The rows show them after 6,
20, 60 and 500 images.
"""

# %%
from copy import deepcopy

import numpy as np
from sklearn.datasets import load_digits

from ccmem import IncrementalWTA, plots

images, digits = load_digits(return_X_y=True)
kept = np.isin(digits, (0, 3, 6))
X = np.random.default_rng(3).permutation(images[kept]) / 16

memory = IncrementalWTA(n_units=6, learning_rate=0.15, rate_decay=0.99)
frames, seen = {}, 0
for until in (6, 20, 60, 500):
    memory.partial_fit(X[seen:until])
    frames[f"after {until} images"] = deepcopy(memory)
    seen = until

# %%
# Each begins as the digit of one hand and ends as the mean of many: the strokes that all share stay bright, the
# rest fades.
plots.memories(frames, columns=6)
