"""
Four memories, one stream
=========================

The same two-dimensional stream, which visits one corner of the plane after the other, as each of the four memories
keeps it. iWTA and iGMM compare by distance and keep a fixed number of units; ART-C 2A and CCM compare by direction,
so their regions are wedges, and they decide by themselves how much memory the stream deserves.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from ccmem import ARTC2A, CCM, IncrementalGMM, IncrementalWTA

rng = np.random.default_rng(1)
corners = np.array([[4.0, 1.2], [1.0, 4.0], [-3.6, 2.2], [-1.5, -3.6]])
X = np.concatenate([corner + rng.normal(0, 0.55, (250, 2)) for corner in corners])

memories = [
    IncrementalWTA(n_units=12, learning_rate=0.35, rate_decay=0.99),
    IncrementalGMM(n_units=12, temperature=0.5, learning_rate=0.1),
    ARTC2A(max_units=12, vigilance=0.97, learning_rate=0.1),
    CCM(n_slots=3, vigilance=0.985, alarm_limit=10, commit_limit=10, init="normal", random_state=0),
]

# %%
# Each region holds the points that one unit answers for. The units of directions are drawn where they point to.
grid = np.stack(np.meshgrid(np.linspace(-6.2, 6.2, 300), np.linspace(-6.2, 6.2, 300)), axis=-1)
figure, panels = plt.subplots(2, 2, figsize=(8, 8), layout="constrained")
for panel, memory in zip(panels.flat, memories, strict=True):
    memory.fit(X)
    regions = memory.predict(grid.reshape(-1, 2)).reshape(300, 300)
    used = np.flatnonzero(memory.win_counts_ > 0)
    shade = np.searchsorted(used, regions)
    panel.imshow(shade, cmap="Pastel2", origin="lower", extent=(-6.2, 6.2, -6.2, 6.2), interpolation="nearest")
    panel.contour(*np.moveaxis(grid, -1, 0), shade, levels=np.arange(len(used)) + 0.5, colors="white", linewidths=0.8)
    panel.plot(*X.T, ".", color="0.25", ms=2, alpha=0.6)
    units = memory.prototypes_[used]
    by_direction = isinstance(memory, (ARTC2A, CCM))
    blocks = memory.unit_blocks_[used] if isinstance(memory, CCM) else np.zeros(len(used), int)
    for (x, y), b in zip(units * 5.4 if by_direction else units, blocks, strict=True):
        colour = ["#c0392b", "#0072B2", "#009E73", "#8e44ad", "#d35400"][b % 5]
        if by_direction:
            panel.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.8})
        else:
            panel.plot(x, y, "o", color=colour, mec="white", ms=9)
    name = type(memory).__name__
    what = f"{len(used)} units" + (f" in {memory.n_blocks_} blocks" if isinstance(memory, CCM) else "")
    panel.set(xticks=[], yticks=[], xlim=(-6.2, 6.2), ylim=(-6.2, 6.2), title=f"{name}: {what}")
plt.show()
