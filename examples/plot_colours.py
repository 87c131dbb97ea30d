"""
A photograph in twelve colours
==============================

Vector quantisation replaces each sample by its nearest unit. Here the samples are the pixels of a photograph, learned
in one pass, and the units are colours.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from ccmem import IncrementalWTA

photograph = load_sample_image("flower.jpg") / 255
pixels = np.random.default_rng(0).permutation(photograph.reshape(-1, 3))

# %%
# The memory learns twelve colours from 40,000 pixels, each seen once.
memory = IncrementalWTA(n_units=12, learning_rate=0.35, rate_decay=0.99).partial_fit(pixels[:40_000])
painted = memory.prototypes_[memory.predict(photograph.reshape(-1, 3))].reshape(photograph.shape)

# %%
order = np.argsort(memory.prototypes_ @ [0.3, 0.6, 0.1])
figure, panels = plt.subplot_mosaic(
    [["before", "after"], ["colours", "colours"]], figsize=(10, 4.3), height_ratios=[6, 1], layout="constrained"
)
panels["before"].imshow(photograph)
panels["before"].set_title(f"{len(np.unique(np.round(pixels @ [255, 255 * 256, 255 * 65536]))):,} colours")
panels["after"].imshow(np.clip(painted, 0, 1))
panels["after"].set_title("12 colours")
panels["colours"].imshow(memory.prototypes_[order][None], aspect="auto")
for place, unit in enumerate(order):
    share = memory.win_counts_[unit] / memory.win_counts_.sum()
    panels["colours"].text(
        place,
        0,
        f"{share:.0%}",
        ha="center",
        va="center",
        color="white" if memory.prototypes_[unit].mean() < 0.55 else "black",
    )
for panel in panels.values():
    panel.axis("off")
plt.show()
