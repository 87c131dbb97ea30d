"""
Four memories, one stream
=========================

Four memories learn the same two-dimensional stream, which visits one corner of the plane after the other. iWTA and
iGMM compare by distance and have a fixed number of units. ART-C 2A and CCM compare by direction, so their regions are
wedges, and the number of their units follows from the stream.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from ccmem import ARTC2A, CCM, IncrementalGMM, IncrementalWTA, plots

rng = np.random.default_rng(1)
corners = np.array([[4.0, 1.2], [1.0, 4.0], [-3.6, 2.2], [-1.5, -3.6]])
X = np.concatenate([corner + rng.normal(0, 0.55, (250, 2)) for corner in corners])

memories = [
    IncrementalWTA(n_units=12, learning_rate=0.35, rate_decay=0.99),
    IncrementalGMM(n_units=12, temperature=0.5, learning_rate=0.1),
    ARTC2A(max_units=12, vigilance=0.97, learning_rate=0.1),
    CCM(n_slots=3, vigilance=0.985, alarm_limit=10, recall_limit=5, commit_limit=10, init="normal", random_state=0),
]

# %%
# A region consists of the points for which one unit wins. Arrows are units that represent directions. Pale points are
# below the vigilance of every unit. CCM has one colour per block.
figure, panels = plt.subplots(2, 2, figsize=(8, 8), layout="constrained")
for panel, memory in zip(panels.flat, memories, strict=True):
    memory.fit(X)
    what = f"{(memory.win_counts_ > 0).sum()} units"
    if isinstance(memory, CCM):
        what += f" in {memory.n_blocks_} blocks"
    plots.regions(memory, X, reach=6.2, ax=panel, title=f"{type(memory).__name__}: {what}")
plt.show()
