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
import numpy as np
from sklearn.datasets import load_digits

from ccmem import CCM, plots

images, digits = load_digits(return_X_y=True)
images = images / 16
visits = [(0, 1), (2, 3), (4, 5), (0, 1), (6, 7), (2, 3)]
rng = np.random.default_rng(0)
rows = np.concatenate([rng.choice(np.flatnonzero(np.isin(digits, pair)), 350) for pair in visits])

# %%
# Learning, one image at a time, keeping track of the alarm. (``partial_fit`` takes whole
# chunks and gives the same memory; one at a time lets us watch.)
memory = CCM(n_slots=8, vigilance=0.91, alarm_limit=12, recall_limit=6, commit_limit=10, random_state=0)
alarm = []
for image in images[rows]:
    memory.learn_one(image)
    alarm.append(memory.alarm_)

for event in memory.events_:
    print(event)

# %%
# The block in use follows the hidden task, a dozen samples late. At the two returns the alarm rises only until the
# old block is recognised.
plots.timeline(memory, alarm=alarm, stream=images[rows], changes=range(350, len(rows), 350))

# %%
# What the blocks hold: each slot is the mean direction of the images it has won.
plots.blocks(memory, title="Four tasks, four blocks")
