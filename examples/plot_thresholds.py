"""
Choosing the thresholds
=======================

CCM's thresholds have to fit the data: with too little vigilance everything looks familiar, with too much nothing
does, and in between lies a range in which the blocks are the tasks. The picture shows how wide that range is on the
digits, and how to find it on data of your own: run a piece of the stream at a few settings and look at the number
of blocks.
"""

# %%
# The stream of :ref:`sphx_glr_auto_examples_plot_stream_of_tasks.py`: six visits to four tasks.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ccmem import CCM, plots

images, digits = load_digits(return_X_y=True)
visits = [(0, 1), (2, 3), (4, 5), (0, 1), (6, 7), (2, 3)]


def stream(seed):
    rng = np.random.default_rng(seed)
    return images[np.concatenate([rng.choice(np.flatnonzero(np.isin(digits, pair)), 350) for pair in visits])] / 16


streams = [stream(seed) for seed in range(3)]
vigilances = np.round(np.arange(0.84, 0.961, 0.01), 2)
limits = [4, 8, 12, 20, 30]
blocks = np.array(
    [
        [
            np.mean(
                [
                    CCM(n_slots=8, vigilance=v, alarm_limit=a, recall_limit=a // 2, commit_limit=10, random_state=0)
                    .partial_fit(X)
                    .n_blocks_
                    for X in streams
                ]
            )
            for v in vigilances
        ]
        for a in limits
    ]
)

# %%
# Where to begin? Look how similar samples are to the best slot of a small memory of the stream's beginning. Vigilance
# belongs above what another task reaches, and near the middle of what the known task reaches.
first_task = CCM(n_slots=8, vigilance=0.0, random_state=0).partial_fit(streams[0][:350])
same = first_task.transform(streams[0][:350]).max(axis=1)
other = first_task.transform(streams[0][350:700]).max(axis=1)

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
lines = {f"alarm limit {limit}": (vigilances, line) for limit, line in zip(limits, blocks, strict=True)}
plots.curves(lines, xlabel="vigilance", ylabel="blocks made", title="there are 4 tasks", ax=left)
left.set(yscale="log", yticks=[1, 2, 4, 10, 40], yticklabels=[1, 2, 4, 10, 40])
left.axhline(4, color="0.3", lw=1, ls=":")
at = np.linspace(0.6, 1, 200)
reached = {
    "the task it has learned": (at, (same[:, None] >= at).mean(axis=0)),
    "another task": (at, (other[:, None] >= at).mean(axis=0)),
}
title = "share of samples at least so similar to the best slot"
plots.curves(reached, xlabel="similarity", title=title, ax=right)
plt.show()
