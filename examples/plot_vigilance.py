"""
What vigilance does
===================

Vigilance is how similar a sample must be to a unit for the unit to learn it. ART-C 2A opens a new unit for a sample
that none is similar enough to, so its vigilance decides how finely the world is cut up: each unit answers for a
cone of directions, and the cone is as wide as the vigilance allows.
"""

# %%
# Directions in the plane, in five bunches of different width.
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
# The same stream at four settings. A unit's cone has the half-angle arccos(vigilance): whatever falls inside is close
# enough to be learned, and points outside all cones are pale.
figure, panels = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for panel, vigilance in zip(panels, [0.5, 0.8, 0.95, 0.99], strict=True):
    memory = ARTC2A(max_units=None, vigilance=vigilance, learning_rate=0.1).fit(X)
    some = f"{memory.n_units_} unit{'s' * (memory.n_units_ > 1)}"
    plots.regions(memory, X, reach=1.2, ax=panel, title=f"vigilance {vigilance}: {some}")
plt.show()
