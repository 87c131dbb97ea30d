"""
A graph of the data
===================

Growing neural gas connects units that are neighbours in the data. The graph follows the shape of the distribution: two
rings become two closed chains, and the connected components count the groups without any labels.
"""

import numpy as np

from ccmem import GrowingNeuralGas, plots
from ccmem.plots.maps import components

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 6000)
centre = np.where(np.arange(6000) % 2, 0.0, 2.6)[:, None] * [1.0, 0.0]
X = np.column_stack([np.cos(angle), np.sin(angle)]) + centre + rng.normal(0, 0.05, (6000, 2))

model = GrowingNeuralGas(n_units=40, insert_every=100).fit(X)
groups = components(model.n_units_, model.edges_).max() + 1
print(f"{model.n_units_} units, {len(model.edges_)} edges, {groups} components")

# %%
plots.graph(model, X, title="growing neural gas on two rings")
