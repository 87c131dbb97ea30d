"""
A stream whose tasks change
===========================

Digits arrive pair by pair, and old pairs return. The memory does not know when the pair changes. CCM sees each image
once. It learns images that match the current block and counts all others as misses. After a run of misses it switches
to an earlier block if one matches, and otherwise to a new block.
"""

# %%
# The stream has six visits to four tasks, with 350 images each.
import numpy as np
from sklearn.datasets import load_digits

from ccmem import CCM, plots

images, digits = load_digits(return_X_y=True)
images = images / 16
visits = [(0, 1), (2, 3), (4, 5), (0, 1), (6, 7), (2, 3)]
rng = np.random.default_rng(0)
rows = np.concatenate([rng.choice(np.flatnonzero(np.isin(digits, pair)), 350) for pair in visits])

# %%
# Learn one image at a time and record the alarm. ``partial_fit`` learns whole chunks, with the same result.
memory = CCM(n_slots=8, vigilance=0.91, alarm_limit=12, recall_limit=6, commit_limit=10, random_state=0)
alarm = []
for image in images[rows]:
    memory.learn_one(image)
    alarm.append(memory.alarm_)

for event in memory.events_:
    print(event)

# %%
# The block in use follows the task with a delay of about a dozen samples. At the two returns, the alarm rises only
# until the earlier block is recalled.
plots.timeline(memory, alarm=alarm, stream=images[rows], changes=range(350, len(rows), 350))

# %%
# The units of each block. A unit is the mean direction of the images that it has won.
plots.blocks(memory, title="Four tasks, four blocks")
