"""
The effect of vigilance
=======================

Vigilance is the similarity that a sample must reach for a unit to learn it. ART-C 2A creates a new unit for a sample
that reaches it with no unit. A unit therefore covers a cone of directions, and a higher vigilance gives narrower
cones and more units.
"""

# %%
# Directions in the plane, in five groups of different width.
import matplotlib.pyplot as plt
import numpy as np

from ccmem import ARTC2A, plots

rng = np.random.default_rng(4)
angles = np.concatenate(
    [
        rng.normal(centre, width, 80)
        for centre, width in [(0.3, 0.06), (1.2, 0.16), (2.4, 0.05), (3.7, 0.28), (5.3, 0.1)]
    ]
)
rng.shuffle(angles)
X = np.column_stack([np.cos(angles), np.sin(angles)]) * rng.uniform(0.75, 1.0, len(angles))[:, None]

# %%
# The same stream with four settings. The cone of a unit has the half-angle arccos(vigilance). Points outside all
# cones are pale.
figure, panels = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for panel, vigilance in zip(panels, [0.5, 0.8, 0.95, 0.99], strict=True):
    memory = ARTC2A(max_units=None, vigilance=vigilance, learning_rate=0.1).fit(X)
    some = f"{memory.n_units_} unit{'s' * (memory.n_units_ > 1)}"
    plots.regions(memory, X, reach=1.2, ax=panel, title=f"vigilance {vigilance}: {some}")
plt.show()
