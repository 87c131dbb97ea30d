"""
Topics in a stream of embeddings
================================

A news desk receives embeddings with 384 columns. They are simulated: each story is a direction with noise around it.
Every season has five stories, and seasons return. With this many columns that share a unit, ``AdaptiveCCM`` compares
embeddings by cosine similarity.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from ccmem import AdaptiveCCM, plots
from ccmem.core.colours import block_colour

rng = np.random.default_rng(0)
seasons = ["election", "football", "election", "heat wave", "football"]
stories = {
    name: rng.normal(size=(5, 384)) + 1.2 * rng.normal(size=384) for name in ("election", "football", "heat wave")
}


def arrive(name):
    direction = stories[name][rng.integers(5, size=600)]
    return direction + rng.normal(scale=0.7, size=direction.shape)


X = np.concatenate([arrive(name) for name in seasons]).astype(np.float32)
truth = np.repeat(seasons, 600)

# %%
# All parameters except the number of units per block have their defaults: five units for five stories.
memory = AdaptiveCCM(n_slots=5)
memory.partial_fit(X)
for event in memory.events_:
    print(event)

# %%
# The embeddings, projected to a plane for the picture, with the units of every block as stars; below, the block in
# use over time. A season that returns is recalled to its block.
blocks, used = memory.task_pointers(X), memory.win_counts_ > 0
for block in range(memory.n_blocks_):
    names, counts = np.unique(truth[blocks == block], return_counts=True)
    memory.name_block(block, str(names[counts.argmax()]))
plane = PCA(2, random_state=0).fit(X)
figure = plt.figure(figsize=(10, 7.5), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1.6, 1])
axes = top.subplots()
shown = rng.permutation(len(X))[:1500]
axes.scatter(*plane.transform(X[shown]).T, c=[block_colour(b) for b in blocks[shown]], s=7, alpha=0.35, lw=0)
length = (memory.transform(X).max(axis=1) * np.linalg.norm(X, axis=1)).mean()  # of a sample, along its unit
for block, name in memory.block_names_.items():
    units = memory.prototypes_[used & (memory.unit_blocks_ == block)]
    units = units / np.linalg.norm(units, axis=1, keepdims=True) * length
    axes.scatter(*plane.transform(units).T, marker="*", s=260, c=block_colour(block), ec="white", lw=1.2, label=name)
axes.set(xticks=[], yticks=[], title=f"{len(X):,} embeddings, {memory.n_blocks_} blocks, {used.sum()} units")
axes.spines[:].set_visible(False)
axes.legend(frameon=False, loc="upper left")
plots.timeline(memory, changes=range(600, len(X), 600), figure=bottom)
plt.show()
