"""
Prototypes forming
==================

Six units of an incremental winner-take-all memory start at the first six images of a stream of digits. Every image
moves its winner a little towards itself. The rows show the prototypes after 6, 20, 60 and 500 images.
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
# Each prototype starts as one image and becomes the mean of many. Strokes that the images share stay bright.
plots.memories(frames, columns=6)
