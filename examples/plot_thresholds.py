"""
Choosing the thresholds
=======================

CCM's thresholds have to fit the data: with too little vigilance everything looks familiar, with too much nothing
does, and in between lies a range in which the blocks are the tasks. This map shows how wide that range is on the
digits, and how to find it on data of your own: run a piece of the stream at a few settings and look at the number
of blocks.
"""

# %%
# The stream of :ref:`sphx_glr_auto_examples_plot_stream_of_tasks.py`: six visits to four tasks.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ccmem import CCM

images, digits = load_digits(return_X_y=True)
visits = [(0, 1), (2, 3), (4, 5), (0, 1), (6, 7), (2, 3)]


def stream(seed):
    rng = np.random.default_rng(seed)
    return images[np.concatenate([rng.choice(np.flatnonzero(np.isin(digits, pair)), 350) for pair in visits])] / 16


streams = [stream(seed) for seed in range(3)]
vigilances = np.round(np.arange(0.84, 0.961, 0.01), 2)
limits = [4, 6, 8, 10, 12, 16, 20, 25, 30]
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

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4), width_ratios=[1.5, 1], layout="constrained")
image = left.imshow(np.abs(np.log2(blocks / 4)), cmap="YlGnBu_r", origin="lower", aspect="auto", vmax=3)
for i, j in np.ndindex(blocks.shape):
    dark = abs(np.log2(blocks[i, j] / 4)) < 1.2
    left.text(j, i, f"{blocks[i, j]:.0f}", ha="center", va="center", color="white" if dark else "0.2")
left.set_xticks(range(len(vigilances)), [f"{v:.2f}" for v in vigilances], rotation=45)
left.set_yticks(range(len(limits)), limits)
left.set(xlabel="vigilance", ylabel="alarm limit (recall limit: half of it)", title="blocks made; there are 4 tasks")
bins = np.linspace(0.5, 1, 60)
right.hist(same, bins, color="#0072B2", alpha=0.75, label="the task it has learned")
right.hist(other, bins, color="#c0392b", alpha=0.6, label="another task")
right.axvspan(0.895, 0.915, color="#009E73", alpha=0.2, lw=0, label="vigilance that works")
right.set(xlabel="similarity to the best slot", ylabel="samples", title="where to look for vigilance")
right.legend(frameon=False)
right.spines[["top", "right"]].set_visible(False)
plt.show()
