"""
Choosing the thresholds
=======================

The thresholds of CCM must fit the data. If the vigilance is too low, every sample matches; if it is too high, none
does. Between these lies a range in which blocks equal tasks. To find this range for your data, run part of the stream
at several settings and compare the number of blocks.
"""

# %%
# The stream is that of :ref:`sphx_glr_auto_examples_plot_stream_of_tasks.py`: six visits to four tasks.
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
# To find a starting point, learn the beginning of the stream and compute the similarity of samples to their best
# slot. Choose a vigilance above the similarities of another task and near the median of the known task.
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
    "the learned task": (at, (same[:, None] >= at).mean(axis=0)),
    "another task": (at, (other[:, None] >= at).mean(axis=0)),
}
title = "share of samples with at least this similarity"
plots.curves(reached, xlabel="similarity", title=title, ax=right)
plt.show()
