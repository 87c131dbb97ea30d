"""
A map of colours
================

A self-organising map arranges similar samples next to each other. Here the samples are colours, so you can check the
result by eye: the component planes show where red, green and blue are high, the U-matrix shows borders between groups,
and the hit map shows how many samples each unit wins.
"""

import numpy as np
import pandas as pd

from ccmem import SelfOrganisingMap, metrics, plots

rng = np.random.default_rng(0)
centres = np.array([[0.9, 0.2, 0.2], [0.2, 0.7, 0.3], [0.2, 0.3, 0.9], [0.9, 0.8, 0.2], [0.1, 0.1, 0.1]])
which = rng.integers(0, len(centres), 5000)
X = pd.DataFrame(np.clip(centres[which] + rng.normal(0, 0.07, (5000, 3)), 0, 1), columns=["red", "green", "blue"])

som = SelfOrganisingMap(9, 12, topology="hexagonal", sigma=3.0, horizon=2000).fit(X)
print(f"quantisation error {metrics.quantisation_error(som, X):.3f}, ", end="")
print(f"topographic error {metrics.topographic_error(som, X):.3f}")

# %%
# The U-matrix: dark cells are close to their neighbours, bright cells separate groups.
plots.map(som)

# %%
# One plane per component.
plots.component_planes(som)

# %%
# The most frequent label of the samples that each unit wins.
names = np.array(["rose", "leaf", "sky", "sun", "night"])
plots.map(som, "labels", X, y=names[which], title="labels")
