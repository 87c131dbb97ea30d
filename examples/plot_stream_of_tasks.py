"""
A stream whose tasks change
===========================

Digits arrive pair by pair, and old pairs come back. Nobody tells the memory where one pair ends and the next
begins. CCM looks at each image once: what its block in use matches is learned, what it does not match raises an
alarm, and a long enough row of alarms makes it change blocks, to an old one if an old one matches and to a new one
otherwise.
"""

# %%
# The stream: six visits to four tasks, 350 images each.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ccmem import CCM

images, digits = load_digits(return_X_y=True)
images = images / 16
visits = [(0, 1), (2, 3), (4, 5), (0, 1), (6, 7), (2, 3)]
rng = np.random.default_rng(0)
rows = np.concatenate([rng.choice(np.flatnonzero(np.isin(digits, pair)), 350) for pair in visits])

# %%
# Learning, one image at a time, keeping track of the block in use and of the alarm. (``partial_fit`` takes whole
# chunks and gives the same memory; one at a time lets us watch.)
memory = CCM(n_slots=8, vigilance=0.91, alarm_limit=12, recall_limit=6, commit_limit=10, random_state=0)
block, alarm = [], []
for image in images[rows]:
    memory.learn_one(image)
    block.append(memory.task_pointer_)
    alarm.append(memory.alarm_)

for event in memory.events_:
    print(event)

# %%
# The block in use follows the hidden task, a dozen samples late. At the two returns the alarm rises only until the
# old block is recognised.
colours = np.array(["#0072B2", "#E69F00", "#009E73", "#CC79A7"])
figure, (top, bottom) = plt.subplots(2, 1, figsize=(10, 4.6), sharex=True, height_ratios=[2, 1], layout="constrained")
top.scatter(range(len(block)), block, c=colours[block], s=6)
for number, pair in enumerate(visits):
    top.axvspan(number * 350, (number + 1) * 350, color="0.5", alpha=0.07 * (number % 2), lw=0)
    top.text((number + 0.5) * 350, 3.45, f"{pair[0]} and {pair[1]}", ha="center", color="0.4")
for event in memory.events_:
    top.annotate(event.kind.replace("_", " "), (event.step, event.to_block), xytext=(8, 8), textcoords="offset points")
top.set(ylabel="block in use", yticks=range(4), ylim=(-0.4, 3.8), xlim=(0, len(block)))
bottom.fill_between(range(len(alarm)), alarm, color="#c0392b", step="mid", lw=0.8)
bottom.axhline(memory.alarm_limit, color="#c0392b", ls=":")
bottom.set(ylabel="alarm", xlabel="samples seen")

# %%
# What the blocks hold: each slot is the mean direction of the images it has won.
figure, grid = plt.subplots(4, 8, figsize=(8, 4.2), layout="constrained")
for unit, axes in enumerate(grid.flat):
    axes.imshow(memory.prototypes_[unit].reshape(8, 8), cmap="Greys")
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(edgecolor=colours[memory.unit_blocks_[unit]], linewidth=2)
for b in range(4):
    grid[b, 0].set_ylabel(f"block {b}", color=colours[b], weight="bold")
figure.suptitle("Four tasks, four blocks")
plt.show()
