"""
Topics in a stream of embeddings
================================

Embeddings of texts or pictures are compared by cosine, and that is what CCM compares by. Here a news desk receives
384-dimensional embeddings (made up, but shaped like real ones: each story is a direction with a good deal of noise
around it). Every season has its own stories, and seasons come back.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from ccmem import CCM

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
# Five slots for five stories; real embeddings have negative parts, hence ``init="normal"``.
memory = CCM(n_slots=5, vigilance=0.75, alarm_limit=25, recall_limit=8, commit_limit=20, init="normal", random_state=0)
memory.partial_fit(X)
for event in memory.events_:
    print(event.kind, "at", event.step, "to block", event.to_block)

# %%
# The embeddings, brought to a plane for the eye only, with the slots of every block as stars. The strip below shows
# the season and the block that each sample is given afterwards: a season that returns is given the block it had.
palette = {0: "#0072B2", 1: "#009E73", 2: "#E69F00", 3: "#CC79A7"}
plane = PCA(2, random_state=0).fit(X)
blocks = memory.task_pointers(X)
figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6.4), height_ratios=[5, 1], layout="constrained")
shown = rng.permutation(len(X))[:1500]
top.scatter(*plane.transform(X[shown]).T, c=[palette[b] for b in blocks[shown]], s=7, alpha=0.35, lw=0)
used = memory.win_counts_ > 0
length = (memory.transform(X).max(axis=1) * np.linalg.norm(X, axis=1)).mean()  # of a sample, along its slot
for b in range(memory.n_blocks_):
    stars = plane.transform(memory.prototypes_[used & (memory.unit_blocks_ == b)] * length)
    names, counts = np.unique(truth[blocks == b], return_counts=True)
    top.scatter(
        *stars.T, marker="*", s=260, c=palette[b], ec="white", lw=1.2, label=f"block {b}: {names[counts.argmax()]}"
    )
top.set(xticks=[], yticks=[], title=f"{len(X):,} embeddings, {memory.n_blocks_} blocks, {used.sum()} slots")
top.spines[:].set_visible(False)
top.legend(frameon=False, loc="upper left")
bottom.scatter(range(len(X)), np.zeros(len(X)), c=[palette[b] for b in blocks], marker="|", s=900, lw=0.6)
for number, name in enumerate(seasons):
    bottom.text((number + 0.5) * 600, 0.09, name, ha="center")
bottom.set(yticks=[], ylim=(-0.06, 0.14), xlim=(0, len(X)), xlabel="samples, in order of arrival")
bottom.spines[["top", "left", "right"]].set_visible(False)
plt.show()
